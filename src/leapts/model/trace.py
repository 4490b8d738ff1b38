"""Schedule traces: the leaps of a forecast, the probabilities of their scales, and the changes of state."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from leapts.model.schedulers import ScaleGrid
from leapts.model.state_cells import Contributions

_MIN_CHANGE = 1e-12  # keeps shares finite


@dataclass(frozen=True)
class ScheduleTrace:
    """Every leap of every row; all values are 0 after a row's last leap.

    The contributions of a leap belong to the change of state after it, also after the last leap, where that change
    does not affect the forecast.
    """

    scale_names: tuple[str, ...]
    start: Int[Tensor, "*rows leaps"]  # 0-based step of the horizon
    length: Int[Tensor, "*rows leaps"]
    scale: Int[Tensor, "*rows leaps"]  # an index into scale_names
    probabilities: Float[Tensor, "*rows leaps scales"]
    control: Float[Tensor, "*rows leaps"]  # C_k: the sum of absolute changes by the control signal
    temporal: Float[Tensor, "*rows leaps"]  # T_k: the sum of absolute changes by time
    states: Float[Tensor, "*rows leaps+1 hidden"] | None = None  # before each leap, and after the last
    control_change: Float[Tensor, "*rows leaps hidden"] | None = None
    temporal_change: Float[Tensor, "*rows leaps hidden"] | None = None

    @property
    def taken(self) -> Bool[Tensor, "*rows leaps"]:
        """Mark the entries that are leaps."""
        return self.length > 0

    @property
    def leaps(self) -> Int[Tensor, "*rows"]:
        """Count the leaps of each row."""
        return self.taken.sum(-1)

    @property
    def control_share(self) -> Float[Tensor, "*rows leaps"]:
        """Compute the control signal's share of each change of state, from 0 to 1."""
        return self.control / (self.control + self.temporal + _MIN_CHANGE)

    @property
    def temporal_share(self) -> Float[Tensor, "*rows leaps"]:
        """Compute time's share of each change of state, from 0 to 1."""
        return self.temporal / (self.control + self.temporal + _MIN_CHANGE)

    def arranged(self, arrange: Callable[[Tensor], Tensor]) -> "ScheduleTrace":
        """Apply a rearrangement of rows to every tensor."""
        arranged: dict[str, Any] = {name: arrange(tensor) for name, tensor in self._tensors().items()}
        return replace(self, **arranged)

    @staticmethod
    def joined(traces: "Sequence[ScheduleTrace]") -> "ScheduleTrace":
        """Concatenate the rows of several traces of one model."""
        parts = [trace._tensors() for trace in traces]
        joined: dict[str, Any] = {name: torch.cat([part[name] for part in parts]) for name in parts[0]}
        return replace(traces[0], **joined)

    def _tensors(self) -> dict[str, Tensor]:
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if isinstance(value, Tensor)}


class TraceRecorder:
    """Collects a trace during a rollout; without `keep_changes`, only starts, lengths and scales."""

    def __init__(
        self, grid: ScaleGrid, leaps: int, first: Float[Tensor, "rows hidden"], *, keep_changes: bool, keep_states: bool
    ) -> None:
        rows, hidden = first.shape
        self._scale_names = grid.names
        self.keeps_changes = keep_changes
        self._keeps_states = keep_states
        self._whole = {name: first.new_zeros(rows, leaps, dtype=torch.int64) for name in ("start", "length", "scale")}
        self._real = {name: first.new_zeros(rows, leaps) for name in ("control", "temporal")}
        self._real["probabilities"] = first.new_zeros(rows, leaps, len(grid))
        if keep_states:
            self._real |= {name: first.new_zeros(rows, leaps, hidden) for name in ("control_change", "temporal_change")}
            self._states = first.new_zeros(rows, leaps + 1, hidden)

    def record_leap(self, leap: int, rows: Tensor | slice, start: Tensor, length: Tensor, scale: Tensor) -> None:
        """Record a leap of these rows; a length of 0 is no leap."""
        for name, value in (("start", start), ("length", length), ("scale", scale)):
            self._whole[name][rows, leap] = value.long()

    def record_change(
        self, leap: int, rows: Tensor | slice, before: Tensor, change: Contributions, probabilities: Tensor
    ) -> None:
        """Record the probabilities of a leap's scales, and the change of the hidden vector after it."""
        self._real["probabilities"][rows, leap] = probabilities
        self._real["control"][rows, leap] = change.control.abs().sum(1)
        self._real["temporal"][rows, leap] = change.temporal.abs().sum(1)
        if self._keeps_states:
            self._real["control_change"][rows, leap] = change.control
            self._real["temporal_change"][rows, leap] = change.temporal
            self._states[rows, leap] = before
            self._states[rows, leap + 1] = before + change.control + change.temporal

    def finish(self) -> ScheduleTrace:
        """Return the trace of all rows, with zeros after each row's last leap."""
        taken = self._whole["length"] > 0
        values: dict[str, Any] = {name: value * taken for name, value in self._whole.items()}
        for name, value in self._real.items():
            values[name] = value * (taken if value.dim() == 2 else taken.unsqueeze(2))
        if self._keeps_states:
            values["states"] = self._states * torch.cat([torch.ones_like(taken[:, :1]), taken], 1).unsqueeze(2)
        return ScheduleTrace(self._scale_names, **values)
