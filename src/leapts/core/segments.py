"""Writing a leap: the segment its scale's head proposes, and the soft mask that cuts it to its length."""

from functools import lru_cache
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from leapts.core.layers import LinearBank, Mlp


def soft_segment_mask(
    steps: Float[Tensor, " numbers"],
    start: Float[Tensor, " rows"] | None,
    length: Float[Tensor, " rows"],
    *,
    sharpness: float,
) -> Float[Tensor, "rows numbers"]:
    """The soft mask of the paper over 0-based horizon steps: nothing before the start, fading out around the end.

    Differentiable in the length; the start is a discrete cursor, and none where every row is at its first step. A
    finished row (start = horizon) masks to zero. Where a step has several outputs, it stands in `steps` for each.
    """
    end = length if start is None else start.detach() + length
    # Each is scaled before they meet: twice a vector is less work than once a matrix.
    fade = torch.sigmoid((end / sharpness).unsqueeze(1) - (steps + 0.5) / sharpness)
    return fade if start is None else fade * _from(steps, start)


def remaining_mask(
    steps: Float[Tensor, " numbers"], start: Float[Tensor, " rows"], *, horizon: int, sharpness: float
) -> Float[Tensor, "rows numbers"]:
    """The soft mask of a segment that takes all that remains: all rows end, and fade out, at the same step."""
    return torch.sigmoid((horizon - steps - 0.5) / sharpness) * _from(steps, start)


def _from(steps: Float[Tensor, " numbers"], start: Float[Tensor, " rows"]) -> Float[Tensor, "rows numbers"]:
    """One from the start on, zero before it; for whole numbers, in half the time of a comparison and a product."""
    return (steps + 1 - start.detach().unsqueeze(1)).clamp(0, 1)


class MaskTable(NamedTuple):
    """The soft mask for whole-numbered starts and lengths, looked up instead of computed.

    For whole numbers the fade depends only on the distance to the segment's end, so every row of the mask is a window
    into one vector of twice the horizon; the same holds for the step that blanks what lies before the start. Row r of
    each table is for a cursor with r steps of horizon remaining.
    """

    until_end: Float[Tensor, "cursors numbers"]
    from_start: Float[Tensor, "cursors numbers"]


@lru_cache(maxsize=16)
def mask_table(
    horizon: int, sharpness: float, dtype: torch.dtype, device: torch.device, *, outputs: int = 1
) -> MaskTable:
    """The tables of a horizon, made once."""
    distance = torch.arange(horizon, -horizon, -1, dtype=dtype, device=device)
    fade = torch.sigmoid((distance - 0.5) / sharpness)
    tables = MaskTable(fade.unfold(0, horizon, 1), (distance <= 0).to(dtype).unfold(0, horizon, 1))
    return tables if outputs == 1 else MaskTable(*(table.repeat_interleave(outputs, 1) for table in tables))


# Fewer rows run through all heads at once sooner than they are sorted by the head they need.
_WORTH_SORTING = 256


class SegmentHeads(nn.Module):
    """One head per scale, each proposing a whole horizon of values; the heads share their hidden layers."""

    def __init__(self, *, hidden: int, numbers: int, scales: int, layers: int) -> None:
        super().__init__()
        self.trunk = Mlp(hidden, hidden, layers=layers)
        self.heads = LinearBank(scales, hidden, numbers)

    def blend(
        self, hidden: Float[Tensor, "rows hidden"], weights: Float[Tensor, "rows scales"]
    ) -> Float[Tensor, "rows numbers"]:
        """All heads' segments under the given weights: what a straight-through choice of scale needs to learn."""
        # Not as a product of matrices: with as few columns as scales, its gradient is the slowest part of a step.
        return (self.heads.every(self.trunk(hidden)) * weights.unsqueeze(2)).sum(1)

    def chosen(
        self, hidden: Float[Tensor, "rows hidden"], scale: Int[Tensor, " rows"]
    ) -> Float[Tensor, "rows numbers"]:
        """The chosen head's segment of each row; among many rows, the other heads do not run."""
        features = self.trunk.forward(hidden)
        scales, rows = self.heads.weight.shape[0], scale.shape[0]
        if scales == 1:
            return self.heads.runs(features, [rows])
        if rows < _WORTH_SORTING:
            every = self.heads.every(features)
            return every.flatten(0, 1).index_select(
                0, torch.arange(0, rows * scales, scales, device=scale.device) + scale
            )
        counts = torch.bincount(scale, minlength=scales).tolist()
        if rows in counts:
            return self.heads.one(features, counts.index(rows))
        order = scale.argsort()
        by_scale = self.heads.runs(features.index_select(0, order), counts)
        back = torch.empty_like(order).scatter_(0, order, torch.arange(rows, device=order.device))
        return by_scale.index_select(0, back)
