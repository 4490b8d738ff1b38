"""Reversible instance normalisation: each window is centred and scaled by itself, and the forecast mapped back."""

from typing import NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

# Keeps a constant window finite: it normalises to zero and its forecast comes back near the constant. In units of the
# standardised series, since that is what the model is fed.
_SMALLEST_DEVIATION = 3e-3


class NormalizedWindow(NamedTuple):
    """A window without its level and spread, and what puts them back."""

    values: Float[Tensor, "*rows lookback"]
    center: Float[Tensor, "*rows 1"]
    scale: Float[Tensor, "*rows 1"]

    def restore(self, forecast: Float[Tensor, "*rows horizon"]) -> Float[Tensor, "*rows horizon"]:
        """Bring a forecast back to the window's own units."""
        return (forecast * self.scale).add_(self.center)


@runtime_checkable
class Normalization(Protocol):
    """How a window's centre and scale are found."""

    def __call__(self, history: Float[Tensor, "*rows lookback"]) -> NormalizedWindow:
        """Normalise every window."""


def by_mean(history: Float[Tensor, "*rows lookback"]) -> NormalizedWindow:
    """Centre on the window's mean: for series that return to their level."""
    mean = history.mean(-1, keepdim=True)
    centered = history - mean
    scale = _deviation(centered)
    return NormalizedWindow(centered / scale, mean, scale)


def by_last_value(history: Float[Tensor, "*rows lookback"]) -> NormalizedWindow:
    """Centre on the window's last value: for series that wander, such as prices or case counts."""
    last = history[..., -1:]
    scale = _deviation(history - history.mean(-1, keepdim=True))
    return NormalizedWindow((history - last) / scale, last, scale)


def shifted(history: Float[Tensor, "*rows lookback"]) -> NormalizedWindow:
    """Count from the window's last value, and keep its spread: for windows in units of their own.

    It does not carry over to swings that are wider than those it was learned on.
    """
    last = history[..., -1:]
    return NormalizedWindow(history - last, last, torch.ones_like(last))


def unnormalized(history: Float[Tensor, "*rows lookback"]) -> NormalizedWindow:
    """Leave the window as it is: for bounded series whose absolute level carries meaning."""
    first = history[..., :1]
    return NormalizedWindow(history, torch.zeros_like(first), torch.ones_like(first))


def _deviation(centered: Float[Tensor, "*rows lookback"]) -> Float[Tensor, "*rows 1"]:
    # The root of the mean square, through the norm: one pass over the window.
    norm: Tensor = torch.linalg.vector_norm(centered, dim=-1, keepdim=True)
    return torch.clamp(norm * centered.shape[-1] ** -0.5, min=_SMALLEST_DEVIATION)
