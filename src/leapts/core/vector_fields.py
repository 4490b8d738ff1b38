"""The cluster-specific vector fields F_g and G_g of the controlled differential equation, in two forms.

Time is one more control: a field maps the increments of the control signal and of time, side by side, to a change of
the state. Feeding the increments with one part set to zero splits that change exactly into its two contributions.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from leapts.core.activations import bend, squash, squash_times
from leapts.core.control import Drive
from leapts.core.layers import LinearBank


class Contributions(NamedTuple):
    """The two parts of a change of state."""

    control: Float[Tensor, "rows hidden"]
    temporal: Float[Tensor, "rows hidden"]


@runtime_checkable
class VectorField(Protocol):
    """A field F(h, u) du + G(h, u) dt. Rows come sorted by cluster; `sizes` counts the rows of each cluster."""

    def advance(
        self, state: Float[Tensor, "rows hidden"], drive: Drive, sizes: Sequence[int]
    ) -> Float[Tensor, "rows hidden"]:
        """The state after one Euler step."""

    def contributions(self, state: Float[Tensor, "rows hidden"], drive: Drive, sizes: Sequence[int]) -> Contributions:
        """The step's change of state, split into what the control signal and what time brought about."""


class FullField(nn.Module):
    """The field as a matrix for every row: hidden x (control + 1) numbers, bounded by the hyperbolic tangent."""

    def __init__(self, *, clusters: int, hidden: int, control: int, width: int) -> None:
        super().__init__()
        self.inner = LinearBank(clusters, hidden + control, width)
        self.outer = LinearBank(clusters, width, hidden * (control + 1))

    def advance(self, state: Tensor, drive: Drive, sizes: Sequence[int]) -> Tensor:
        """State plus matrix times increments."""
        matrix, increments = self._matrix(state, drive, sizes), drive.increments.unsqueeze(2)
        return torch.baddbmm(state.unsqueeze(2), matrix, increments).squeeze(2)

    def contributions(self, state: Tensor, drive: Drive, sizes: Sequence[int]) -> Contributions:
        """The control columns and the time column, each times its own increments."""
        parts = self._matrix(state, drive, sizes) * drive.increments.unsqueeze(1)
        return Contributions(parts[..., :-1].sum(2), parts[..., -1])

    def _matrix(
        self, state: Float[Tensor, "rows hidden"], drive: Drive, sizes: Sequence[int]
    ) -> Float[Tensor, "rows hidden controls"]:
        inner = bend(self.inner.runs(torch.cat([state, drive.control], 1), sizes))
        field = squash(self.outer.runs(inner, sizes))
        return field.view(state.shape[0], state.shape[1], drive.increments.shape[1])


class FactoredField(nn.Module):
    """The field as V diag(tanh s(h, u)) B, with time as one more control: a sixth of the full field's cost.

    A rank of at least the number of controls puts no limit on the rank of F.
    """

    def __init__(self, *, clusters: int, hidden: int, control: int, width: int, rank: int) -> None:
        super().__init__()
        self.inner = LinearBank(clusters, hidden + control, width)
        self.strength = LinearBank(clusters, width, rank)
        self.spread = LinearBank(clusters, control + 1, rank, bias=False)
        self.collect = LinearBank(clusters, rank, hidden, bias=False)
        self.weigh = squash_times

    def advance(self, state: Tensor, drive: Drive, sizes: Sequence[int]) -> Tensor:
        """Increments spread over the ranks, each weighted by its strength, collected into the state."""
        return state + self._push(self._strength(state, drive, sizes), drive.increments, sizes)

    def contributions(self, state: Tensor, drive: Drive, sizes: Sequence[int]) -> Contributions:
        """The same with the other part's increment set to zero."""
        strength = self._strength(state, drive, sizes)
        control, elapsed = drive.increments[:, :-1], drive.increments[:, -1:]
        return Contributions(
            self._push(strength, torch.cat([control, torch.zeros_like(elapsed)], 1), sizes),
            self._push(strength, torch.cat([torch.zeros_like(control), elapsed], 1), sizes),
        )

    def _strength(
        self, state: Float[Tensor, "rows hidden"], drive: Drive, sizes: Sequence[int]
    ) -> Float[Tensor, "rows rank"]:
        inner = bend(self.inner.runs(torch.cat([state, drive.control], 1), sizes))
        return self.strength.runs(inner, sizes)

    def _push(
        self,
        strength: Float[Tensor, "rows rank"],
        increments: Float[Tensor, "rows controls"],
        sizes: Sequence[int],
    ) -> Float[Tensor, "rows hidden"]:
        return self.collect.runs(self.weigh(strength, self.spread.runs(increments, sizes)), sizes)
