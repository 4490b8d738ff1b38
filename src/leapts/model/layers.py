"""Layers that several parts of the network share."""

from collections.abc import Sequence
from itertools import accumulate, pairwise

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

hardswish = F.hardswish  # the activation of all hidden layers

# tanh(x) = 1 - 2 sigmoid(-2x), which takes less than half the time of torch.tanh on a CPU.
TANH_FACTOR = -2.0


def tanh(x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """Compute the hyperbolic tangent."""
    return torch.rsub(torch.sigmoid(x * TANH_FACTOR), 1, alpha=2)


def tanh_times(x: Float[Tensor, "*shape"], y: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """Compute tanh(x) * y."""
    return tanh_times_scaled(x * TANH_FACTOR, y)


def tanh_times_scaled(x: Float[Tensor, "*shape"], y: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """Compute tanh(x / TANH_FACTOR) * y."""
    return torch.addcmul(y, torch.sigmoid(x), y, value=-2)


class Mlp(nn.Module):
    """Linear layers, each followed by hardswish."""

    def __init__(self, inputs: int, width: int, *, layers: int) -> None:
        super().__init__()
        sizes = [inputs] + [width] * layers
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(sizes))

    def forward(self, x: Float[Tensor, "*rows inputs"]) -> Float[Tensor, "*rows width"]:
        """Apply every layer in turn."""
        for layer in self.layers:
            x = hardswish(layer(x))
        return x


class TanhLinear(nn.Linear):
    """A linear layer without bias, followed by tanh."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(inputs, outputs, bias=False)

    def forward(self, input: Float[Tensor, "*rows inputs"]) -> Float[Tensor, "*rows outputs"]:  # noqa: A002
        """Compute outputs between -1 and 1."""
        return tanh(F.linear(input, self.weight))


class GroupedLinear(nn.Module):
    """Several linear layers of one shape: all of them on every row, or each on its own rows."""

    def __init__(self, groups: int, inputs: int, outputs: int, *, bias: bool = True) -> None:
        super().__init__()
        bound = inputs**-0.5  # as torch initializes a linear layer
        self.weight = nn.Parameter(torch.empty(groups, outputs, inputs).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(groups, outputs).uniform_(-bound, bound)) if bias else None

    def every(self, x: Float[Tensor, "rows inputs"]) -> Float[Tensor, "rows groups outputs"]:
        """Apply every layer to every row, as one matrix product."""
        bias = None if self.bias is None else self.bias.flatten()
        return F.linear(x, self.weight.flatten(0, 1), bias).view(x.shape[0], *self.weight.shape[:2])

    def one(self, x: Float[Tensor, "rows inputs"], group: int) -> Float[Tensor, "rows outputs"]:
        """Apply one layer to every row."""
        return F.linear(x, _select(self.weight, group), None if self.bias is None else _select(self.bias, group))

    def runs(self, x: Float[Tensor, "rows inputs"], sizes: Sequence[int]) -> Float[Tensor, "rows outputs"]:
        """Apply layer 0 to the first `sizes[0]` rows, layer 1 to the next `sizes[1]`, and so on."""
        if len(sizes) == 1:
            return self.one(x, 0)
        parts = enumerate(zip(sizes, accumulate(sizes), strict=True))
        return torch.cat([self.one(x[end - size : end], group) for group, (size, end) in parts])


def _select(parameter: nn.Parameter, group: int) -> Tensor:
    # The gradient of squeeze is a view; the gradient of an index is a copy into zeros.
    return parameter.squeeze(0) if len(parameter) == 1 else parameter[group]
