"""The record of a schedule: which leaps were taken, how sure the controller was, and what moved its state."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from leapts.core.scales import ScaleGrid
from leapts.core.vector_fields import Contributions

_RATIO_FLOOR = 1e-12


@dataclass(frozen=True)
class ScheduleTrace:
    """Every leap of every row. Past a row's last leap the length is 0 and so is everything else.

    The contributions of a leap belong to the change of state that followed it, also after the last leap, where that
    change no longer serves the forecast. The last three fields hold the vectors behind them, where asked for.
    """

    scale_names: tuple[str, ...]
    start: Int[Tensor, "*rows leaps"]  # 0-based, inside the horizon
    length: Int[Tensor, "*rows leaps"]
    scale: Int[Tensor, "*rows leaps"]  # an index into scale_names
    probabilities: Float[Tensor, "*rows leaps scales"]
    control: Float[Tensor, "*rows leaps"]  # C_k: the sum of absolute changes that the control signal brought about
    temporal: Float[Tensor, "*rows leaps"]  # T_k: the same for time
    states: Float[Tensor, "*rows leaps+1 hidden"] | None  # before each leap, and after the last
    control_change: Float[Tensor, "*rows leaps hidden"] | None
    temporal_change: Float[Tensor, "*rows leaps hidden"] | None

    @property
    def taken(self) -> Bool[Tensor, "*rows leaps"]:
        """Which entries are leaps."""
        return self.length > 0

    @property
    def leaps(self) -> Int[Tensor, "*rows"]:
        """How many leaps each row took."""
        return self.taken.sum(-1)

    @property
    def control_share(self) -> Float[Tensor, "*rows leaps"]:
        """How much of each change of state the control signal brought about, from 0 to 1."""
        return self.control / (self.control + self.temporal + _RATIO_FLOOR)

    @property
    def temporal_share(self) -> Float[Tensor, "*rows leaps"]:
        """How much of each change of state time brought about, from 0 to 1."""
        return self.temporal / (self.control + self.temporal + _RATIO_FLOOR)

    def arranged(self, arrange: Callable[[Tensor], Tensor]) -> "ScheduleTrace":
        """The same trace with every tensor's rows rearranged."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        arranged: dict[str, Any] = {name: arrange(x) for name, x in values.items() if isinstance(x, Tensor)}
        return replace(self, **arranged)

    @staticmethod
    def joined(traces: "Sequence[ScheduleTrace]") -> "ScheduleTrace":
        """The rows of several traces of one model, one after the other."""
        parts = [{field.name: getattr(trace, field.name) for field in fields(trace)} for trace in traces]
        joined: dict[str, Any] = {
            name: torch.cat([part[name] for part in parts]) for name, x in parts[0].items() if isinstance(x, Tensor)
        }
        return replace(traces[0], **joined)


class TraceRecorder:
    """Collects a trace while the leaps are taken. It only reads, so a forecast is the same with it or without.

    Where no moves are kept, the trace says where the leaps went, and the rest of it stays zero.
    """

    def __init__(
        self,
        grid: ScaleGrid,
        *,
        leaps: int,
        first: Float[Tensor, "rows hidden"],
        keep_moves: bool = True,
        keep_states: bool = False,
    ) -> None:
        def zeros(*size: int) -> Tensor:
            return first.new_zeros(first.shape[0], *size)

        hidden = first.shape[1]
        self._grid = grid
        self._start, self._length, self._scale = (zeros(leaps).long() for _ in range(3))
        self._probabilities = zeros(leaps, len(grid))
        self._control, self._temporal = zeros(leaps), zeros(leaps)
        self.keeps_moves = keep_moves
        self._keep_states = keep_states
        if keep_states:
            self._states = zeros(leaps + 1, hidden)
            self._changes = zeros(leaps, hidden), zeros(leaps, hidden)

    def decided(
        self,
        leap: int,
        rows: Tensor | slice,
        *,
        start: Tensor,
        length: Tensor,
        scale: Int[Tensor, " rows"],
        probabilities: Float[Tensor, "rows scales"] | None,
    ) -> None:
        """These rows took a leap; one of length 0 is none."""
        self._start[rows, leap] = start.long()
        self._length[rows, leap] = length.long()
        self._scale[rows, leap] = scale
        if probabilities is not None:
            self._probabilities[rows, leap] = probabilities

    def moved(
        self, leap: int, rows: Tensor | slice, before: Float[Tensor, "rows hidden"], change: Contributions
    ) -> None:
        """The state of these rows changed after a leap."""
        self._control[rows, leap] = change.control.abs().sum(1)
        self._temporal[rows, leap] = change.temporal.abs().sum(1)
        if self._keep_states:
            self._states[rows, leap] = before
            self._states[rows, leap + 1] = before + change.control + change.temporal
            self._changes[0][rows, leap] = change.control
            self._changes[1][rows, leap] = change.temporal

    def finish(self) -> ScheduleTrace:
        """The trace of all rows, blank past each row's last leap."""
        taken = self._length > 0
        of_leaps = taken.unsqueeze(2)
        of_states = torch.cat([torch.ones_like(taken[:, :1]), taken], 1).unsqueeze(2)
        return ScheduleTrace(
            scale_names=self._grid.names,
            start=self._start * taken,
            length=self._length,
            scale=self._scale * taken,
            probabilities=self._probabilities * of_leaps,
            control=self._control * taken,
            temporal=self._temporal * taken,
            states=self._states * of_states if self._keep_states else None,
            control_change=self._changes[0] * of_leaps if self._keep_states else None,
            temporal_change=self._changes[1] * of_leaps if self._keep_states else None,
        )
