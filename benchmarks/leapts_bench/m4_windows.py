"""Windows of M4 in units of their own, and windows that go on after the ends of their series."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from leapts.data.windows import WindowBatch, Windows
from leapts.training.loop import WindowSource
from leapts_bench.runs import Unit
from leapts_bench.scoring import Predicted, Predictor

# Series change by some tenth of their level in a horizon: counted in that, what is learned is about one.
_UNIT_OF_LEVEL = 0.1


@dataclass(frozen=True)
class LevelWindows:
    """Windows in units of the level of their own histories, so that an error counts as it does in SMAPE.

    A scale of the whole series would not do: it knows of the values to come whether they are larger than those before.
    """

    windows: Windows

    def __len__(self) -> int:
        return len(self.windows)

    def gather(self, index: Int64[Tensor, " batch"]) -> WindowBatch:
        """The windows of these numbers."""
        batch = self.windows.gather(index)
        unit = _unit_of_level(batch.history)
        return WindowBatch(batch.history / unit, batch.target / unit)


@dataclass(frozen=True)
class LevelPredictor:
    """A predictor of windows in units of their level, asked in the units of the data."""

    predictor: Predictor

    def predict(self, history: Float[Tensor, "batch variates lookback"]) -> Predicted:
        """The forecast of each window."""
        unit = _unit_of_level(history)
        forecast = self.predictor.predict(history / unit)
        return Predicted(forecast.values * unit, forecast.leaps)


@dataclass(frozen=True)
class LogWindows:
    """Windows of logarithms: a difference is then a share of the value itself, which is close to SMAPE."""

    windows: Windows

    def __len__(self) -> int:
        return len(self.windows)

    def gather(self, index: Int64[Tensor, " batch"]) -> WindowBatch:
        """The windows of these numbers."""
        batch = self.windows.gather(index)
        return WindowBatch(_logs(batch.history), _logs(batch.target))


@dataclass(frozen=True)
class LogPredictor:
    """A predictor of logarithms, asked in the units of the data."""

    predictor: Predictor

    def predict(self, history: Float[Tensor, "batch variates lookback"]) -> Predicted:
        """The forecast of each window."""
        forecast = self.predictor.predict(_logs(history))
        return Predicted((forecast.values * _UNIT_OF_LEVEL).exp(), forecast.leaps)


def _logs(values: Float[Tensor, "batch variates steps"]) -> Float[Tensor, "batch variates steps"]:
    """In tenths, like the level; all values of the competition are 10 and more."""
    return values.log() / _UNIT_OF_LEVEL


def with_unknown_ends(
    values: Float[Tensor, " rows"], offsets: Int64[Tensor, " offsets"], steps: int
) -> tuple[Float[Tensor, " more_rows"], Int64[Tensor, " offsets"]]:
    """The same series, each followed by so many steps that are not known, NaN."""
    lengths = offsets.diff()
    moved = offsets + steps * torch.arange(len(offsets))
    longer = torch.full((int(moved[-1]),), torch.nan, dtype=values.dtype)
    longer[torch.arange(len(values)) + (moved - offsets)[:-1].repeat_interleave(lengths)] = values
    return longer, moved


def with_repeated_starts(
    values: Float[Tensor, " rows"], offsets: Int64[Tensor, " offsets"], steps: int
) -> tuple[Float[Tensor, " more_rows"], Int64[Tensor, " offsets"]]:
    """The same series, each after its first value so many times."""
    series = torch.arange(len(offsets) - 1).repeat_interleave(offsets.diff() + steps)
    rows = torch.arange(len(series)) - steps * (series + 1)
    return values[rows.maximum(offsets[series])], offsets + steps * torch.arange(len(offsets))


def _unit_of_level(history: Float[Tensor, "batch variates lookback"]) -> Float[Tensor, "batch variates 1"]:
    unit = _UNIT_OF_LEVEL * history.abs().mean(2, keepdim=True)
    return torch.where(unit > 0, unit, 1.0)


class UnitOfWindows(NamedTuple):
    """Windows in a unit, and what asks a predictor of such windows in the units of the data."""

    windows: Callable[[Windows], WindowSource]
    predictor: Callable[[Predictor], Predictor]


UNITS_OF_WINDOWS: dict[Unit, UnitOfWindows] = {
    "level": UnitOfWindows(LevelWindows, LevelPredictor),
    "log": UnitOfWindows(LogWindows, LogPredictor),
}
