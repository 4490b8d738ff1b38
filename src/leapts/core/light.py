"""A lighter view of any module, for forecasts: the same numbers, without torch's bookkeeping.

In a loop of small products the bookkeeping around attributes, calls and scalars takes as long as the products.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple, TypeVar, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from leapts.core.activations import SQUASH_FACTOR, squash_times_scaled
from leapts.core.layers import LinearBank, SquashedLinear
from leapts.core.vector_fields import FactoredField

M = TypeVar("M", bound=nn.Module)


def lightened(module: M) -> M:
    """A view of a module, with the same methods. Parts of it are copies, so it does not follow later training."""
    heavy: Any = type(module)
    if issubclass(heavy, _Light):
        return module
    view = object.__new__(_light_class(heavy))
    plain = view.__dict__
    plain.update((name, value) for name, value in module.__dict__.items() if name[0] != "_")
    plain.update(module._parameters)
    plain.update(module._buffers)
    plain.update((name, _lightened_child(child)) for name, child in module._modules.items())
    if isinstance(module, FactoredField):
        plain.update(strength=_LightBank(module.strength, SQUASH_FACTOR), weigh=squash_times_scaled)
    return cast("M", view)


class _Light:
    """Marks a view."""


@cache
def _light_class(heavy: type[nn.Module]) -> type[nn.Module]:
    """The same class, to be called without hooks."""
    return type(heavy.__name__, (_Light, heavy), {"__call__": heavy.forward})


def _lightened_child(child: nn.Module | None) -> Any:
    match child:
        case None:
            return None
        case SquashedLinear():
            return _Squashed(SQUASH_FACTOR * child.weight.t(), child.weight.new_ones(()))
        case nn.Linear():
            return _Affine.of(child.weight, child.bias)
        case LinearBank():
            return _LightBank(child)
        case nn.ModuleList():
            return tuple(_lightened_child(member) for member in child)
        case _:
            return lightened(child)


class _Affine(NamedTuple):
    """A linear layer, its weight transposed beforehand."""

    weight: Tensor
    bias: Tensor | None
    transposed: Tensor

    @staticmethod
    def of(weight: Tensor, bias: Tensor | None) -> "_Affine":
        return _Affine(weight, bias, weight.t())

    def __call__(self, x: Tensor) -> Tensor:
        if x.dim() > 2:
            return F.linear(x, self.weight, self.bias)
        return torch.mm(x, self.transposed) if self.bias is None else torch.addmm(self.bias, x, self.transposed)


class _Squashed(NamedTuple):
    """A squashed linear layer whose weight holds the squashing's factor: exact, since that is a power of two."""

    transposed: Tensor
    one: Tensor  # a tensor: torch converts a plain number anew in every call

    def __call__(self, x: Tensor) -> Tensor:
        return torch.sub(self.one, torch.sigmoid(torch.mm(x, self.transposed)), alpha=2)


class _LightBank:
    """A bank with its members cut out beforehand."""

    def __init__(self, bank: LinearBank, factor: float = 1.0) -> None:
        weight = bank.weight if factor == 1 else bank.weight * factor
        bias = bank.bias if bank.bias is None or factor == 1 else bank.bias * factor
        self.weight = weight
        biases = [None] * len(weight) if bias is None else bias.unbind()
        self.members = [_Affine.of(one, own) for one, own in zip(weight.unbind(), biases, strict=True)]
        self.all = _Affine.of(weight.flatten(0, 1), None if bias is None else bias.flatten())

    def every(self, x: Tensor) -> Tensor:
        return self.all(x).view(x.shape[0], *self.weight.shape[:2])

    def one(self, x: Tensor, member: int) -> Tensor:
        return self.members[member](x)

    def runs(self, x: Tensor, sizes: Sequence[int]) -> Tensor:
        return LinearBank.runs(cast("LinearBank", self), x, sizes)
