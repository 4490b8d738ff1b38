"""Layers that our own baselines share."""

from typing import NamedTuple

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

_LEAST_VARIANCE = 1e-5


class WindowScale(NamedTuple):
    """Mean and standard deviation of a window, removed before a network and restored after it."""

    mean: Float[Tensor, "batch variates 1"]
    deviation: Float[Tensor, "batch variates 1"]

    @classmethod
    def of(cls, history: Float[Tensor, "batch variates lookback"]) -> "WindowScale":
        """Compute mean and standard deviation of every series of every window."""
        variance = history.var(2, keepdim=True, correction=0)
        return cls(history.mean(2, keepdim=True), (variance + _LEAST_VARIANCE).sqrt())

    def apply(self, values: Float[Tensor, "batch variates steps"]) -> Float[Tensor, "batch variates steps"]:
        """Normalize to mean 0 and standard deviation 1."""
        return (values - self.mean) / self.deviation

    def undo(self, values: Float[Tensor, "batch variates steps"]) -> Float[Tensor, "batch variates steps"]:
        """Restore the units of the history."""
        return values * self.deviation + self.mean


class MovingAverage(nn.Module):
    """A centered moving average over an odd number of steps; the ends are repeated, so the length stays."""

    def __init__(self, kernel: int) -> None:
        super().__init__()
        self.kernel = kernel

    def forward(self, x: Float[Tensor, "batch variates steps"]) -> Float[Tensor, "batch variates steps"]:
        """Compute the trend of every series."""
        edge = self.kernel // 2
        return F.avg_pool1d(F.pad(x, (edge, edge), mode="replicate"), self.kernel, stride=1)
