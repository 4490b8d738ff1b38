"""The seam of the state: what carries the controller's state from one leap to the next."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from leapts.core.activations import squash
from leapts.core.control import Drive
from leapts.core.vector_fields import Contributions, VectorField


@runtime_checkable
class StateCell(Protocol):
    """Advances a state, which holds the controller's hidden vector and what else the cell needs beside it."""

    def begin(self, hidden: Float[Tensor, "rows hidden"]) -> Float[Tensor, "rows state"]:
        """The state before the first leap."""

    def visible(self, state: Float[Tensor, "rows state"]) -> Float[Tensor, "rows hidden"]:
        """The controller's hidden vector in a state."""

    def advance(
        self, state: Float[Tensor, "rows state"], drive: Drive, sizes: Sequence[int]
    ) -> Float[Tensor, "rows state"]:
        """The state for the next leap. Rows come sorted by cluster; `sizes` counts the rows of each cluster."""

    def contributions(self, state: Float[Tensor, "rows state"], drive: Drive, sizes: Sequence[int]) -> Contributions:
        """What the control signal and what time changed in the hidden vector; together, all that changed."""


class ControlledCell(nn.Module):
    """The neural controlled differential equation of the paper: one Euler step along the leap."""

    def __init__(self, field: VectorField) -> None:
        super().__init__()
        self.field = field

    def begin(self, hidden: Tensor) -> Tensor:
        """The state is the hidden vector."""
        return hidden

    def visible(self, state: Tensor) -> Tensor:
        """The state is the hidden vector."""
        return state

    def advance(self, state: Tensor, drive: Drive, sizes: Sequence[int]) -> Tensor:
        """As the field moves it."""
        return self.field.advance(state, drive, sizes)

    def contributions(self, state: Tensor, drive: Drive, sizes: Sequence[int]) -> Contributions:
        """As the field splits them."""
        return self.field.contributions(state, drive, sizes)


class _RecurrentCell(nn.Module):
    """What the recurrent ablations share: they see the control signal and the time elapsed as plain inputs.

    A recurrent update does not split into two terms. Its temporal contribution is what setting the elapsed time to zero
    would take away; the control contribution is the rest.
    """

    def visible(self, state: Tensor) -> Tensor:
        raise NotImplementedError

    def advance(self, state: Tensor, drive: Drive, sizes: Sequence[int]) -> Tensor:
        raise NotImplementedError

    def contributions(self, state: Tensor, drive: Drive, sizes: Sequence[int]) -> Contributions:
        increments = torch.cat([drive.increments[:, :-1], torch.zeros_like(drive.increments[:, -1:])], 1)
        timeless = self.visible(self.advance(state, drive._replace(increments=increments), sizes))
        after = self.visible(self.advance(state, drive, sizes))
        return Contributions(timeless - self.visible(state), after - timeless)


class RecurrentCell(_RecurrentCell):
    """A plain recurrent network in place of the differential equation."""

    def __init__(self, *, hidden: int, control: int) -> None:
        super().__init__()
        self.update = nn.Linear(control + 1 + hidden, hidden)

    def begin(self, hidden: Tensor) -> Tensor:
        """The state is the hidden vector."""
        return hidden

    def visible(self, state: Tensor) -> Tensor:
        """The state is the hidden vector."""
        return state

    def advance(self, state: Tensor, drive: Drive, sizes: Sequence[int]) -> Tensor:  # noqa: ARG002
        """Tanh of a linear map of inputs and state."""
        return squash(self.update(_inputs(drive, state)))


class LongShortTermCell(_RecurrentCell):
    """An LSTM in place of the differential equation. Its memory stands beside the hidden vector, at first its copy."""

    def __init__(self, *, hidden: int, control: int) -> None:
        super().__init__()
        self.gates = nn.Linear(control + 1 + hidden, 4 * hidden)

    def begin(self, hidden: Tensor) -> Tensor:
        """Hidden vector and memory."""
        return torch.cat([hidden, hidden], 1)

    def visible(self, state: Tensor) -> Tensor:
        """The first half."""
        return state[:, : state.shape[1] // 2]

    def advance(self, state: Tensor, drive: Drive, sizes: Sequence[int]) -> Tensor:  # noqa: ARG002
        """Input, forget, candidate and output gates, in the usual order."""
        hidden, memory = state.chunk(2, 1)
        admit, keep, candidate, expose = self.gates(_inputs(drive, hidden)).chunk(4, 1)
        memory = torch.sigmoid(keep) * memory + torch.sigmoid(admit) * squash(candidate)
        return torch.cat([torch.sigmoid(expose) * squash(memory), memory], 1)


def _inputs(drive: Drive, hidden: Float[Tensor, "rows hidden"]) -> Float[Tensor, "rows inputs"]:
    return torch.cat([drive.control, drive.increments[:, -1:], hidden], 1)
