"""Reversible instance normalisation: each window is centred and scaled by itself, and the forecast mapped back."""

from typing import NamedTuple, Protocol

import torch
from jaxtyping import Float
from torch import Tensor

# Keeps a constant window finite: it normalises to zero and its forecast comes back as the constant.
_VARIANCE_FLOOR = 1e-5


class WindowStatistics(NamedTuple):
    """What was taken out of each window, and what puts it back."""

    center: Float[Tensor, "*rows 1"]
    scale: Float[Tensor, "*rows 1"]

    def normalize(self, history: Float[Tensor, "*rows lookback"]) -> Float[Tensor, "*rows lookback"]:
        """Centre and scale a window."""
        return (history - self.center) / self.scale

    def restore(self, forecast: Float[Tensor, "*rows horizon"]) -> Float[Tensor, "*rows horizon"]:
        """Bring a forecast back to the window's own units."""
        return torch.addcmul(self.center, forecast, self.scale)


class Normalization(Protocol):
    """How a window's centre and scale are found."""

    def __call__(self, history: Float[Tensor, "*rows lookback"]) -> WindowStatistics:
        """Measure every window."""


def by_mean(history: Float[Tensor, "*rows lookback"]) -> WindowStatistics:
    """Centre on the window's mean: for series that return to their level."""
    mean = history.mean(-1, keepdim=True)
    return WindowStatistics(mean, _deviation(history - mean))


def by_last_value(history: Float[Tensor, "*rows lookback"]) -> WindowStatistics:
    """Centre on the window's last value: for series that wander, such as prices or case counts."""
    mean = history.mean(-1, keepdim=True)
    return WindowStatistics(history[..., -1:], _deviation(history - mean))


def unnormalized(history: Float[Tensor, "*rows lookback"]) -> WindowStatistics:
    """Leave the window as it is: for bounded series whose absolute level carries meaning."""
    first = history[..., :1]
    return WindowStatistics(torch.zeros_like(first), torch.ones_like(first))


def _deviation(centered: Float[Tensor, "*rows lookback"]) -> Float[Tensor, "*rows 1"]:
    return (centered.square().mean(-1, keepdim=True) + _VARIANCE_FLOOR).sqrt()
