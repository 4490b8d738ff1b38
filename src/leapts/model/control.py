"""The control signal: a leap's outcome in compressed form, and its increments, which move the state."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from leapts.model.layers import TanhLinear

Length = Float[Tensor, " rows"]  # in steps
Scales = Float[Tensor, "rows scales"]
Segment = Float[Tensor, "rows outputs"]
Signal = Float[Tensor, "rows control"]


class Control(NamedTuple):
    """The control signal after a leap, and its increments since the leap before."""

    signal: Signal
    increments: Float[Tensor, "rows control+1"]  # of the signal, and last of time


class ControlSignal(nn.Module):
    """Compresses a leap's outcome into the control signal."""

    def __init__(
        self, *, horizon: int, outputs: int, scales: int, summary: int, control: int, temporal_clip: tuple[float, float]
    ) -> None:
        super().__init__()
        self.size = control
        self.horizon = horizon
        self.temporal_clip = temporal_clip
        self.summary = TanhLinear(outputs, summary)
        self.signal = TanhLinear(2 + scales + summary, control)

    def forward(self, left: Length, length: Length, one_hot: Scales, segment: Segment, previous: Signal) -> Control:
        """Compute the signal from a leap's scale and masked segment; at first, `previous` is zero."""
        shares = torch.stack([left, length], 1) / self.horizon
        signal = self.signal(torch.cat([shares, one_hot, self.summary(segment)], 1))
        return Control(signal, torch.cat([signal - previous, shares[:, 1:].clamp(*self.temporal_clip)], 1))
