"""Writing a leap: the segment its scale's head proposes, and the soft mask that cuts it to its length."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from leapts.core.layers import LinearBank, Mlp


def soft_segment_mask(
    start: Float[Tensor, "rows"], length: Float[Tensor, "rows"], *, horizon: int, sharpness: float
) -> Float[Tensor, "rows horizon"]:
    """The soft mask of the paper over 0-based horizon steps: nothing before the start, fading out around the end.

    Differentiable in the length; the start is a discrete cursor. A finished row (start = horizon) masks to zero.
    """
    steps = torch.arange(horizon, dtype=start.dtype, device=start.device)
    offset = steps - start.detach().unsqueeze(1)
    return torch.sigmoid((length.unsqueeze(1) - offset - 0.5) / sharpness) * (offset >= 0)


class MaskTable:
    """The soft mask for whole-numbered starts and lengths, looked up instead of computed.

    For whole numbers the fade depends only on the distance to the segment's end, so every row of the mask is a window
    into one vector of twice the horizon; the same holds for the step that blanks what lies before the start.
    """

    def __init__(self, *, horizon: int, sharpness: float, like: Tensor) -> None:
        distance = torch.arange(horizon, -horizon, -1, dtype=like.dtype, device=like.device)
        fade = torch.sigmoid((distance - 0.5) / sharpness)
        self._horizon = horizon
        self._until_end = fade.unfold(0, horizon, 1)
        self._from_start = (distance <= 0).to(like.dtype).unfold(0, horizon, 1)

    def apply_(
        self, segment: Float[Tensor, "rows horizon"], start: Int[Tensor, "rows"], end: Int[Tensor, "rows"]
    ) -> Float[Tensor, "rows horizon"]:
        """Mask segments in place."""
        segment.mul_(self._until_end.index_select(0, self._horizon - end))
        return segment.mul_(self._from_start.index_select(0, self._horizon - start))


class SegmentHeads(nn.Module):
    """One head per scale, each proposing a whole horizon of values; the heads share their hidden layers."""

    def __init__(self, *, hidden: int, horizon: int, scales: int, layers: int) -> None:
        super().__init__()
        self.trunk = Mlp(hidden, hidden, layers=layers)
        self.heads = LinearBank(scales, hidden, horizon)

    def blend(
        self, hidden: Float[Tensor, "rows hidden"], weights: Float[Tensor, "rows scales"]
    ) -> Float[Tensor, "rows horizon"]:
        """All heads' segments under the given weights: what a straight-through choice of scale needs to learn."""
        return torch.einsum("rsh,rs->rh", self.heads.every(self.trunk(hidden)), weights)

    def chosen(self, hidden: Float[Tensor, "rows hidden"], scale: Int[Tensor, "rows"]) -> Float[Tensor, "rows horizon"]:
        """Only the chosen head's segment of each row."""
        features = self.trunk(hidden)
        scales = len(self.heads)
        if scales == 1:
            return self.heads.one(features, 0)
        counts = torch.bincount(scale, minlength=scales).tolist()
        rows = scale.shape[0]
        if rows in counts:
            return self.heads.one(features, counts.index(rows))
        order = scale.argsort()
        by_scale = self.heads.runs(features.index_select(0, order), counts)
        return torch.empty_like(by_scale).index_copy_(0, order, by_scale)
