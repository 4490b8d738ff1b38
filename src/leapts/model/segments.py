"""Segments: the outputs that a leap's scale proposes, and the soft mask that cuts them to its length."""

from functools import lru_cache
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from leapts.model.layers import GroupedLinear, Mlp

Segment = Float[Tensor, "rows outputs"]
Steps = Float[Tensor, " outputs"]  # the 0-based step of the horizon that each output belongs to


def soft_segment_mask(
    steps: Steps, start: Float[Tensor, " rows"] | None, length: Float[Tensor, " rows"], *, sharpness: float
) -> Segment:
    """Compute the paper's soft mask: zero before the start, fading out around the end.

    It is differentiable in the length, not in the start. No start means that all rows start at 0. The mask of a
    finished row (start = horizon) is zero.
    """
    end = length if start is None else start.detach() + length
    # Scaling two vectors is less work than scaling their difference, a matrix.
    fade = torch.sigmoid((end / sharpness).unsqueeze(1) - (steps + 0.5) / sharpness)
    if start is None:
        return fade
    # For whole numbers the clamp equals (steps >= start), in half the time of a comparison and a conversion.
    return fade * (steps + 1 - start.detach().unsqueeze(1)).clamp(0, 1)


class MaskTable(NamedTuple):
    """The two factors of the soft mask, precomputed for whole steps; row r is for r steps remaining."""

    until_end: Float[Tensor, "remaining outputs"]
    from_start: Float[Tensor, "remaining outputs"]


@lru_cache(maxsize=16)
def mask_table(
    horizon: int, sharpness: float, outputs_per_step: int, dtype: torch.dtype, device: torch.device
) -> MaskTable:
    """Compute the mask tables of a horizon once; their rows are windows of one vector."""
    distance = torch.arange(horizon, -horizon, -1, dtype=dtype, device=device)
    fade = torch.sigmoid((distance - 0.5) / sharpness)
    tables = MaskTable(fade.unfold(0, horizon, 1), (distance <= 0).to(dtype).unfold(0, horizon, 1))
    if outputs_per_step == 1:
        return tables
    return MaskTable(*(table.repeat_interleave(outputs_per_step, 1) for table in tables))


# Fewer rows run through all heads faster than they are sorted by head.
_MIN_ROWS_TO_SORT = 256


class Heads(nn.Module):
    """Proposes the outputs of a leap over the whole horizon."""

    def blend(self, hidden: Float[Tensor, "rows hidden"], weights: Float[Tensor, "rows scales"]) -> Segment:
        """Compute the weighted sum of the proposals of all scales."""
        raise NotImplementedError

    def chosen(self, hidden: Float[Tensor, "rows hidden"], scale: Int[Tensor, " rows"]) -> Segment:
        """Compute the proposal of the chosen scale of each row."""
        raise NotImplementedError


class SegmentHeads(Heads):
    """One linear head per scale on shared hidden layers; each proposes outputs for the whole horizon."""

    def __init__(self, *, hidden: int, outputs: int, scales: int, layers: int) -> None:
        super().__init__()
        self.trunk = Mlp(hidden, hidden, layers=layers)
        self.heads = GroupedLinear(scales, hidden, outputs)

    def blend(self, hidden: Float[Tensor, "rows hidden"], weights: Float[Tensor, "rows scales"]) -> Segment:
        """Compute the weighted sum of all heads, which a straight-through choice of scale needs."""
        # With this few scales, the gradient of a matrix product would be the slowest part of a training step.
        return (self.heads.every(self.trunk(hidden)) * weights.unsqueeze(2)).sum(1)

    def chosen(self, hidden: Float[Tensor, "rows hidden"], scale: Int[Tensor, " rows"]) -> Segment:
        """Compute the chosen head of each row; with many rows, only that head runs."""
        features = self.trunk.forward(hidden)
        scales, rows = self.heads.weight.shape[0], scale.shape[0]
        if scales == 1:
            return self.heads.runs(features, [rows])
        if rows < _MIN_ROWS_TO_SORT:
            index = torch.arange(0, rows * scales, scales, device=scale.device) + scale
            return self.heads.every(features).flatten(0, 1).index_select(0, index)
        counts = torch.bincount(scale, minlength=scales).tolist()
        if rows in counts:
            return self.heads.one(features, counts.index(rows))
        order = scale.argsort()
        by_scale = self.heads.runs(features.index_select(0, order), counts)
        back = torch.empty_like(order).scatter_(0, order, torch.arange(rows, device=order.device))
        return by_scale.index_select(0, back)
