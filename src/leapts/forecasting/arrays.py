"""Forecasts from plain arrays: the numbers `predict` gives, without frames, for callers that count microseconds.

Reading a history, forecasting many of them in one pass, and putting intervals around the result are three steps, so
that a server can read each request by itself and forecast those that arrive together.
"""

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from leapts.config import Fill
from leapts.data.imputation import fill_missing, leading
from leapts.data.panel import Panel
from leapts.data.scaling import Scaler
from leapts.data.validation import MAX_VALUE, require_length
from leapts.errors import DataError
from leapts.forecasting.intervals import Bound, Level
from leapts.forecasting.predictor import MAX_STANDARDIZED, Fitted, too_far
from leapts.messages import listed, quoted
from leapts.model import LeapTSModel, ScheduleTrace
from leapts.model.network import Record

_MAX_LEVELS = 64  # whose half widths are kept
_MAX_LOOP_SECONDS = 0.005  # processor time for which a forecast may hold up a server's event loop
_MAX_QUICK_ROWS = 512
_TIMED_PASSES = 3

Floats = npt.NDArray[np.float64]
Name = str | int


@dataclass(frozen=True, eq=False, kw_only=True)
class Histories:
    """What one caller wants forecast, in its own units.

    Attributes:
        tails: Look-backs, one row for each window of a single series.
        mean: Of each row, or where it is counted from instead, to standardise it and to restore its units.
        scale: Of each row, likewise, and for intervals.
        groups: Which calibration scores each row goes by.
        rows: Which row each of the caller's series is; None where they are in the model's order already.
    """

    tails: Floats
    mean: Floats
    scale: Floats
    groups: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int64] | None

    def __len__(self) -> int:
        return len(self.mean)


@dataclass(frozen=True, eq=False, kw_only=True)
class ArrayForecast:
    """One caller's forecasts, in the order of their series."""

    values: Floats  # [series, h]
    scale: Floats
    groups: npt.NDArray[np.int64]
    trace: ScheduleTrace | None


class ArrayForecaster:
    """Forecasts what follows histories given as arrays. Nothing it holds ever changes, so threads may share it.

    Attributes:
        fitted: The model.
        fill: What takes the place of missing values, if anything does.
        quick_rows: Rows (windows of single series) that a forecast without a trace takes at most 5 ms for.
        row_seconds: Processor time for each row of a large batch; 0 where it was not measured.
    """

    def __init__(self, fitted: Fitted, *, fill: Fill | None = None, measure: bool = False) -> None:
        """Prepares the lookups.

        Args:
            fitted: The model.
            fill: What to put in the place of missing values; none: they are errors.
            measure: Whether to time the model now, for `quick_rows` and `row_seconds`; a fraction of a second.
        """
        self.fitted = fitted
        self.fill = fill
        self._names = fitted.tail.series
        self._mean, self._scale = fitted.scaler.mean.numpy(), fitted.scaler.std.numpy()
        self._groups = fitted.score_groups(fitted.tail).numpy()
        # Should one of these move, it is as strange as one that the fit did not see.
        self._waiting = fitted.constant_at_fit.numpy()
        # Whatever is no larger than this, of any known series, is near enough to its mean and to its other values.
        self._near = float((MAX_STANDARDIZED * self._scale - np.abs(self._mean)).min(initial=np.inf)) / 2
        self._known_half_widths: dict[Level, Floats] = {}
        # Random partitions are drawn row by row: beside others a row would get another one.
        self._together = not fitted.config.scheduling.draws_at_random
        timed = measure and self._together
        cost = _measure_cost(fitted.inference_copy, fitted.config.n_series or 1) if timed else _Cost(0, 0.0)
        self.quick_rows, self.row_seconds = cost

    def read(self, names: Sequence[Name], histories: Sequence[Floats] | Floats) -> Histories:
        """Check histories, each in the order of time; of a joint model's series, all ending together.

        Args:
            names: What the series are called.
            histories: One array for each; a matrix, where all are of one length, is the quickest.

        Raises:
            DataError: Naming the series that stands in the way, and the cure.
        """
        if len(set(map(str, names))) < len(names):
            repeated = [name for name, count in Counter(map(str, names)).items() if count > 1]
            raise DataError(f"the series {listed(repeated)} is given more than once; give each once")
        largest = _largest(histories) if isinstance(histories, np.ndarray) else None
        if largest is None:
            histories = [self._complete(name, values) for name, values in zip(names, histories, strict=True)]
        lookback = self.fitted.config.input_size
        self._require_length(names, histories)
        rows = None
        if self.fitted.is_multivariate and tuple(names) != self._names:
            order = self._own_order(names)
            names, histories = self._names, [histories[place] for place in order]
            rows = np.argsort(order)
        mean, scale, groups = self._standards(names, histories)
        if isinstance(histories, np.ndarray) and histories.shape[1] >= lookback:
            tails = histories[:, -lookback:]
        else:
            tails = np.stack([_tail(values, lookback) for values in histories])
        is_near = largest is not None and largest <= self._near and mean is self._mean
        if self.fitted.forgets_levels:
            mean = tails[:, -1]
        read = Histories(tails=tails, mean=mean, scale=scale, groups=groups, rows=rows)
        if not is_near:
            self._refuse_far(names, tails, _standardised([read]))
        return read

    def forecast(self, requests: Sequence[Histories], record: Record = "nothing") -> list[ArrayForecast]:
        """Forecast what follows the histories of several callers, in one pass through the model."""
        if not self._together and len(requests) > 1:
            return [forecast for request in requests for forecast in self.forecast([request], record)]
        windows = torch.from_numpy(_standardised(requests)).unflatten(0, (-1, self.fitted.config.n_series or 1))
        found = self.fitted.inference_copy.forecast(windows, record=record)
        trace = None if found.trace is None else found.trace.arranged(lambda x: x.flatten(0, 1))
        values = found.values.flatten(0, 1).double().numpy()
        values *= np.concatenate([request.scale for request in requests])[:, None]
        values += np.concatenate([request.mean for request in requests])[:, None]
        parts, start = [], 0
        for request in requests:
            stop = start + len(request.mean)
            own, order = slice(start, stop), request.rows
            rows = own if order is None else start + order
            parts.append(
                ArrayForecast(
                    values=values[rows],
                    scale=request.scale if order is None else request.scale[order],
                    groups=request.groups if order is None else request.groups[order],
                    trace=None if trace is None else _some(trace, rows),
                )
            )
            start = stop
        return parts

    def bounds(self, forecast: ArrayForecast, bounds: Sequence[Bound]) -> dict[str, Floats]:
        """Intervals around a forecast, by column, as [series, h].

        Raises:
            ConfigError: When nothing was held out to measure intervals by.
            DataError: When too little was held out for a level.
        """
        if not bounds:
            return {}
        scale = forecast.scale[:, None]
        reach = {bound.level: self._half_widths(bound.level)[forecast.groups] * scale for bound in bounds}
        return {bound.column: forecast.values + bound.side * reach[bound.level] for bound in bounds}

    def has_level(self, level: Level) -> bool:
        """Whether enough was held out for an interval of that level."""
        scores = self.fitted.scores
        return scores is not None and scores.allow(level)

    def require_levels(self, bounds: Sequence[Bound]) -> None:
        """Refuse intervals that cannot be given, before any forecast is made.

        Raises:
            ConfigError: When nothing was held out to measure intervals by.
            DataError: When too little was held out for a level.
        """
        for bound in bounds:
            self._half_widths(bound.level)

    def _half_widths(self, level: Level) -> Floats:
        """Looked up once for each level; a cache around the method would keep a replaced model alive."""
        widths = self._known_half_widths.get(level)
        if widths is None:
            if len(self._known_half_widths) >= _MAX_LEVELS:
                self._known_half_widths.clear()
            # Another thread may clear what is kept at any time, so what is returned is not looked up there.
            self._known_half_widths[level] = widths = self._measured_half_widths(level)
        return widths

    def _measured_half_widths(self, level: Level) -> Floats:
        scores = self.fitted.require_scores()
        if not level:  # the median, which is the forecast itself
            return np.zeros((len(scores.counts), self.fitted.config.h))
        widths: Floats = scores.half_widths(level).numpy()
        return widths

    def _complete(self, name: Name, values: Floats) -> Floats:
        if _largest(values) is not None:
            return values
        if not len(values):
            raise DataError(f"series {quoted(name)} has no values; give its history, oldest first")
        missing = ~np.isfinite(values)
        if missing.any():
            if self.fill is None:
                place = int(missing.argmax())
                raise DataError(
                    f"series {quoted(name)} has a missing value at position {place} (counted from 0; "
                    f"{int(missing.sum())} in all); fill it in, or fit the model with fill='interpolate' or 'ffill'"
                )
            offsets = np.array([0, len(values)])
            if int(leading(values, offsets)[0]) == len(values):
                raise DataError(f"series {quoted(name)} has no number at all to fill from; leave it out")
            values = fill_missing(values, offsets, self.fill)[0]
        huge = np.abs(values) > MAX_VALUE
        if huge.any():
            raise DataError(
                f"series {quoted(name)} holds {float(values[huge.argmax()])}, too near the limits of floating point "
                f"(at most {MAX_VALUE:g}); correct it, or measure in a larger unit"
            )
        return values

    def _require_length(self, names: Sequence[Name], histories: Sequence[Floats] | Floats) -> None:
        lookback = self.fitted.config.input_size
        shortest = histories.shape[1] if isinstance(histories, np.ndarray) else min(map(len, histories))
        if shortest < lookback and (self.fitted.is_multivariate or not self.fitted.pad_short):
            purpose = f"a forecast from a look-back of {lookback}"
            require_length(_panel(names, histories), lookback, purpose, "give a longer history")

    def _own_order(self, names: Sequence[Name]) -> list[int]:
        """For each of the model's series, its place among the names given."""
        self.fitted.require_own(names)
        order: list[int] = self.fitted.places_of(names).argsort().tolist()
        return order

    def _standards(
        self, names: Sequence[Name], histories: Sequence[Floats] | Floats
    ) -> tuple[Floats, Floats, npt.NDArray[np.int64]]:
        """Mean, deviation and group of each series: as fitted if measured then, else by its own history."""
        if tuple(names) == self._names and not self._waiting.any():
            return self._mean, self._scale, self._groups
        index = self.fitted.places_of(names).numpy()
        mean, scale = self._mean[index], self._scale[index]
        groups = self._groups[index]
        places = np.flatnonzero((index < 0) | self._waiting[index]).tolist()
        if places:
            some = _panel([names[place] for place in places], [histories[place] for place in places])
            strange = self.fitted.unseen(some).numpy()
            own, unseen = Scaler.fit(some), np.array(places)[strange]
            mean[unseen], scale[unseen] = own.mean.numpy()[strange], own.std.numpy()[strange]
            # Strangers go by the last group, as in `Fitted.score_groups`.
            groups[unseen] = 0 if self.fitted.scores is None else len(self.fitted.scores.counts) - 1
        return mean, scale, groups

    def _refuse_far(self, names: Sequence[Name], tails: Floats, windows: npt.NDArray[np.float32]) -> None:
        if float(np.abs(windows).max()) < MAX_STANDARDIZED:
            return
        series = int(np.argmax(~(np.abs(windows) < MAX_STANDARDIZED).all(axis=1)))
        raise DataError(too_far(names[series], tails[series]))


class _Cost(NamedTuple):
    quick_rows: int
    row_seconds: float


def _measure_cost(model: LeapTSModel, n_series: int) -> _Cost:
    """Time the model on one window and on a large batch: a fixed cost, and a cost for each row."""
    many = max(2, _MAX_QUICK_ROWS // n_series)
    single, batch = (_pass_seconds(model, windows, n_series) for windows in (1, many))
    row_seconds = max((batch - single) / ((many - 1) * n_series), 1e-9)
    quick = int((_MAX_LOOP_SECONDS - single) / row_seconds) + n_series if single <= _MAX_LOOP_SECONDS else 0
    return _Cost(min(quick, _MAX_QUICK_ROWS) // n_series * n_series, batch / (many * n_series))


def _pass_seconds(model: LeapTSModel, windows: int, n_series: int) -> float:
    """Processor time of one forecast: the least of several, since other work may interrupt any of them."""
    generator = torch.Generator().manual_seed(0)
    history = torch.randn(windows, n_series, model.shape.lookback, generator=generator, dtype=torch.float32)
    seconds = []
    for _ in range(_TIMED_PASSES):
        started = time.thread_time()
        model.forecast(history)
        seconds.append(time.thread_time() - started)
    return min(seconds)


def _largest(values: Floats) -> float | None:
    """The largest magnitude; None where any is missing, infinite or huge, or where there are no values at all."""
    if not values.size:
        return None
    largest = float(np.abs(values).max())
    return largest if largest <= MAX_VALUE else None  # comparisons with NaN are false


def _standardised(requests: Sequence[Histories]) -> npt.NDArray[np.float32]:
    """The look-backs of several callers as the model takes them, row by row."""
    windows = np.concatenate([request.tails for request in requests])
    windows -= np.concatenate([request.mean for request in requests])[:, None]
    windows /= np.concatenate([request.scale for request in requests])[:, None]
    return windows.astype(np.float32)


def _panel(names: Sequence[Name], histories: Sequence[Floats] | Floats) -> Panel:
    """Arrays as a panel of integer steps, for what panels alone can do."""
    return Panel(
        values=torch.from_numpy(np.concatenate(histories)),
        offsets=torch.from_numpy(np.cumsum([0, *map(len, histories)])),
        series=tuple(names),
        first=np.ones(len(names), dtype=np.int64),
        freq=1,
    )


def _tail(values: Floats, steps: int) -> Floats:
    """The last steps; a history that has fewer is preceded by its first value."""
    if len(values) >= steps:
        return values[-steps:]
    return np.concatenate([np.full(steps - len(values), values[0]), values])


def _some(trace: ScheduleTrace, rows: Any) -> ScheduleTrace:
    index = rows if isinstance(rows, slice) else torch.from_numpy(rows)
    return trace.arranged(lambda x: x[index])
