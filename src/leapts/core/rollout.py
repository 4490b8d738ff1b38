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
from leapts.core.segments import MaskTable, SegmentHeads, soft_segment_mask
from leapts.core.state_cells import StateCell
from leapts.core.trace import TraceRecorder


class Rollout(nn.Module):
    """Fills the horizon leap by leap.

    Rows are windows of single variates, sorted by cluster; `sizes` counts the rows of each cluster.
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
    ) -> None:
        super().__init__()
        self.hidden = hidden
        self.horizon = scheduler.grid.horizon
        self.scheduler = scheduler
        self.heads = heads
        self.control = control
        self.cell = cell
        self.sharpness = sharpness

    def dense(
        self,
        first: Float[Tensor, "rows hidden"],
        sizes: Sequence[int],
        noise: Float[Tensor, "leaps rows noises"] | None = None,
        recorder: TraceRecorder | None = None,
    ) -> Float[Tensor, "rows horizon"]:
        """Every allowed leap for every row. A row that is done has nothing remaining and writes nothing."""
        every_row = slice(None)
        state = self.cell.begin(first)
        control = first.new_zeros(first.shape[0], self.control.size)
        start = torch.zeros_like(first[:, 0])
        written = first.new_zeros(first.shape[0], self.horizon)
        last = self.scheduler.max_leaps - 1
        for leap in range(last + 1):
            hidden = state[:, : self.hidden]
            remaining = self.horizon - start
            luck = None if noise is None else noise[leap]
            weights, length = self.scheduler.decide(hidden, remaining, luck)
            if leap == last:
                length = remaining
            mask = soft_segment_mask(start, length, horizon=self.horizon, sharpness=self.sharpness)
            segment = self.heads.blend(hidden, weights) * mask
            written = written + segment
            if recorder is not None:
                self._record_leap(recorder, leap, every_row, hidden, start, length, weights.argmax(1))
            elif leap == last:
                break
            start = start + length.detach()
            ratios = torch.stack([self.horizon - start, length], 1) / self.horizon
            drive = self.control(Outcome(ratios, weights, segment), control)
            if recorder is not None:
                recorder.moved(leap, every_row, hidden, self.cell.contributions(state, drive, sizes))
            state, control = self.cell.advance(state, drive, sizes), drive.control
        return written

    def sparse(
        self,
        first: Float[Tensor, "rows hidden"],
        sizes: Sequence[int],
        noise: Float[Tensor, "leaps rows noises"] | None = None,
        recorder: TraceRecorder | None = None,
    ) -> Float[Tensor, "rows horizon"]:
        """As many leaps as each row needs."""
        rows = torch.arange(first.shape[0], device=first.device)
        state = self.cell.begin(first)
        control = first.new_zeros(first.shape[0], self.control.size)
        start = torch.zeros_like(rows)
        written = first.new_zeros(first.shape[0], self.horizon)
        masks = MaskTable(horizon=self.horizon, sharpness=self.sharpness, like=first)
        last = self.scheduler.max_leaps - 1
        for leap in range(last + 1):
            hidden = state[:, : self.hidden]
            remaining = self.horizon - start
            luck = None if noise is None else noise[leap].index_select(0, rows)
            scale, length = self.scheduler.choose(hidden, remaining, luck)
            if leap == last:
                length = remaining
            end = start + length
            segment = masks.apply_(self.heads.chosen(hidden, scale), start, end)
            written.index_add_(0, rows, segment)
            landing = _Landing(rows, state, control, scale, length, end, segment)
            going = (end < self.horizon).nonzero().squeeze(1)
            if recorder is not None:
                self._record_leap(recorder, leap, rows, hidden, start, length, scale)
                # What the last leap of a row does to its state matters to the trace alone.
                done = (end == self.horizon).nonzero().squeeze(1)
                self._record_move(recorder, leap, landing.select(done), _sizes_among(sizes, done))
            if len(going) == 0:
                break
            if len(going) < len(rows):
                landing, sizes = landing.select(going), _sizes_among(sizes, going)
            if recorder is not None:
                self._record_move(recorder, leap, landing, sizes)
            drive = self._drive(landing)
            state, control = self.cell.advance(landing.state, drive, sizes), drive.control
            rows, start = landing.rows, landing.end
        return written

    def _drive(self, landing: "_Landing") -> Drive:
        kind = landing.segment
        ratios = torch.stack([self.horizon - landing.end, landing.length], 1).to(kind.dtype) / self.horizon
        one_hot = torch.eye(len(self.scheduler.grid), dtype=kind.dtype, device=kind.device)
        outcome = Outcome(ratios, one_hot.index_select(0, landing.scale), landing.segment)
        drive: Drive = self.control(outcome, landing.control)
        return drive

    def _record_leap(
        self,
        recorder: TraceRecorder,
        leap: int,
        rows: Int[Tensor, "rows"] | slice,
        hidden: Float[Tensor, "rows hidden"],
        start: Tensor,
        length: Tensor,
        scale: Int[Tensor, "rows"],
    ) -> None:
        probabilities = self.scheduler.probabilities(hidden, scale)
        recorder.decided(leap, rows, start=start, length=length, scale=scale, probabilities=probabilities)

    def _record_move(self, recorder: TraceRecorder, leap: int, landing: "_Landing", sizes: Sequence[int]) -> None:
        change = self.cell.contributions(landing.state, self._drive(landing), sizes)
        recorder.moved(leap, landing.rows, landing.state[:, : self.hidden], change)


class _Landing(NamedTuple):
    """Rows right after a leap, before their states move on."""

    rows: Int[Tensor, "rows"]
    state: Float[Tensor, "rows state"]
    control: Float[Tensor, "rows control"]
    scale: Int[Tensor, "rows"]
    length: Int[Tensor, "rows"]
    end: Int[Tensor, "rows"]
    segment: Float[Tensor, "rows horizon"]

    def select(self, index: Int[Tensor, "some"]) -> "_Landing":
        """Some of the rows, in the order given."""
        return _Landing(*(field.index_select(0, index) for field in self))


def _sizes_among(sizes: Sequence[int], kept: Int[Tensor, "kept"]) -> Sequence[int]:
    """How many of the kept rows each cluster has; both are sorted by cluster, so counting is bisection."""
    if len(sizes) == 1:
        return [len(kept)]
    borders = torch.tensor(list(accumulate(sizes, initial=0)), device=kept.device)
    cuts = torch.searchsorted(kept, borders).tolist()
    return [after - before for before, after in pairwise(cuts)]
