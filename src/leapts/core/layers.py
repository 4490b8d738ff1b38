"""The building blocks every part shares: a plain MLP, a bank of linear layers, and a lighter view of any module."""

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any, NamedTuple, TypeVar

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from leapts.core.activations import bend


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
        return F.linear(x, self.weight[member], None if self.bias is None else self.bias[member])

    def runs(self, x: Float[Tensor, "rows inputs"], sizes: Sequence[int]) -> Float[Tensor, "rows outputs"]:
        """Member 0 on the first `sizes[0]` rows, member 1 on the next `sizes[1]`, and so on."""
        if len(sizes) == 1:
            return self.one(x, 0)
        ends = accumulate(sizes)
        parts = enumerate(zip(sizes, ends, strict=True))
        return torch.cat([self.one(x[end - size : end], member) for member, (size, end) in parts])


class _Affine(NamedTuple):
    """A linear layer's weights, to be applied without the layer."""

    weight: Tensor
    bias: Tensor | None

    def __call__(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight, self.bias)


M = TypeVar("M", bound=nn.Module)


def lightened(module: M) -> M:
    """A view of a module with the same methods and none of torch's bookkeeping around attributes and calls.

    In a loop of small products that bookkeeping takes as long as the products. The view holds the parameters
    themselves, so make it anew for each pass rather than keep it. Call its parts by their methods: it has no hooks.
    """
    view = object.__new__(type(module))
    plain = view.__dict__
    plain.update((name, value) for name, value in module.__dict__.items() if name[0] != "_")
    plain.update(module._parameters)
    plain.update(module._buffers)
    plain.update((name, _lightened_child(child)) for name, child in module._modules.items())
    return view


def _lightened_child(child: nn.Module | None) -> Any:
    if isinstance(child, nn.Linear):
        return _Affine(child.weight, child.bias)
    if isinstance(child, nn.ModuleList):
        return tuple(_lightened_child(member) for member in child)
    return None if child is None else lightened(child)
