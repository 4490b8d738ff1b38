"""Forecasters of a task: SeasonalNaive, LeapTS with its defaults, and FLAIR from its package."""

from collections.abc import Iterator
from importlib import import_module
from statistics import NormalDist
from typing import Any, Protocol

import numpy as np

from leapts import LeapTS
from leapts.integrations.quantiles import quantile_arrays
from leapts_bench.gift.series import LEVELS, Quantiles, Task

_Z = np.array([NormalDist().inv_cdf(level) for level in LEVELS])


class Forecaster(Protocol):
    """A model that forecasts every window of a task."""

    parameters: int

    def forecasts(self, task: Task) -> Iterator[Quantiles]:
        """Fit on the past of the first window, then forecast each window from its own past."""


class SeasonalNaive:
    """The benchmark's baseline: the last season repeated, with normal quantiles.

    Args:
        history: Number of last values to use; by default all.
    """

    parameters = 0

    def __init__(self, history: int | None = None) -> None:
        self.history = history

    def forecasts(self, task: Task) -> Iterator[Quantiles]:
        """Forecast each window."""
        ahead = np.arange(task.horizon)
        seasons_ahead = np.sqrt(ahead // task.season + 1)
        for number in range(task.count):
            past = task.past(number).filled()
            past = past if self.history is None else past.tail(self.history)
            point = past.last(task.season)[:, ahead % task.season]
            spread = np.sqrt(past.mean_seasonal_difference(task.season, power=2))[:, None] * seasons_ahead
            yield point[:, None] + _Z[:, None] * spread[:, None]


class LeapTSDefaults:
    """LeapTS, fitted once with its defaults; with several members, the mean of their quantiles.

    Options are given only where a fit would be refused without them: those of the adapters to GluonTS and fev.
    """

    def __init__(self, seed: int, members: int = 1) -> None:
        self.seeds = range((seed - 1) * members + 1, seed * members + 1)
        self.parameters = 0

    def forecasts(self, task: Task) -> Iterator[Quantiles]:
        """Fit, then forecast each window."""
        past = task.past(0)
        known = task.frame(past)
        models = [
            LeapTS(task.horizon, freq=task.freq, random_seed=seed, fill="ffill").fit(known) for seed in self.seeds
        ]
        self.parameters = sum(weights.numel() for one in models for weights in one.predictor_.model.parameters())
        for number in range(task.count):
            history = known if number == 0 else task.frame(task.past(number))
            yield np.mean([self._quantiles(model, history, task) for model in models], axis=0)

    @staticmethod
    def _quantiles(model: LeapTS, history: Any, task: Task) -> Quantiles:
        arrays = quantile_arrays(model, history, LEVELS)
        return np.stack([arrays[name][1:] for name in range(len(task.series))])


class LeapTSZero:
    """LeapTS-Zero: the pretrained network, without any training on the task."""

    parameters = 0

    def forecasts(self, task: Task) -> Iterator[Quantiles]:
        """Forecast each window at once."""
        model = LeapTS.pretrained(task.horizon, freq=task.freq, fill="ffill")
        for number in range(task.count):
            yield LeapTSDefaults._quantiles(model, task.frame(task.past(number)), task)
            self.parameters = sum(weights.numel() for weights in model.predictor_.model.parameters())


class Flair:
    """FLAIR (`pip install flaircast`): its sample paths, as in its own GIFT-Eval submission."""

    parameters = 0

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def forecasts(self, task: Task) -> Iterator[Quantiles]:
        """Forecast each window, one series at a time."""
        forecast = import_module("flaircast").forecast

        frequency = task.name.split("/")[1]
        for number in range(task.count):
            past = task.past(number)
            yield np.stack(
                [
                    np.quantile(forecast(values, task.horizon, frequency, seed=self.seed + place), LEVELS, axis=0)
                    for place, values in enumerate(np.split(past.values, past.ends[:-1]))
                ]
            )
