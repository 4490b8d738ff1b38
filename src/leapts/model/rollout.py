"""The rollout: decide, write a segment, compute the control signal, advance the state, until the horizon is full.

A segment is what the head of a leap's scale proposes, cut to the leap's length by a soft mask. The dense execution
masks rows that are done: it is differentiable and exportable. The sparse execution, for forecasts, continues only with
rows that have steps remaining, and runs only the head of the chosen scale.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from leapts.model.covariates import Known
from leapts.model.inference import GroupedLinear, Mlp
from leapts.model.schedulers import Hidden, RolloutNoise, Scheduler
from leapts.model.state_cells import Control, ControlSignal, Segment, StateCell
from leapts.model.trace import TraceRecorder

Sizes = Sequence[int]  # rows of each cluster
Recorder = TraceRecorder | None
Beside = Known | None  # what is known beside the target
Steps = Float[Tensor, " outputs"]  # the 0-based step of the horizon that each output belongs to

# Fewer rows run through all heads faster than they are sorted by head.
_MIN_ROWS_TO_SORT = 256


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


class SegmentHeads(nn.Module):
    """One linear head per scale on shared hidden layers; each proposes outputs for the whole horizon."""

    def __init__(self, trunk: Mlp, heads: GroupedLinear) -> None:
        super().__init__()
        self.trunk = trunk
        self.heads = heads

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


class Rollout(nn.Module):
    """Fills the horizon of every row, a window of one series; rows are sorted by cluster, with `sizes` rows in each."""

    def __init__(
        self,
        *,
        hidden: int,
        scheduler: Scheduler,
        heads: SegmentHeads,
        control: ControlSignal,
        cell: StateCell,
        sharpness: float,
        outputs_per_step: int = 1,
    ) -> None:
        super().__init__()
        self.hidden = hidden
        self.horizon = scheduler.grid.horizon
        self.scheduler = scheduler
        self.heads = heads
        self.control = control
        self.cell = cell
        self.sharpness = sharpness
        self.outputs_per_step = outputs_per_step
        self.one_hot: Tensor
        self.steps: Tensor
        self.register_buffer("one_hot", torch.eye(len(scheduler.grid), device="cpu"), persistent=False)
        steps = torch.arange(self.horizon, dtype=self.one_hot.dtype, device="cpu").repeat_interleave(outputs_per_step)
        self.register_buffer("steps", steps, persistent=False)

    def dense(
        self, first: Hidden, sizes: Sizes, noise: RolloutNoise = None, recorder: Recorder = None, known: Beside = None
    ) -> Segment:
        """Take every allowed leap with every row; a row that is done writes zeros."""
        every_row, rows = slice(None), torch.arange(first.shape[0], device=first.device)
        state = self.cell.begin(first)
        signal = first.new_zeros(first.shape[0], self.control.size)
        start = torch.zeros_like(first[:, 0])
        written: Tensor
        last = self.scheduler.max_leaps - 1
        keeps_changes = recorder is not None and recorder.keeps_changes
        for leap in range(last + 1):
            hidden = self.cell.visible(state)
            seen, remaining = known.ahead(hidden, start, rows) if known else hidden, self.horizon - start
            weights, length = self.scheduler.decide(seen, remaining, None if noise is None else noise[leap])
            if leap == last:
                length = remaining
            mask = soft_segment_mask(self.steps, start if leap else None, length, sharpness=self.sharpness)
            segment = self.heads.blend(seen, weights) * mask
            written = segment if leap == 0 else written + segment  # noqa: F821 - bound at the first leap
            if recorder is not None:
                scale = weights.argmax(1)
                recorder.record_leap(leap, every_row, start, length, scale)
            if leap == last and not keeps_changes:
                break
            start = start + length.detach()
            control = self.control(self.horizon - start, length, weights, segment, signal)
            if recorder is not None and keeps_changes:
                change = self.cell.contributions(state, control, sizes)
                recorder.record_change(leap, every_row, hidden, change, self.scheduler.probabilities(seen, scale))
            state, signal = self.cell.advance(state, control, sizes), control.signal
        return written

    def sparse(
        self, first: Hidden, sizes: Sizes, noise: RolloutNoise = None, recorder: Recorder = None, known: Beside = None
    ) -> Segment:
        """Take as many leaps as each row needs."""
        masks = mask_table(self.horizon, self.sharpness, self.outputs_per_step, first.dtype, first.device)
        bounds = list(accumulate(sizes, initial=0))
        rows = torch.arange(first.shape[0], device=first.device)
        state = self.cell.begin(first)
        signal = first.new_zeros(rows.shape[0], self.control.size)
        remaining = first.new_full(rows.shape, self.horizon)
        last = self.scheduler.max_leaps - 1
        for leap in range(last + 1):
            hidden = self.cell.visible(state)
            seen = known.ahead(hidden, self.horizon - remaining, rows) if known else hidden
            own_noise = None if noise is None else noise[leap].index_select(0, rows)
            scale, length = self.scheduler.choose(seen, remaining, own_noise)
            if leap == last:
                length = remaining
            # NaN in weights or windows gives a NaN length; such a row is written, and done.
            left = (remaining - length).nan_to_num_(0.0)
            segment = self.heads.chosen(seen, scale)
            segment.mul_(masks.until_end.index_select(0, left.long()))
            if leap == 0:
                written = segment
            else:
                segment.mul_(masks.from_start.index_select(0, remaining.long()))
                # While no row is done, `add_` is faster.
                written.add_(segment) if len(rows) == len(written) else written.index_add_(0, rows, segment)
            going = left.nonzero().squeeze(1)
            if recorder is not None:
                recorder.record_leap(leap, rows, self.horizon - remaining, length, scale)
            elif len(going) == 0:
                break
            control = self.control.forward(left, length, self.one_hot.index_select(0, scale), segment, signal)
            if recorder is not None and recorder.keeps_changes:
                change = self.cell.contributions(state, control, sizes)
                recorder.record_change(leap, rows, hidden, change, self.scheduler.probabilities(seen, scale))
            if len(going) < len(rows):
                rows, state, left, *parts = (x.index_select(0, going) for x in (rows, state, left, *control))
                control, sizes = Control(*parts), _cluster_sizes(rows, bounds)
            if len(rows) == 0:
                break
            state, signal, remaining = self.cell.advance(state, control, sizes), control.signal, left
        return written


def _cluster_sizes(rows: Int[Tensor, " rows"], bounds: Sequence[int]) -> Sequence[int]:
    """Count the rows of each cluster by bisection, since rows are sorted by cluster."""
    if len(bounds) == 2:
        return [rows.shape[0]]
    cuts = torch.searchsorted(rows, torch.tensor(bounds, device=rows.device)).tolist()
    return [after - before for before, after in pairwise(cuts)]
