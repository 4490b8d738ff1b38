"""Reversible instance normalization: each window is centered and scaled, and outputs are mapped back to its units.

Outputs are what coarse forecast and leaps write for each step: a point forecast, or the numbers of its quantiles.
"""

from collections.abc import Callable, Sequence
from statistics import NormalDist
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from leapts.config import NormalizationName

# A constant window normalizes to zero instead of NaN. In units of the standardized series, which the network is fed.
_MIN_STANDARD_DEVIATION = 3e-3
_MIN_SPREAD = 1e-4  # in standard deviations of the window

History = Float[Tensor, "*rows lookback"]
Written = Float[Tensor, "rows written"]
Outputs = Float[Tensor, "rows outputs"]


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


class PlainOutputs(nn.Module):
    """Restores the units of the window: a point forecast, or parameters that a loss makes a distribution of."""

    features = 0  # numbers that the encoder writes once for a window
    below = 0  # quantiles below the median

    def __init__(self, per_step: int = 1) -> None:
        super().__init__()
        self.written_per_step = per_step
        self.levels: Tensor
        self.register_buffer("levels", torch.tensor([0.5], device="cpu"), persistent=False)

    def point(self, written: Written, units: Units) -> Outputs:
        """Restore the units of every output."""
        return units.restore(written)

    def forward(self, written: Written, features: Tensor, units: Units) -> Outputs:  # noqa: ARG002
        """Restore the units of every output."""
        return units.restore(written)


class QuantileOutputs(nn.Module):
    """Computes quantiles that never cross.

    Coarse forecast and leaps write two numbers for each step: the median and the spread around it. The encoder writes
    for each window how far each quantile is from the median in units of that spread, by positive increments.
    """

    written_per_step = 2

    def __init__(self, quantiles: Sequence[float]) -> None:
        super().__init__()
        self.features = len(quantiles) - 1
        self.below = list(quantiles).index(0.5)
        self.levels: Tensor
        self.start: Tensor
        self.register_buffer("levels", torch.tensor(quantiles, device="cpu"), persistent=False)
        # Without features, the quantiles are those of a normal distribution.
        scores = torch.tensor([NormalDist().inv_cdf(quantile) for quantile in quantiles], device="cpu")
        self.register_buffer("start", scores.diff().expm1().log(), persistent=False)  # the inverse of softplus

    def point(self, written: Written, units: Units) -> Outputs:
        """Restore the units of the median of every step."""
        return units.restore(written[:, ::2])

    def forward(self, written: Written, features: Float[Tensor, "rows increments"], units: Units) -> Outputs:
        """Compute the quantiles of every step, step after step."""
        increments = F.softplus(features + self.start)
        below = increments[:, : self.below].flip(1).cumsum(1).flip(1)
        above = increments[:, self.below :].cumsum(1)
        distances = torch.cat([-below, torch.zeros_like(written[:, :1]), above], 1)
        # Copied first: softplus takes fifteen times as long on every second number of a row.
        spread = (F.softplus(written[:, 1::2].contiguous()) + _MIN_SPREAD) * units.scale
        median = self.point(written, units).unsqueeze(2)
        return (spread.unsqueeze(2) * distances.unsqueeze(1)).add_(median).flatten(1)
