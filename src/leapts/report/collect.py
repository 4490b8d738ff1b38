"""Collect the contents of a report: forecasts from several cutoffs, their schedules and their errors."""

import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
from torch import Tensor

from leapts.data.frequency import positions_of
from leapts.data.panel import Panel
from leapts.data.validation import require_length
from leapts.errors import ConfigError, DataError
from leapts.forecasting import LeapTS
from leapts.forecasting.forecast import Forecast
from leapts.forecasting.intervals import Level
from leapts.forecasting.metrics import weighted_quantile_loss
from leapts.forecasting.predictor import Predictor
from leapts.model import ScheduleTrace
from leapts.model.schedulers import SCALE_NAMES

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Kind = Literal["new", "held out", "training"]  # windows after the training data, held out of it, or in it

LEVELS: tuple[Level, ...] = (50, 80, 95)
_CALIBRATION_LEVELS: tuple[Level, ...] = (10, 20, 30, 40, 50, 60, 70, 80, 90, 95)
MAX_SERIES = 500
MAX_CUTOFFS, MIN_CUTOFFS = 12, 3
_VALUES_ON_A_PAGE = 20_000  # forecast values of all series and cutoffs: about 750 kB, with three intervals
NEVER_SEEN = np.iinfo(np.int64).max


@dataclass(frozen=True, eq=False, kw_only=True)
class Cutoff:
    """Forecasts from one cutoff, of the series with enough history before it."""

    after: int  # steps of data after the cutoff, at the end of each series
    rows: Integers  # indices of these series in the report's panel
    forecast: Forecast  # with the trace


@dataclass(frozen=True, eq=False, kw_only=True)
class Errors:
    """Mean absolute errors by step of the horizon, in standard deviations of each series."""

    kind: Kind  # of the windows
    windows: int
    final: Floats  # of the forecast
    coarse: Floats  # of the coarse forecast
    naive: Floats  # of the naive forecast, which repeats the last value before the cutoff
    coverage: dict[Level, Floats]  # share of values inside the interval of each level, by step
    calibration: dict[Level, float]  # share of values inside the interval of further levels, over all steps
    wql: float | None  # weighted quantile loss of the ends of all these intervals, which approximates the CRPS


@dataclass(frozen=True, eq=False, kw_only=True)
class Schedules:
    """Counts of leaps over all forecasts of a report."""

    leaps_of: dict[str, int]  # leaps of each scale
    steps_of: dict[str, int]  # steps of the horizon written at each scale
    forecasts_with: dict[int, int]  # forecasts by number of leaps
    control: float  # mean share of the change of state that is due to the control signal


@dataclass(frozen=True, eq=False, kw_only=True)
class ReportContents:
    """Contents of a report."""

    model: LeapTS
    panel: Panel  # the last steps of the series shown, as far back as the first cutoff needs
    cutoffs: tuple[Cutoff, ...]  # oldest first
    unseen: Integers  # steps of each series after its training data; NEVER_SEEN if it has no training data
    held_out: int  # steps at the end of the training data that were held out for validation
    left_out: int  # number of series in the data that are not shown
    levels: tuple[Level, ...]  # of the prediction intervals, in percent, rising; empty if the model gives none

    @property
    def fitted(self) -> Predictor:
        """Return the result of the fit."""
        return self.model.predictor_

    def actual(self, cutoff: Cutoff) -> Floats:
        """Return the actual values after a cutoff, [its series, known steps], at most `h` steps."""
        known = min(cutoff.after, self.fitted.config.h)
        ends = self.panel.offsets[1:].numpy()[cutoff.rows]
        actual: Floats = _array(self.panel.values)[(ends - cutoff.after)[:, None] + np.arange(known)]
        return actual

    def naive(self, cutoff: Cutoff) -> Floats:
        """Return the naive forecast of each series: its last value before the cutoff, [its series, h]."""
        history = cutoff.forecast.panel
        last = _array(history.values[history.offsets[1:] - 1])
        return last[:, None].repeat(self.fitted.config.h, axis=1)

    def intervals(self, cutoff: Cutoff, more: Sequence[Level] = ()) -> dict[Level, tuple[Floats, Floats]]:
        """Return the lower and upper ends of the prediction intervals of each level, [its series, h]."""
        levels = sorted({*self.levels, *more})
        columns = cutoff.forecast.columns(levels)
        return {level: (columns[f"LeapTS-lo-{level}"], columns[f"LeapTS-hi-{level}"]) for level in levels}

    def absolute_errors(self, cutoff: Cutoff, forecast: Tensor | Floats | None = None) -> Floats:
        """Return absolute errors of a forecast, by default the model's, in standard deviations of each series.

        The forecast is [its series, h], the result [its series, known steps].
        """
        values, actual = _array(cutoff.forecast.values if forecast is None else forecast), self.actual(cutoff)
        errors: Floats = np.abs(values[:, : actual.shape[1]] - actual) / _array(cutoff.forecast.scale)[:, None]
        return errors

    def kind_of(self, row: int, after: int) -> Kind:
        """Return the kind of the window after a cutoff."""
        unseen = int(self.unseen[row])
        if after <= unseen:
            return "new"
        return "held out" if after - unseen <= self.held_out else "training"


def collect(
    model: LeapTS,
    data: Any,
    *,
    cutoffs: int | None = None,
    step_size: int | None = None,
    series: Sequence[str | int] | None = None,
    max_series: int = MAX_SERIES,
    level: Sequence[Level] = LEVELS,
    most_series: int | None = None,
) -> ReportContents:
    """Forecast from the end of the data and from earlier cutoffs.

    The windows after the earlier cutoffs are complete, so that the forecasts can be compared with actual values.

    Args:
        model: A fitted model.
        data: A frame, a path, or a panel; of the fitted series or, for a model that allows it, of other series.
        cutoffs: Number of cutoffs, with the end of the data; by default 3 to 12, fewer for more series.
        step_size: Steps between cutoffs; by default the horizon.
        series: The series to show; by default the first ones.
        max_series: Maximum number of series to show.
        level: Levels of the prediction intervals in percent.
        most_series: The old name of `max_series`.

    Raises:
        DataError: When the data cannot be used, or is too short for a single forecast.
    """
    if most_series is not None:
        text = "most_series is now max_series; the old name goes with release 0.3"
        warnings.warn(text, DeprecationWarning, stacklevel=2)
        max_series = most_series
    fitted, h = model.predictor_, model.predictor_.config.h
    step = h if step_size is None else step_size
    for name, value in (("cutoffs", cutoffs), ("step_size", step), ("max_series", max_series)):
        if value is not None and value < 1:
            raise ConfigError(f"{name}={value}: the value must be at least 1")
    every = fitted.require_usable(model.read(data))
    names = tuple(every.series[:max_series] if series is None else dict.fromkeys(series))
    if not names:
        raise ConfigError("series=[] shows no series; name some, or leave series= out to show the first ones")
    panel = every.select(names)
    # A multivariate model needs all of its series, also those that are not shown.
    source = every if fitted.is_multivariate else panel
    count = cutoffs or max(MIN_CUTOFFS, min(MAX_CUTOFFS, _VALUES_ON_A_PAGE // (len(names) * h)))
    complete = [h + step * number for number in reversed(range(count - 1))]
    taken = _forecast_cutoffs(fitted, source, names, [*complete, 0])
    shown = min(max(fitted.config.input_size, 2 * h), 4 * h)
    return ReportContents(
        model=model,
        panel=panel.tail(shown + taken[0].after),
        cutoffs=taken,
        unseen=_unseen(fitted, panel.tail(taken[0].after + 1)),
        held_out=int({one.option: one.value for one in model.auto_config_}.get("val_size", model.val_size or 0)),
        left_out=len(every) - len(panel),
        levels=tuple(sorted(level)) if fitted.has_intervals else (),
    )


def measure_errors(contents: ReportContents) -> Errors | None:
    """Measure errors on new windows, or else on held-out or training windows; None if no window is complete."""
    cutoffs = [cutoff for cutoff in contents.cutoffs if cutoff.after >= contents.fitted.config.h]
    kinds = [contents.kind_of(row, cutoff.after) for cutoff in cutoffs for row in cutoff.rows.tolist()]
    kind: Kind | None = next((kind for kind in get_args(Kind) if kind in kinds), None)
    if kind is None:
        return None
    chosen = np.array(kinds) == kind

    def errors_of(forecast_of: Callable[[Cutoff], Tensor | Floats | None]) -> Floats:
        errors = [contents.absolute_errors(cutoff, forecast_of(cutoff)) for cutoff in cutoffs]
        selected: Floats = np.concatenate(errors)[chosen]
        return selected

    final = errors_of(lambda cutoff: cutoff.forecast.values)
    more = _CALIBRATION_LEVELS if contents.levels else ()
    inside: dict[Level, list[Floats]] = {level: [] for level in (*contents.levels, *more)}
    quantiles: dict[float, list[Floats]] = {}
    for cutoff in cutoffs:
        actual = contents.actual(cutoff)
        for level, (lower, upper) in contents.intervals(cutoff, more).items():
            inside[level].append(_array((lower <= actual) & (actual <= upper)))
            quantiles.setdefault(0.5 - level / 200, []).append(lower)
            quantiles.setdefault(0.5 + level / 200, []).append(upper)
    actuals = np.concatenate([contents.actual(cutoff) for cutoff in cutoffs])[chosen]
    forecasts = {quantile: np.concatenate(parts)[chosen] for quantile, parts in quantiles.items()}
    shares = {level: np.concatenate(parts)[chosen] for level, parts in inside.items()}
    return Errors(
        kind=kind,
        windows=len(final),
        final=final.mean(0),
        coarse=errors_of(lambda cutoff: cutoff.forecast.coarse).mean(0),
        naive=errors_of(contents.naive).mean(0),
        coverage={level: shares[level].mean(0) for level in contents.levels},
        calibration={level: float(shares[level].mean()) for level in more},
        wql=weighted_quantile_loss(actuals, forecasts) if forecasts else None,
    )


def measure_schedules(contents: ReportContents) -> Schedules | None:
    """Count the leaps of all forecasts; None for a model without a scheduling branch."""
    traces = [cutoff.forecast.trace for cutoff in contents.cutoffs if cutoff.forecast.trace is not None]
    if not traces:
        return None
    trace = ScheduleTrace.joined(traces)
    names = np.array(trace.scale_names)[trace.scale[trace.taken].numpy()]
    lengths, counts = trace.length[trace.taken].numpy(), Counter(trace.leaps.tolist())
    return Schedules(
        leaps_of={name: int((names == name).sum()) for name in SCALE_NAMES},
        steps_of={name: int(lengths[names == name].sum()) for name in SCALE_NAMES},
        forecasts_with={count: counts[count] for count in range(1, max(counts) + 1)},
        control=float(trace.control_share[trace.taken].double().mean()),
    )


def _forecast_cutoffs(
    fitted: Predictor, panel: Panel, shown: tuple[str | int, ...], afters: Sequence[int]
) -> tuple[Cutoff, ...]:
    """Forecast from each cutoff the series with enough history before it."""
    index = {name: number for number, name in enumerate(shown)}
    needed = 1 if fitted.pad_short else fitted.config.input_size
    taken = []
    for after in afters:
        enough = (panel.lengths - after >= needed).numpy()
        if not enough.any() or (fitted.is_multivariate and not enough.all()):
            continue
        some = panel if enough.all() else panel.select([panel.series[place] for place in np.flatnonzero(enough)])
        known = some.without_lookahead().head(-after) if after else some
        forecast = fitted.predict(fitted.windows(known), "leaps")
        forecast = forecast.select([name for name in forecast.panel.series if name in index])
        rows = np.array([index[name] for name in forecast.panel.series], dtype=np.int64)
        taken.append(Cutoff(after=after, rows=rows, forecast=forecast))
    if not taken:
        require_length(panel, needed, f"a forecast from a look-back of {needed}")
        raise DataError(f"no series has the {needed} steps of history that a forecast needs; add earlier data")
    return tuple(taken)


def _unseen(fitted: Predictor, panel: Panel) -> Integers:
    """Count the steps of each series after the end of its training data.

    The count is negative for a series that ends before its training data does.
    """
    fit_end = fitted.tail.last()
    ends, timestamps, last = panel.offsets.numpy(), panel.timestamps(), panel.last()
    unseen = np.full(len(panel), NEVER_SEEN, dtype=np.int64)
    for row, place in enumerate(fitted.places_of(panel.series).tolist()):
        if place < 0:
            continue
        unseen[row] = np.count_nonzero(timestamps[ends[row] : ends[row + 1]] > fit_end[place])
        if last[row] < fit_end[place]:
            # Counted from the first timestamp: daylight saving may have moved the last one.
            both, first = np.stack([last[row], fit_end[place]]), np.repeat(panel.first[row], 2)
            unseen[row] = -np.diff(positions_of(both, first, panel.freq, panel.timezone))[0]
    return unseen


def _array(values: object) -> Floats:
    return np.asarray(values, dtype=np.float64)
