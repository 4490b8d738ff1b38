"""What a report shows: forecasts from several cutoffs, how each was made, and how far off they were."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from leapts.core.fusion import GatedFusion
from leapts.data.frequency import positions_of
from leapts.data.panel import Panel
from leapts.data.validation import require_length
from leapts.errors import ConfigError, DataError
from leapts.forecaster import LeapTS
from leapts.forecaster.fitted import Fitted, PanelForecast
from leapts.intervals import Level

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

LEVELS: tuple[Level, ...] = (80, 95)
MOST_SERIES = 500
MOST_CUTOFFS, FEWEST_CUTOFFS = 12, 3
_NUMBERS_WANTED = 20_000  # forecast values, of all series and cutoffs: about 300 kB of page
NEVER_SEEN = np.iinfo(np.int64).max


@dataclass(frozen=True, eq=False, kw_only=True)
class Cutoff:
    """The forecasts of the series that have history enough, from so many steps before each one's end.

    Attributes:
        after: Steps of data after the cutoff: what the forecast is held against.
        rows: Which of the report's series these are.
        forecast: Theirs, with its trace.
    """

    after: int
    rows: Integers
    forecast: PanelForecast


@dataclass(frozen=True, eq=False, kw_only=True)
class ReportContents:
    """All a report shows.

    Attributes:
        model: The forecaster.
        panel: The last steps of the series shown, as far back as the first cutoff needs.
        cutoffs: Oldest first.
        unseen: For each series, how many of its last steps came after the data of the fit; `NEVER_SEEN` for a series
            that was not in it at all.
        held_out: How many steps before the end of the fit's data were held out to choose the weights by.
        left_out: How many series of the data are not shown.
        groups: For each series, which group's intervals it goes by.
        widths: For each level of intervals, half their width for each group and step, in deviations of a series.
    """

    model: LeapTS
    panel: Panel
    cutoffs: tuple[Cutoff, ...]
    unseen: Integers
    held_out: int
    left_out: int
    groups: Integers
    widths: dict[Level, Floats]

    @property
    def fitted(self) -> Fitted:
        """What the fit left behind."""
        return self.model.fitted_

    @property
    def gate(self) -> float | None:
        """How much of the scheduling branch is added; nothing to say without one."""
        fusion = self.fitted.model.fusion
        return fusion.gate.item() if isinstance(fusion, GatedFusion) else None

    def actual(self, cutoff: Cutoff) -> Floats:
        """What followed a cutoff, [its series, steps known], at most `h` steps."""
        known = min(cutoff.after, self.fitted.config.h)
        ends = self.panel.offsets[1:].numpy()[cutoff.rows]
        places = (ends - cutoff.after)[:, None] + np.arange(known)
        actual: Floats = _numpy(self.panel.values)[places]
        return actual

    def last_value(self, cutoff: Cutoff) -> Floats:
        """The last value before a cutoff, of each of its series."""
        history = cutoff.forecast.panel
        last: Floats = _numpy(history.values[history.offsets[1:] - 1])
        return last


def collect(
    model: LeapTS,
    data: Any,
    *,
    cutoffs: int | None = None,
    step_size: int | None = None,
    series: Sequence[str | int] | None = None,
    most_series: int = MOST_SERIES,
    level: Sequence[Level] = LEVELS,
) -> ReportContents:
    """Forecast from several cutoffs: the end of the data, and windows before it that are known to their end.

    Args:
        model: A fitted model.
        data: A frame, a path, or a panel; of the fitted series or, for a model that allows it, of others.
        cutoffs: How many, the end of the data included; by default as many as keep the page small, from 3 to 12.
        step_size: Steps from one known window to the next; by default the horizon.
        series: Which series to show; by default the first ones.
        most_series: How many series to show at most.
        level: Intervals to show, in percent; those the model has too few held-out windows for are left out.

    Raises:
        DataError: When the data cannot be used, or is too short for a single forecast.
    """
    fitted = model.fitted_
    h = fitted.config.h
    step = h if step_size is None else step_size
    if step < 1 or (cutoffs is not None and cutoffs < 1) or most_series < 1:
        raise ConfigError(f"cutoffs={cutoffs}, step_size={step} and most_series={most_series} must be at least 1")
    every = fitted.accepted(model.read(data))
    names = tuple(every.series[:most_series] if series is None else dict.fromkeys(series))
    if not names:
        raise ConfigError("series= names no series to show; name some, or leave it out for the first ones")
    panel = every.select(names)
    # A model that forecasts its series together needs all of them, also those that are not shown.
    source = every if fitted.is_joint else panel
    wanted = cutoffs or _cutoffs_worth_showing(len(names), h)
    known_to_their_end = [h + step * number for number in reversed(range(wanted - 1))]
    taken = _take_cutoffs(fitted, source, names, [*known_to_their_end, 0])
    shown = min(max(fitted.config.input_size, 2 * h), 4 * h)
    # Only the groups of the series shown are of interest, and most models have a single one.
    used, groups = np.unique(fitted.score_groups(panel).numpy(), return_inverse=True)
    return ReportContents(
        model=model,
        panel=panel.tail(shown + taken[0].after),
        cutoffs=taken,
        unseen=_unseen(fitted, panel.tail(taken[0].after + 1)),
        held_out=_held_out(model),
        left_out=len(every) - len(panel),
        groups=groups,
        widths=_widths(fitted, level, used),
    )


def _cutoffs_worth_showing(series: int, h: int) -> int:
    return max(FEWEST_CUTOFFS, min(MOST_CUTOFFS, _NUMBERS_WANTED // (series * h)))


def _take_cutoffs(
    fitted: Fitted, panel: Panel, shown: tuple[str | int, ...], afters: Sequence[int]
) -> tuple[Cutoff, ...]:
    index = {name: number for number, name in enumerate(shown)}
    needed = 1 if fitted.pad_short else fitted.config.input_size
    taken = []
    for after in afters:
        enough = (panel.lengths - after >= needed).numpy()
        if not enough.any() or (fitted.is_joint and not enough.all()):
            continue
        some = panel if enough.all() else panel.select([panel.series[place] for place in np.flatnonzero(enough)])
        known = some.without_lookahead().head(-after) if after else some
        forecast = _of_series(fitted.forecast(known, "leaps"), index)
        rows = np.array([index[name] for name in forecast.panel.series], dtype=np.int64)
        taken.append(Cutoff(after=after, rows=rows, forecast=forecast))
    if not taken:
        require_length(panel, needed, f"a forecast from a look-back of {needed}")
        raise DataError("no series has history enough for a forecast; give more of it")
    return tuple(taken)


def _of_series(forecast: PanelForecast, wanted: dict[str | int, int]) -> PanelForecast:
    """The part of a forecast that is shown."""
    keep = torch.tensor([number for number, name in enumerate(forecast.panel.series) if name in wanted])
    if len(keep) == len(forecast.panel):
        return forecast

    def some(values: Tensor) -> Tensor:
        return values.index_select(0, keep)

    return PanelForecast(
        panel=forecast.panel.select([forecast.panel.series[number] for number in keep.tolist()]),
        values=some(forecast.values),
        coarse=None if forecast.coarse is None else some(forecast.coarse),
        scale=some(forecast.scale),
        trace=None if forecast.trace is None else forecast.trace.arranged(some),
    )


def _unseen(fitted: Fitted, panel: Panel) -> Integers:
    """How many steps of each series lie after its end in the data of the fit, as far as the panel reaches.

    Below zero, where the series ends before that: so many steps were learned from that are not here.
    """
    fit_end = fitted.tail.last()
    ends = panel.offsets.numpy()
    stamps = panel.stamps()
    last = panel.last()
    unseen = np.full(len(panel), NEVER_SEEN, dtype=np.int64)
    for row, place in enumerate(fitted.places_of(panel.series).tolist()):
        if place < 0:
            continue
        unseen[row] = np.count_nonzero(stamps[ends[row] : ends[row + 1]] > fit_end[place])
        if last[row] < fit_end[place]:
            # Counted from the first, as the last may have been moved by daylight saving.
            both, first = np.stack([last[row], fit_end[place]]), np.repeat(panel.first[row], 2)
            unseen[row] = -np.diff(positions_of(both, first, panel.freq, panel.zone))[0]
    return unseen


def _held_out(model: LeapTS) -> int:
    picked = {pick.name: pick.value for pick in model.picked_}
    return int(picked.get("val_size", model.val_size or 0))


def _widths(fitted: Fitted, level: Sequence[Level], groups: Integers) -> dict[Level, Floats]:
    scores = fitted.scores
    if scores is None:
        return {}
    possible = [one for one in sorted(level) if scores.allow(one)]
    return {one: _numpy(scores.half_widths(one))[groups] for one in possible}


def _numpy(values: Tensor) -> Floats:
    array: Floats = values.double().numpy()
    return array
