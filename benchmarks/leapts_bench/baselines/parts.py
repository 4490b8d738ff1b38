"""Parts that several of our own peers are made of."""

from typing import NamedTuple

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

_LEAST_VARIANCE = 1e-5


class WindowScale(NamedTuple):
    """A window's own mean and deviation, taken out before a network and put back after it."""

    mean: Float[Tensor, "batch variates 1"]
    deviation: Float[Tensor, "batch variates 1"]

    @classmethod
    def of(cls, history: Float[Tensor, "batch variates lookback"]) -> "WindowScale":
        """Of every variate of every window."""
        variance = history.var(2, keepdim=True, correction=0)
        return cls(history.mean(2, keepdim=True), (variance + _LEAST_VARIANCE).sqrt())

    def apply(self, values: Float[Tensor, "batch variates steps"]) -> Float[Tensor, "batch variates steps"]:
        """To mean 0 and deviation 1."""
        return (values - self.mean) / self.deviation

    def undo(self, values: Float[Tensor, "batch variates steps"]) -> Float[Tensor, "batch variates steps"]:
        """Back to the units of the history."""
        return values * self.deviation + self.mean


class MovingAverage(nn.Module):
    """A centred mean over an odd number of steps; the ends are repeated, so the length stays."""

    def __init__(self, kernel: int) -> None:
        super().__init__()
        self.kernel = kernel

    def forward(self, x: Float[Tensor, "batch variates steps"]) -> Float[Tensor, "batch variates steps"]:
        """The trend of every variate."""
        edge = self.kernel // 2
        return F.avg_pool1d(F.pad(x, (edge, edge), mode="replicate"), self.kernel, stride=1)
