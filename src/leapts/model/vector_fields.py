"""Vector fields F and G of the controlled differential equation, one pair per cluster, in two forms.

At a state h and a control signal u, a field is a linear map of increments: F(h, u) du + G(h, u) dt. Time is one more
control, so the increments of the signal and of time are one vector.
"""

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from leapts.model.layers import GroupedLinear, hardswish, tanh, tanh_times

Hidden = Float[Tensor, "rows hidden"]
Signal = Float[Tensor, "rows control"]
LinearMap = Callable[[Tensor], Tensor]  # from increments, [rows, control + 1], to a change of state, [rows, hidden]


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
        self.strength = GroupedLinear(clusters, width, rank)
        self.spread = GroupedLinear(clusters, control + 1, rank, bias=False)
        self.collect = GroupedLinear(clusters, rank, hidden, bias=False)
        self.weigh = tanh_times

    def at(self, state: Hidden, signal: Signal, sizes: Sequence[int]) -> LinearMap:
        """Return the field at these states; rows are sorted by cluster, with `sizes` rows in each."""
        inner = hardswish(self.inner.runs(torch.cat([state, signal], 1), sizes))
        strength = self.strength.runs(inner, sizes)
        return lambda increments: self.collect.runs(self.weigh(strength, self.spread.runs(increments, sizes)), sizes)


VectorField = FullField | FactoredField
