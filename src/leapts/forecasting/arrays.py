"""Forecasts from plain arrays, for the server."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch

from leapts.config import Fill
from leapts.data.arrays import Floats, Name
from leapts.forecasting.forecast import Forecast, ForecastWindows
from leapts.forecasting.intervals import Bound, Level, require_scores
from leapts.forecasting.predictor import Predictor
from leapts.model import LeapTSModel, ScheduleTrace
from leapts.model.network import Record

_MAX_LOOP_SECONDS = 0.005  # processor time for which a forecast may hold up a server's event loop
_MAX_QUICK_ROWS = 512
_TIMED_PASSES = 3


@dataclass(frozen=True, eq=False, kw_only=True)
class Histories:
    """What one caller wants forecast."""

    windows: ForecastWindows
    names: tuple[Name, ...]

    @property
    def rows(self) -> None:
        return None

    def __len__(self) -> int:
        return len(self.windows)


@dataclass(frozen=True, eq=False, kw_only=True)
class ArrayForecast:
    """One caller's forecasts, in the order of their series."""

    forecast: Forecast

    @property
    def values(self) -> Floats:
        return self.forecast.values.numpy()

    @property
    def trace(self) -> ScheduleTrace | None:
        return self.forecast.trace


class ArrayForecaster:
    """Forecasts what follows histories given as arrays."""

    def __init__(self, fitted: Predictor, *, fill: Fill | None = None, measure: bool = False) -> None:
        self.fitted = fitted
        self.fill = fill
        timed = measure and not fitted.config.scheduling.draws_at_random
        cost = _measure_cost(fitted.inference_copy, fitted.config.n_series or 1) if timed else _Cost(0, 0.0)
        self.quick_rows, self.row_seconds = cost

    def read(self, names: Sequence[Name], histories: Sequence[Floats] | Floats) -> Histories:
        """Check and scale histories."""
        windows = self.fitted.windows_from_arrays(names, histories, fill=self.fill)
        return Histories(windows=windows, names=tuple(names))

    def forecast(self, requests: Sequence[Histories], record: Record = "nothing") -> list[ArrayForecast]:
        """Forecast what follows the histories of several callers, in one pass through the model."""
        found = self.fitted.predict_together([request.windows for request in requests], record)
        return [
            ArrayForecast(forecast=forecast.select(request.names))
            for forecast, request in zip(found, requests, strict=True)
        ]

    def bounds(self, forecast: ArrayForecast, bounds: Sequence[Bound]) -> dict[str, Floats]:
        """Intervals around a forecast, by column, as [series, h]."""
        if not bounds:
            return {}
        one = forecast.forecast
        around = require_scores(self.fitted.scores).around(one.values, one.scale, bounds, one.groups)
        return {name: values.numpy() for name, values in around.items()}

    def has_level(self, level: Level) -> bool:
        """Whether enough was held out for an interval of that level."""
        return self.fitted.scores is not None and self.fitted.scores.allow(level)

    def require_levels(self, bounds: Sequence[Bound]) -> None:
        """Refuse intervals that cannot be given, before any forecast is made."""
        for bound in bounds:
            if bound.level:
                require_scores(self.fitted.scores).half_widths(bound.level)
            else:
                require_scores(self.fitted.scores)


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
