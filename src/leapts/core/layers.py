"""The building blocks every part shares: a plain MLP, a squashed linear layer, a bank of linear layers."""

from collections.abc import Sequence
from itertools import accumulate, pairwise

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from leapts.core.activations import bend, squash


class Mlp(nn.Module):
    """Linear layers, each followed by the hidden non-linearity."""

    def __init__(self, inputs: int, width: int, *, layers: int) -> None:
        super().__init__()
        sizes = [inputs] + [width] * layers
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(sizes))

    def forward(self, x: Float[Tensor, "*rows inputs"]) -> Float[Tensor, "*rows width"]:
        """Apply every layer in turn."""
        for layer in self.layers:
            x = bend(layer(x))
        return x


class SquashedLinear(nn.Linear):
    """A linear layer without bias, and the hyperbolic tangent of what it gives."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(inputs, outputs, bias=False)

    def forward(self, input: Float[Tensor, "*rows inputs"]) -> Float[Tensor, "*rows outputs"]:  # noqa: A002
        """Between -1 and 1."""
        return squash(F.linear(input, self.weight))


class LinearBank(nn.Module):
    """Several linear layers of one shape: all of them on every row, or one of them on each run of rows."""

    def __init__(self, members: int, inputs: int, outputs: int, *, bias: bool = True) -> None:
        super().__init__()
        bound = inputs**-0.5  # as torch initialises a linear layer
        self.weight = nn.Parameter(torch.empty(members, outputs, inputs).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(members, outputs).uniform_(-bound, bound)) if bias else None

    def every(self, x: Float[Tensor, "rows inputs"]) -> Float[Tensor, "rows members outputs"]:
        """Every member on every row, as one product."""
        bias = None if self.bias is None else self.bias.flatten()
        return F.linear(x, self.weight.flatten(0, 1), bias).view(x.shape[0], *self.weight.shape[:2])

    def one(self, x: Float[Tensor, "rows inputs"], member: int) -> Float[Tensor, "rows outputs"]:
        """One member on every row."""
        weight, bias = self._member(self.weight, member), None if self.bias is None else self._member(self.bias, member)
        return F.linear(x, weight, bias)

    def runs(self, x: Float[Tensor, "rows inputs"], sizes: Sequence[int]) -> Float[Tensor, "rows outputs"]:
        """Member 0 on the first `sizes[0]` rows, member 1 on the next `sizes[1]`, and so on."""
        if len(sizes) == 1:
            return self.one(x, 0)
        ends = accumulate(sizes)
        parts = enumerate(zip(sizes, ends, strict=True))
        return torch.cat([self.one(x[end - size : end], member) for member, (size, end) in parts])

    @staticmethod
    def _member(parameter: nn.Parameter, member: int) -> Tensor:
        # The gradient of a view is a view; that of a choice is a copy into zeros.
        return parameter.squeeze(0) if len(parameter) == 1 else parameter[member]
