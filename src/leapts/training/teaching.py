"""Teaching: a model learns from what came, and from what several others, fitted before it, forecast on average.

Models that differ in nothing but their seeds make errors of their own, of which their mean has fewer. Who learns from
that mean keeps most of what it gains and is still one model: one schedule to trace, at the cost of one forecast.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from leapts.core import LeapTSModel
from leapts.training.loop import WindowSource


class Lesson(NamedTuple):
    """Look-backs, and what to learn of the horizons that follow them."""

    history: Float[Tensor, "batch variates lookback"]
    future: Float[Tensor, "batch variates horizon"]


class TaughtWindows:
    """Windows whose futures are, for a share, what teachers forecast.

    They are asked anew for every batch, so that nothing is kept for each window.
    """

    def __init__(self, windows: WindowSource, teachers: Sequence[LeapTSModel], *, share: float) -> None:
        """Ready to be learned from.

        Args:
            windows: What came.
            teachers: Fitted models of the same look-back and horizon.
            share: How much of a future is theirs: 0 for nothing, 1 for all of it. What is unknown stays so.
        """
        self.windows = windows
        self.teachers = teachers
        self.share = share

    def __len__(self) -> int:
        return len(self.windows)

    def gather(self, index: Int64[Tensor, " batch"]) -> Lesson:
        """The windows of these numbers."""
        batch = self.windows.gather(index)
        said = torch.stack([teacher.forecast(batch.history).values for teacher in self.teachers]).mean(0)
        return Lesson(batch.history, batch.future.lerp(said, self.share))
