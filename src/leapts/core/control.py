"""What a leap tells the state: the summary of its segment, the control signal, and the two increments."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from leapts.core.layers import SquashedLinear


class Outcome(NamedTuple):
    """What a leap did, as seen right after it."""

    left: Float[Tensor, "rows 1"]  # as a share of the horizon, as the length is
    length: Float[Tensor, "rows 1"]
    scale: Float[Tensor, "rows scales"]  # one-hot
    segment: Float[Tensor, "rows numbers"]  # as written, after the mask


class Drive(NamedTuple):
    """What carries a state from one leap to the next."""

    control: Float[Tensor, "rows control"]
    increments: Float[Tensor, "rows control+1"]  # of the control signal, and last of time


class ControlSignal(nn.Module):
    """Compresses a leap's outcome into the control signal, and takes its increment since the leap before."""

    def __init__(
        self, *, numbers: int, scales: int, summary: int, control: int, temporal_clip: tuple[float, float]
    ) -> None:
        super().__init__()
        self.size = control
        self.temporal_clip = temporal_clip
        self.summary = SquashedLinear(numbers, summary)
        self.signal = SquashedLinear(2 + scales + summary, control)

    def forward(self, outcome: Outcome, previous: Float[Tensor, "rows control"]) -> Drive:
        """The control signal and both increments, given the signal of the leap before (zero before the first)."""
        summary = self.summary(outcome.segment)
        control = self.signal(torch.cat([outcome.left, outcome.length, outcome.scale, summary], 1))
        elapsed = outcome.length.clamp(*self.temporal_clip)
        return Drive(control, torch.cat([control - previous, elapsed], 1))
