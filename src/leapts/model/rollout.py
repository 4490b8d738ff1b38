"""The rollout: decide, write a segment, compute the control signal, advance the state, until the horizon is full.

The dense execution masks rows that are done: it is differentiable and exportable. The sparse execution, for forecasts,
continues only with rows that have steps remaining, and runs only the head of the chosen scale.
"""

from collections.abc import Sequence
from itertools import accumulate, pairwise

import torch
from jaxtyping import Int
from torch import Tensor, nn

from leapts.model.schedulers import Hidden, RolloutNoise, Scheduler
from leapts.model.segments import Heads, Segment, mask_table, soft_segment_mask
from leapts.model.state_cells import Control, ControlSignal, StateCell
from leapts.model.trace import TraceRecorder


class Rollout(nn.Module):
    """Fills the horizon of every row, a window of one series; rows are sorted by cluster, with `sizes` rows in each."""

    def __init__(
        self,
        *,
        hidden: int,
        scheduler: Scheduler,
        heads: Heads,
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
        self, first: Hidden, sizes: Sequence[int], noise: RolloutNoise = None, recorder: TraceRecorder | None = None
    ) -> Segment:
        """Take every allowed leap with every row; a row that is done writes zeros."""
        every_row = slice(None)
        state = self.cell.begin(first)
        signal = first.new_zeros(first.shape[0], self.control.size)
        start = torch.zeros_like(first[:, 0])
        written: Tensor
        last = self.scheduler.max_leaps - 1
        keeps_changes = recorder is not None and recorder.keeps_changes
        for leap in range(last + 1):
            hidden = self.cell.visible(state)
            remaining = self.horizon - start
            weights, length = self.scheduler.decide(hidden, remaining, None if noise is None else noise[leap])
            if leap == last:
                length = remaining
            mask = soft_segment_mask(self.steps, start if leap else None, length, sharpness=self.sharpness)
            segment = self.heads.blend(hidden, weights) * mask
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
                recorder.record_change(leap, every_row, hidden, change, self.scheduler.probabilities(hidden, scale))
            state, signal = self.cell.advance(state, control, sizes), control.signal
        return written

    def sparse(
        self, first: Hidden, sizes: Sequence[int], noise: RolloutNoise = None, recorder: TraceRecorder | None = None
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
            own_noise = None if noise is None else noise[leap].index_select(0, rows)
            scale, length = self.scheduler.choose(hidden, remaining, own_noise)
            if leap == last:
                length = remaining
            # NaN in weights or windows gives a NaN length; such a row is written, and done.
            left = (remaining - length).nan_to_num_(0.0)
            segment = self.heads.chosen(hidden, scale)
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
                recorder.record_change(leap, rows, hidden, change, self.scheduler.probabilities(hidden, scale))
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
