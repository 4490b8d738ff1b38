"""Forecasters of the everyday sets: simple forecasts, statsforecast, and LeapTS with and without learned quantiles."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from jaxtyping import Float64

from leapts import LeapTS
from leapts.data.frequency import seasonal_period
from leapts.data.panel import Panel
from leapts.forecasting.baselines import Baseline
from leapts.forecasting.forecast import Forecast, Samples
from leapts.forecasting.held_out import held_out_part
from leapts.forecasting.intervals import Calibration
from leapts.forecasting.predictor import Predictor
from leapts_bench.gift.series import LEVELS, Floats, Quantiles, Task

WIDE_LEVELS = (0.025, *LEVELS, 0.975)
SAMPLES = 200
_MAX_WINDOWS = 4096  # of the calibration of release 0.1
_WINDOWS_FOR_OWN_GROUP = 30  # the same


class WindowForecast(NamedTuple):
    """The forecast of one window of every series."""

    point: Float64[np.ndarray, "series horizon"]
    quantiles: Quantiles | None = None  # at `WIDE_LEVELS`
    paths: Float64[np.ndarray, "series horizon samples"] | None = None


class WindowForecaster(Protocol):
    """A model that forecasts every window of a task."""

    parameters: int

    def forecasts(self, task: Task) -> Iterator[WindowForecast]:
        """Forecast each window from its own past."""


@dataclass
class PointForecaster:
    """A baseline of `leapts backtest`, fitted to the whole past of each window."""

    baseline: Baseline
    parameters: int = 0

    def forecasts(self, task: Task) -> Iterator[WindowForecast]:
        """Forecast each window."""
        for number in range(task.count):
            past = task.past(number).filled()
            offsets = torch.from_numpy(np.append(0, past.ends))
            yield WindowForecast(self.baseline.forecast(torch.from_numpy(past.values), offsets, task.horizon).numpy())


class LeapTSForecaster:
    """LeapTS by its defaults, fitted once to the past of the first window.

    Args:
        seed: Seed of the fit.
        symmetric: Whether a point forecast is trained instead, with the symmetric intervals of release 0.1.
    """

    def __init__(self, seed: int, *, symmetric: bool = False) -> None:
        self.seed, self.symmetric, self.parameters = seed, symmetric, 0

    def forecasts(self, task: Task) -> Iterator[WindowForecast]:
        """Fit, then forecast each window."""
        past = task.past(0)
        options: dict[str, Any] = {"fill": "ffill"}
        if self.symmetric:
            options |= {"loss": "huber", "support": "real"}
        model = LeapTS(task.horizon, freq=task.freq, random_seed=self.seed, **options).fit(task.frame(past))
        predictor = model.predictor_
        if self.symmetric:
            predictor = with_symmetric_intervals(predictor, model.read(task.frame(past)))
        self.parameters = sum(weights.numel() for weights in predictor.model.parameters())
        for number in range(task.count):
            windows = predictor.windows(model.read(task.frame(task.past(number))))
            forecast = predictor.predict(windows).select(range(len(task.series)))
            yield self._of(forecast, has_intervals=predictor.has_intervals)

    def _of(self, forecast: Forecast, *, has_intervals: bool) -> WindowForecast:
        if not has_intervals:
            return WindowForecast(forecast.values.numpy())
        columns = list(forecast.columns(quantiles=WIDE_LEVELS).values())
        paths = None if self.symmetric else forecast.sample_paths(Samples(SAMPLES, self.seed)).numpy()
        return WindowForecast(columns[0], np.stack(columns[1:], 1), paths)


def with_symmetric_intervals(predictor: Predictor, panel: Panel) -> Predictor:
    """Replace the calibration by that of release 0.1: half-widths from absolute errors on the held-out windows.

    They are of all series together, unless every series has 30 windows; a fit without held-out windows has none.

    Args:
        predictor: A fitted point forecast.
        panel: The data of the fit.
    """
    chosen = next((one.value for one in predictor.auto_config if one.option == "val_size"), 0)
    held_out = held_out_part(panel, chosen, predictor.config)
    if predictor.calibration is None or held_out is None:
        return replace(predictor, calibration=None)
    windows = predictor.sliding_windows(held_out)
    index = torch.arange(len(windows))[:: max(1, len(windows) // _MAX_WINDOWS)]
    batch = windows.gather(index)
    forecast: Floats = predictor.run_network(batch).values.numpy()
    errors = torch.from_numpy(np.abs(forecast - batch.target.numpy()))  # [windows, variates, h]
    places = predictor.places_of(held_out.series)[windows.series_of(index)]
    errors, fitted = errors.flatten(0, 1), len(predictor.tail)
    own = torch.bincount(places, minlength=fitted)
    groups = [errors[places == one] for one in range(fitted)] if int(own.min()) >= _WINDOWS_FOR_OWN_GROUP else []
    groups = [*groups, errors] if fitted > 1 else [errors]
    scores = torch.cat([group.sort(0).values for group in groups])
    counts = torch.tensor([len(group) for group in groups])
    return replace(predictor, calibration=Calibration.from_tensors({"scores": scores, "counts": counts}, ()))


def season_of(task: Task) -> int:
    """Season that a user of `leapts backtest` would get for the frequency of a task."""
    return seasonal_period(task.freq)
