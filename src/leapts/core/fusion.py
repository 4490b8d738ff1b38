"""Coarse forecast and scheduling branch become one: by a learned gate, or, without the branch, by leaving it out."""

from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from leapts.core.luck import Luck, drawn
from leapts.core.rollout import Rollout
from leapts.core.trace import ScheduleTrace, TraceRecorder

Execution = Literal["dense", "sparse"]
# Each holds what is before it: where the leaps went, what moved the state after them, the states themselves.
Record = Literal["nothing", "schedule", "leaps", "states"]


class Refined(NamedTuple):
    """The final forecast in normalised units, and the trace where it was asked for."""

    values: Float[Tensor, "rows numbers"]
    trace: ScheduleTrace | None


@runtime_checkable
class Fusion(Protocol):
    """Turns the coarse forecast and the first state of every row into the final forecast."""

    state_size: int  # of the first state it wants, possibly none

    def __call__(
        self,
        coarse: Float[Tensor, "rows numbers"],
        first: Float[Tensor, "rows hidden"],
        sizes: Sequence[int],
        luck: Luck | None,
        *,
        execution: Execution,
        record: Record,
    ) -> Refined:
        """Refine; `sizes` counts the rows of each cluster."""


class GatedFusion(nn.Module):
    """Adds the scheduling branch, weighted by a learned gate between 0 and 1."""

    def __init__(self, rollout: Rollout) -> None:
        super().__init__()
        self.state_size = rollout.hidden
        self.rollout = rollout
        self.gate_logit = nn.Parameter(torch.zeros(()))

    @property
    def gate(self) -> Float[Tensor, ""]:
        """How much of the scheduling branch is added."""
        return torch.sigmoid(self.gate_logit)

    def forward(
        self,
        coarse: Float[Tensor, "rows numbers"],
        first: Float[Tensor, "rows hidden"],
        sizes: Sequence[int],
        luck: Luck | None,
        *,
        execution: Execution,
        record: Record,
    ) -> Refined:
        """Coarse forecast plus gate times rollout."""
        scheduler = self.rollout.scheduler
        noise = drawn(scheduler, first, luck)
        recorder = None
        if record != "nothing":
            recorder = TraceRecorder(
                scheduler.grid,
                leaps=scheduler.max_leaps,
                first=first,
                keep_moves=record != "schedule",
                keep_states=record == "states",
            )
        roll = self.rollout.sparse if execution == "sparse" else self.rollout.dense
        scheduled = roll(first, sizes, noise, recorder)
        return Refined(torch.addcmul(coarse, scheduled, self.gate), None if recorder is None else recorder.finish())


class CoarseOnly(nn.Module):
    """No scheduling branch: the coarse forecast stands, and there is nothing to trace."""

    state_size = 0

    def forward(
        self,
        coarse: Float[Tensor, "rows numbers"],
        first: Float[Tensor, "rows 0"],  # noqa: ARG002
        sizes: Sequence[int],  # noqa: ARG002
        luck: Luck | None,  # noqa: ARG002
        *,
        execution: Execution,  # noqa: ARG002
        record: Record,  # noqa: ARG002
    ) -> Refined:
        """The coarse forecast, untouched."""
        return Refined(coarse, None)
