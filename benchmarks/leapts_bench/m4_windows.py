"""Windows of M4 in different units, and windows with partly unknown targets."""

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

# Series change by about a tenth of their level in a horizon, so targets in this unit are about one.
_UNIT_OF_LEVEL = 0.1


@dataclass(frozen=True)
class LevelWindows:
    """Windows in units of the mean level of their history, so that an error counts as in SMAPE.

    The scale of a whole series would reveal whether its later values are larger than its earlier ones.
    """

    windows: Windows

    def __len__(self) -> int:
        return len(self.windows)

    def gather(self, index: Int64[Tensor, " batch"]) -> WindowBatch:
        """Return the windows with these indices."""
        batch = self.windows.gather(index)
        unit = _unit_of_level(batch.history)
        return WindowBatch(batch.history / unit, batch.target / unit)


@dataclass(frozen=True)
class LevelPredictor:
    """A predictor of windows in units of their level, called in the units of the data."""

    predictor: Predictor

    def predict(self, history: Float[Tensor, "batch variates lookback"]) -> Predicted:
        """Forecast each window."""
        unit = _unit_of_level(history)
        forecast = self.predictor.predict(history / unit)
        return Predicted(forecast.values * unit, forecast.leaps)


@dataclass(frozen=True)
class LogWindows:
    """Windows of logarithms: a difference is relative to the value, which is close to SMAPE."""

    windows: Windows

    def __len__(self) -> int:
        return len(self.windows)

    def gather(self, index: Int64[Tensor, " batch"]) -> WindowBatch:
        """Return the windows with these indices."""
        batch = self.windows.gather(index)
        return WindowBatch(_logs(batch.history), _logs(batch.target))


@dataclass(frozen=True)
class LogPredictor:
    """A predictor of logarithms, called in the units of the data."""

    predictor: Predictor

    def predict(self, history: Float[Tensor, "batch variates lookback"]) -> Predicted:
        """Forecast each window."""
        forecast = self.predictor.predict(_logs(history))
        return Predicted((forecast.values * _UNIT_OF_LEVEL).exp(), forecast.leaps)


def _logs(values: Float[Tensor, "batch variates steps"]) -> Float[Tensor, "batch variates steps"]:
    """Compute logarithms in tenths, like the level; all values of the competition are at least 10."""
    return values.log() / _UNIT_OF_LEVEL


def with_unknown_ends(
    values: Float[Tensor, " rows"], offsets: Int64[Tensor, " offsets"], steps: int
) -> tuple[Float[Tensor, " more_rows"], Int64[Tensor, " offsets"]]:
    """Extend every series by a number of unknown steps, NaN."""
    lengths = offsets.diff()
    moved = offsets + steps * torch.arange(len(offsets))
    longer = torch.full((int(moved[-1]),), torch.nan, dtype=values.dtype)
    longer[torch.arange(len(values)) + (moved - offsets)[:-1].repeat_interleave(lengths)] = values
    return longer, moved


def with_repeated_starts(
    values: Float[Tensor, " rows"], offsets: Int64[Tensor, " offsets"], steps: int
) -> tuple[Float[Tensor, " more_rows"], Int64[Tensor, " offsets"]]:
    """Pad every series with copies of its first value."""
    series = torch.arange(len(offsets) - 1).repeat_interleave(offsets.diff() + steps)
    rows = torch.arange(len(series)) - steps * (series + 1)
    return values[rows.maximum(offsets[series])], offsets + steps * torch.arange(len(offsets))


def _unit_of_level(history: Float[Tensor, "batch variates lookback"]) -> Float[Tensor, "batch variates 1"]:
    unit = _UNIT_OF_LEVEL * history.abs().mean(2, keepdim=True)
    return torch.where(unit > 0, unit, 1.0)


class UnitOfWindows(NamedTuple):
    """Windows in a unit, and a wrapper that calls their predictor in the units of the data."""

    windows: Callable[[Windows], WindowSource]
    predictor: Callable[[Predictor], Predictor]


UNITS_OF_WINDOWS: dict[Unit, UnitOfWindows] = {
    "level": UnitOfWindows(LevelWindows, LevelPredictor),
    "log": UnitOfWindows(LogWindows, LogPredictor),
}
