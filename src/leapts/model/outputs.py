"""Outputs: from the numbers that coarse forecast and leaps write for a step to a point forecast or quantiles."""

from collections.abc import Sequence
from statistics import NormalDist

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from leapts.model.normalization import Units

Written = Float[Tensor, "rows written"]
Outputs = Float[Tensor, "rows outputs"]

_MIN_SPREAD = 1e-4  # in standard deviations of the window


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
        spread = (F.softplus(written[:, 1::2]) + _MIN_SPREAD) * units.scale
        median = self.point(written, units).unsqueeze(2)
        return torch.addcmul(median, spread.unsqueeze(2), distances.unsqueeze(1)).flatten(1)
