"""State cells: move the controller's state from one leap to the next."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from leapts.model.control import Control
from leapts.model.layers import tanh
from leapts.model.vector_fields import VectorField

State = Float[Tensor, "rows state"]


class Contributions(NamedTuple):
    """The two parts of a change of the hidden vector."""

    control: Float[Tensor, "rows hidden"]
    temporal: Float[Tensor, "rows hidden"]


class StateCell(nn.Module):
    """Moves a state, which is the hidden vector unless `begin` and `visible` say otherwise."""

    def begin(self, hidden: Float[Tensor, "rows hidden"]) -> State:
        """Make the state before the first leap."""
        return hidden

    def visible(self, state: State) -> Float[Tensor, "rows hidden"]:
        """Return the hidden vector, which the scheduler and the heads read."""
        return state

    def advance(self, state: State, control: Control, sizes: Sequence[int]) -> State:
        """Compute the state of the next leap; rows are sorted by cluster, with `sizes` rows in each."""
        raise NotImplementedError

    def contributions(self, state: State, control: Control, sizes: Sequence[int]) -> Contributions:
        """Split a change; by default, time contributes the difference from an elapsed time of zero."""
        signal_only, _ = _split(control.increments)
        timeless = self.visible(self.advance(state, control._replace(increments=signal_only), sizes))
        after = self.visible(self.advance(state, control, sizes))
        return Contributions(timeless - self.visible(state), after - timeless)


class ControlledCell(StateCell):
    """The paper's neural controlled differential equation: one Euler step per leap."""

    def __init__(self, field: VectorField) -> None:
        super().__init__()
        self.field = field

    def advance(self, state: State, control: Control, sizes: Sequence[int]) -> State:
        """Take an Euler step along the vector field."""
        return state + self.field.at(state, control.signal, sizes)(control.increments)

    def contributions(self, state: State, control: Control, sizes: Sequence[int]) -> Contributions:
        """Split the Euler step exactly, since the field is linear in the increments."""
        change = self.field.at(state, control.signal, sizes)
        return Contributions(*map(change, _split(control.increments)))


class RecurrentCell(StateCell):
    """A plain recurrent network; its inputs are the control signal and the elapsed time."""

    def __init__(self, *, hidden: int, control: int) -> None:
        super().__init__()
        self.update = nn.Linear(control + 1 + hidden, hidden)

    def advance(self, state: State, control: Control, sizes: Sequence[int]) -> State:  # noqa: ARG002
        """Compute tanh of a linear map of inputs and state."""
        return tanh(self.update(_inputs(control, state)))


class LongShortTermCell(StateCell):
    """An LSTM; its state is the hidden vector and the memory, which starts as a copy of the hidden vector."""

    def __init__(self, *, hidden: int, control: int) -> None:
        super().__init__()
        self.gates = nn.Linear(control + 1 + hidden, 4 * hidden)

    def begin(self, hidden: Float[Tensor, "rows hidden"]) -> State:
        """Concatenate the hidden vector and the memory."""
        return torch.cat([hidden, hidden], 1)

    def visible(self, state: State) -> Float[Tensor, "rows hidden"]:
        """Return the first half of the state."""
        return state[:, : state.shape[1] // 2]

    def advance(self, state: State, control: Control, sizes: Sequence[int]) -> State:  # noqa: ARG002
        """Apply the input, forget, candidate and output gates, in torch's order."""
        hidden, memory = state.chunk(2, 1)
        admit, keep, candidate, expose = self.gates(_inputs(control, hidden)).chunk(4, 1)
        memory = torch.sigmoid(keep) * memory + torch.sigmoid(admit) * tanh(candidate)
        return torch.cat([torch.sigmoid(expose) * tanh(memory), memory], 1)


def _split(increments: Float[Tensor, "rows increments"]) -> tuple[Tensor, Tensor]:
    """Split increments into those of the control signal and that of time, each padded with zeros."""
    elapsed = torch.zeros_like(increments)
    elapsed[:, -1] = increments[:, -1]
    return increments - elapsed, elapsed


def _inputs(control: Control, hidden: Float[Tensor, "rows hidden"]) -> Float[Tensor, "rows inputs"]:
    return torch.cat([control.signal, control.increments[:, -1:], hidden], 1)
