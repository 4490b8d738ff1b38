"""The state of the controller: the control signal of a leap, vector fields, and cells that move the state.

A state cell takes the state from one leap to the next. The paper's cell is a controlled differential equation. At a
state h and a control signal u, its vector field is a linear map of increments: F(h, u) du + G(h, u) dt. Time is one
more control, so the increments of the signal and of time are one vector. Clusters of series have a field each.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from leapts.model.inference import GroupedLinear, GroupedTanh, TanhLinear, hardswish, tanh
from leapts.model.schedulers import Hidden, Length

Scales = Float[Tensor, "rows scales"]
Segment = Float[Tensor, "rows outputs"]
Signal = Float[Tensor, "rows control"]
State = Float[Tensor, "rows state"]
LinearMap = Callable[[Tensor], Tensor]  # from increments, [rows, control + 1], to a change of state, [rows, hidden]


class Control(NamedTuple):
    """The control signal after a leap, and its increments since the leap before."""

    signal: Signal
    increments: Float[Tensor, "rows control+1"]  # of the signal, and last of time


class ControlSignal(nn.Module):
    """Compresses a leap's outcome into the control signal."""

    def __init__(
        self, *, horizon: int, outputs: int, scales: int, summary: int, control: int, temporal_clip: tuple[float, float]
    ) -> None:
        super().__init__()
        self.size = control
        self.horizon = horizon
        self.temporal_clip = temporal_clip
        self.summary = TanhLinear(outputs, summary)
        self.signal = TanhLinear(2 + scales + summary, control)

    def forward(
        self, left: Length, length: Length, one_hot: Float[Tensor, "rows scales"], segment: Segment, previous: Signal
    ) -> Control:
        """Compute the signal from a leap's scale and masked segment; at first, `previous` is zero."""
        shares = torch.stack([left, length], 1) / self.horizon
        signal = self.signal(torch.cat([shares, one_hot, self.summary(segment)], 1))
        return Control(signal, torch.cat([signal - previous, shares[:, 1:].clamp(*self.temporal_clip)], 1))


class FullField(nn.Module):
    """A field with a matrix of hidden x (control + 1) values for every row, bounded by tanh."""

    def __init__(self, *, clusters: int, hidden: int, control: int, width: int) -> None:
        super().__init__()
        self.inner = GroupedLinear(clusters, hidden + control, width)
        self.outer = GroupedLinear(clusters, width, hidden * (control + 1))

    def at(self, state: Hidden, signal: Signal, sizes: Sequence[int]) -> LinearMap:
        """Return the field at these states; rows are sorted by cluster, with `sizes` rows in each."""
        inner = hardswish(self.inner.runs(torch.cat([state, signal], 1), sizes))
        matrix = tanh(self.outer.runs(inner, sizes)).view(*state.shape, signal.shape[1] + 1)
        return lambda increments: torch.bmm(matrix, increments.unsqueeze(2)).squeeze(2)


class FactoredField(nn.Module):
    """A field factored as V diag(tanh s(h, u)) B, at a sixth of the cost; of full rank from control + 1 on."""

    def __init__(self, *, clusters: int, hidden: int, control: int, width: int, rank: int) -> None:
        super().__init__()
        self.inner = GroupedLinear(clusters, hidden + control, width)
        self.strength = GroupedTanh(clusters, width, rank)
        self.spread = GroupedLinear(clusters, control + 1, rank, bias=False)
        self.collect = GroupedLinear(clusters, rank, hidden, bias=False)

    def at(self, state: Hidden, signal: Signal, sizes: Sequence[int]) -> LinearMap:
        """Return the field at these states; rows are sorted by cluster, with `sizes` rows in each."""
        inner = hardswish(self.inner.runs(torch.cat([state, signal], 1), sizes))
        strength = self.strength.runs(inner, sizes)
        weigh = self.strength.weigh
        return lambda increments: self.collect.runs(weigh(strength, self.spread.runs(increments, sizes)), sizes)


VectorField = FullField | FactoredField


class Contributions(NamedTuple):
    """The two parts of a change of the hidden vector."""

    control: Hidden
    temporal: Hidden


class StateCell(nn.Module):
    """Moves a state, which is the hidden vector unless `begin` and `visible` say otherwise."""

    def begin(self, hidden: Hidden) -> State:
        """Make the state before the first leap."""
        return hidden

    def visible(self, state: State) -> Hidden:
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

    def begin(self, hidden: Hidden) -> State:
        """Concatenate the hidden vector and the memory."""
        return torch.cat([hidden, hidden], 1)

    def visible(self, state: State) -> Hidden:
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


def _inputs(control: Control, hidden: Hidden) -> Float[Tensor, "rows inputs"]:
    return torch.cat([control.signal, control.increments[:, -1:], hidden], 1)
