"""The scheduling branch: decide, write, summarise, advance, until the horizon is full.

One rollout, two executions. *Dense* takes a fixed number of leaps with every row, masking those that are done: it can
be differentiated and exported. *Sparse* goes on only with the rows that still have horizon left and runs only the
chosen scale's head: it is how forecasts are made.
"""

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from leapts.core.control import ControlSignal, Drive, Outcome
from leapts.core.schedulers import Scheduler
from leapts.core.segments import SegmentHeads, mask_table, remaining_mask, soft_segment_mask
from leapts.core.state_cells import StateCell
from leapts.core.trace import TraceRecorder


class Rollout(nn.Module):
    """Fills the horizon leap by leap.

    Rows are windows of single variates, sorted by cluster; `sizes` counts the rows of each cluster. A row has a number
    for each step of the horizon, or `outputs` of them side by side.
    """

    def __init__(
        self,
        *,
        hidden: int,
        scheduler: Scheduler,
        heads: SegmentHeads,
        control: ControlSignal,
        cell: StateCell,
        sharpness: float,
        outputs: int = 1,
    ) -> None:
        super().__init__()
        self.hidden = hidden
        self.horizon = scheduler.grid.horizon
        self.scheduler = scheduler
        self.heads = heads
        self.control = control
        self.cell = cell
        self.sharpness = sharpness
        self.outputs = outputs
        self.one_hot: Tensor
        self.steps: Tensor
        self.register_buffer("one_hot", torch.eye(len(scheduler.grid)), persistent=False)
        steps = torch.arange(self.horizon, dtype=self.one_hot.dtype).repeat_interleave(outputs)
        self.register_buffer("steps", steps, persistent=False)

    def dense(
        self,
        first: Float[Tensor, "rows hidden"],
        sizes: Sequence[int],
        noise: Float[Tensor, "leaps rows noises"] | None = None,
        recorder: TraceRecorder | None = None,
    ) -> Float[Tensor, "rows numbers"]:
        """Every allowed leap for every row. A row that is done has nothing remaining and writes nothing."""
        every_row = slice(None)
        state = self.cell.begin(first)
        control = first.new_zeros(first.shape[0], self.control.size)
        start = torch.zeros_like(first[:, 0])
        written: Tensor
        last = self.scheduler.max_leaps - 1
        mover = recorder if recorder is not None and recorder.keeps_moves else None
        for leap in range(last + 1):
            hidden = self.cell.visible(state)
            remaining = self.horizon - start
            luck = None if noise is None else noise[leap]
            weights, length = self.scheduler.decide(hidden, remaining, luck)
            if leap == last:
                length = remaining
                mask = remaining_mask(self.steps, start, horizon=self.horizon, sharpness=self.sharpness)
            else:
                mask = soft_segment_mask(self.steps, start if leap else None, length, sharpness=self.sharpness)
            segment = self.heads.blend(hidden, weights) * mask
            written = segment if leap == 0 else written + segment  # noqa: F821 - bound at the first leap
            if recorder is not None:
                self._record_leap(recorder, leap, every_row, hidden, start, length, weights.argmax(1))
            if leap == last and mover is None:
                break
            start = start + length.detach()
            outcome = Outcome(self._share(self.horizon - start), self._share(length), weights, segment)
            drive = self.control(outcome, control)
            if mover is not None:
                mover.moved(leap, every_row, hidden, self.cell.contributions(state, drive, sizes))
            state, control = self.cell.advance(state, drive, sizes), drive.control
        return written

    def sparse(
        self,
        first: Float[Tensor, "rows hidden"],
        sizes: Sequence[int],
        noise: Float[Tensor, "leaps rows noises"] | None = None,
        recorder: TraceRecorder | None = None,
    ) -> Float[Tensor, "rows numbers"]:
        """As many leaps as each row needs."""
        masks = mask_table(self.horizon, self.sharpness, first.dtype, first.device, outputs=self.outputs)
        borders = list(accumulate(sizes, initial=0))
        rows = torch.arange(first.shape[0], device=first.device)
        state = self.cell.begin(first)
        control = first.new_zeros(rows.shape[0], self.control.size)
        remaining = first.new_full(rows.shape, self.horizon)
        last = self.scheduler.max_leaps - 1
        for leap in range(last + 1):
            hidden = self.cell.visible(state)
            luck = None if noise is None else noise[leap].index_select(0, rows)
            scale, length = self.scheduler.choose(hidden, remaining, luck)
            if leap == last:
                length = remaining
            # Where weights or windows are no numbers neither is the length; such a row is written, and done.
            left = (remaining - length).nan_to_num_(0.0)
            segment = self.heads.chosen(hidden, scale)
            segment.mul_(masks.until_end.index_select(0, left.long()))
            if leap == 0:
                written = segment
            else:
                segment.mul_(masks.from_start.index_select(0, remaining.long()))
                _add_rows(written, rows, segment)
            if leap == last and recorder is None:
                break
            landing = _Landing(rows, state, control, self.one_hot.index_select(0, scale), length, left, segment)
            if recorder is not None:
                self._record_leap(recorder, leap, rows, hidden, self.horizon - remaining, length, scale)
                # What the last leap of a row does to its state matters to the trace alone.
                done = landing.select((left == 0).nonzero().squeeze(1))
                self._record_move(recorder, leap, done, borders)
            going = left.nonzero().squeeze(1)
            if going.shape[0] == 0:
                break
            if going.shape[0] < rows.shape[0]:
                landing = landing.select(going)
                rows = landing.rows
                sizes = _cluster_sizes(rows, borders)
            if recorder is not None:
                self._record_move(recorder, leap, landing, borders)
            drive = self._drive(landing)
            state, control, remaining = self.cell.advance(landing.state, drive, sizes), drive.control, landing.left
        return written

    def _drive(self, landing: "_Landing") -> Drive:
        outcome = Outcome(self._share(landing.left), self._share(landing.length), landing.scale, landing.segment)
        return self.control.forward(outcome, landing.control)

    def _share(self, steps: Float[Tensor, " rows"]) -> Float[Tensor, "rows 1"]:
        """As a share of the horizon."""
        return (steps / self.horizon).unsqueeze(1)

    def _record_leap(
        self,
        recorder: TraceRecorder,
        leap: int,
        rows: Int[Tensor, " rows"] | slice,
        hidden: Float[Tensor, "rows hidden"],
        start: Float[Tensor, " rows"],
        length: Float[Tensor, " rows"],
        scale: Int[Tensor, " rows"],
    ) -> None:
        probabilities = self.scheduler.probabilities(hidden, scale) if recorder.keeps_moves else None
        recorder.decided(leap, rows, start=start, length=length, scale=scale, probabilities=probabilities)

    def _record_move(self, recorder: TraceRecorder, leap: int, landing: "_Landing", borders: Sequence[int]) -> None:
        if not recorder.keeps_moves:
            return
        sizes = _cluster_sizes(landing.rows, borders)
        change = self.cell.contributions(landing.state, self._drive(landing), sizes)
        recorder.moved(leap, landing.rows, self.cell.visible(landing.state), change)


class _Landing(NamedTuple):
    """Rows right after a leap, before their states move on."""

    rows: Int[Tensor, " rows"]
    state: Float[Tensor, "rows state"]
    control: Float[Tensor, "rows control"]
    scale: Float[Tensor, "rows scales"]
    length: Float[Tensor, " rows"]
    left: Float[Tensor, " rows"]  # of the horizon
    segment: Float[Tensor, "rows numbers"]

    def select(self, index: Int[Tensor, " some"]) -> "_Landing":
        """Some of the rows, in the order given."""
        return _Landing(*[field.index_select(0, index) for field in self])


def _add_rows(
    whole: Float[Tensor, "all numbers"], rows: Int[Tensor, " rows"], part: Float[Tensor, "rows numbers"]
) -> None:
    """Add in place to some rows; while none is done, to all of them, which is quicker."""
    if rows.shape[0] == whole.shape[0]:
        whole.add_(part)
    else:
        whole.index_add_(0, rows, part)


def _cluster_sizes(rows: Int[Tensor, " rows"], borders: Sequence[int]) -> Sequence[int]:
    """How many of these rows each cluster has; both are sorted by cluster, so counting is bisection."""
    if len(borders) == 2:
        return [rows.shape[0]]
    cuts = torch.searchsorted(rows, torch.tensor(borders, device=rows.device)).tolist()
    return [after - before for before, after in pairwise(cuts)]
