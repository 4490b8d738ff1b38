"""Reversible instance normalization: each window is centered and scaled, and the forecast mapped back."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from leapts.config import NormalizationName

# A constant window normalizes to zero instead of NaN. In units of the standardized series, which the network is fed.
_MIN_STANDARD_DEVIATION = 3e-3

History = Float[Tensor, "*rows lookback"]


class Units(NamedTuple):
    """The center and scale of windows."""

    center: Float[Tensor, "*rows 1"]
    scale: Float[Tensor, "*rows 1"]

    def restore(self, forecast: Float[Tensor, "*rows outputs"]) -> Float[Tensor, "*rows outputs"]:
        """Map a forecast back to the units of the window."""
        return (forecast * self.scale).add_(self.center)


class NormalizedWindow(NamedTuple):
    """A normalized window, with the units that restore it."""

    values: Float[Tensor, "*rows inputs"]  # the look-back; then its mask, if steps may be unknown
    units: Units


Normalization = Callable[[Tensor], NormalizedWindow]


def by_mean(history: History) -> NormalizedWindow:
    """Subtract the mean, for mean-reverting series, and divide by the standard deviation."""
    mean = history.mean(-1, keepdim=True)
    centered = history - mean
    scale = _standard_deviation(centered)
    return NormalizedWindow(centered / scale, Units(mean, scale))


def by_last_value(history: History) -> NormalizedWindow:
    """Subtract the last value, for random walks, and divide by the standard deviation."""
    last = history[..., -1:]
    scale = _standard_deviation(history - history.mean(-1, keepdim=True))
    return NormalizedWindow((history - last) / scale, Units(last, scale))


def shifted(history: History) -> NormalizedWindow:
    """Subtract the last value only; does not generalize to wider swings than those in training."""
    last = history[..., -1:]
    return NormalizedWindow(history - last, Units(last, torch.ones_like(last)))


def unnormalized(history: History) -> NormalizedWindow:
    """Keep the window unchanged, for bounded series whose absolute level matters."""
    first = history[..., :1]
    return NormalizedWindow(history, Units(torch.zeros_like(first), torch.ones_like(first)))


def masked(history: History, kind: NormalizationName) -> NormalizedWindow:
    """Normalize by the known steps alone: NaN becomes zero, and the mask of known steps follows the values."""
    known = ~history.isnan()
    mask, values = known.to(history.dtype), history.nan_to_num(0.0)
    count = mask.sum(-1, keepdim=True).clamp(min=1)
    mean = values.sum(-1, keepdim=True) / count
    scale, center = torch.ones_like(mean), torch.zeros_like(mean)
    if kind == "mean":
        center = mean
    elif kind != "none":
        steps = torch.arange(1, history.shape[-1] + 1, device=history.device)
        center = values.gather(-1, (mask * steps).argmax(-1, keepdim=True))  # the last known value
    if kind in ("mean", "last"):
        norm = torch.linalg.vector_norm((values - mean) * mask, dim=-1, keepdim=True)
        scale = torch.clamp(norm * count**-0.5, min=_MIN_STANDARD_DEVIATION)
    return NormalizedWindow(torch.cat([(values - center) / scale * mask, mask], -1), Units(center, scale))


def _standard_deviation(centered: History) -> Float[Tensor, "*rows 1"]:
    # By way of the norm, which takes one pass over the window.
    norm: Tensor = torch.linalg.vector_norm(centered, dim=-1, keepdim=True)
    return torch.clamp(norm * centered.shape[-1] ** -0.5, min=_MIN_STANDARD_DEVIATION)
