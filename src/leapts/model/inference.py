"""Inference copies: modules that compute the same forecast without the overhead of `nn.Module`.

In a loop of small matrix products, torch's handling of attributes, calls and scalars takes as long as the products.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple, TypeVar, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from leapts.model.layers import TANH_FACTOR, GroupedLinear, TanhLinear, tanh_times_scaled
from leapts.model.state_cells import FactoredField

M = TypeVar("M", bound=nn.Module)

_TORCH_ATTRIBUTES = {name for name in nn.Module().__dict__ if name.startswith("_")}


def inference_copy(module: M) -> M:
    """Copy a module, with the same methods, for inference; it does not follow later training."""
    original: Any = type(module)
    if issubclass(original, _InferenceCopy):
        return module
    copy = object.__new__(_copy_class(original))
    plain = copy.__dict__
    plain.update((name, value) for name, value in module.__dict__.items() if name not in _TORCH_ATTRIBUTES)
    plain.update(module._parameters)
    plain.update(module._buffers)
    children = {name: _copy_child(child) for name, child in module._modules.items()}
    plain.update(children, _modules=children)  # torch's containers iterate over the latter
    if isinstance(module, FactoredField):
        plain.update(strength=_FastGroupedLinear(module.strength, TANH_FACTOR), weigh=tanh_times_scaled)
    return cast("M", copy)


class _InferenceCopy:
    """Marks the classes of inference copies."""


@cache
def _copy_class(original: type[nn.Module]) -> type[nn.Module]:
    """Derive a class whose calls skip torch's hooks."""
    return type(original.__name__, (_InferenceCopy, original), {"__call__": original.forward})


def _copy_child(child: nn.Module | None) -> Any:
    match child:
        case None:
            return None
        case TanhLinear():
            return _FastTanhLinear(TANH_FACTOR * child.weight.t(), child.weight.new_ones(()))
        case nn.Linear():
            return _FastLinear.of(child.weight, child.bias)
        case GroupedLinear():
            return _FastGroupedLinear(child)
        case nn.ModuleList():
            return tuple(_copy_child(member) for member in child)
        case _:
            return inference_copy(child)


class _FastLinear(NamedTuple):
    """A linear layer with its weight transposed in advance."""

    weight: Tensor
    bias: Tensor | None
    transposed: Tensor

    @staticmethod
    def of(weight: Tensor, bias: Tensor | None) -> "_FastLinear":
        return _FastLinear(weight, bias, weight.t())

    def __call__(self, x: Tensor) -> Tensor:
        if x.dim() > 2:
            return F.linear(x, self.weight, self.bias)
        return torch.mm(x, self.transposed) if self.bias is None else torch.addmm(self.bias, x, self.transposed)


class _FastTanhLinear(NamedTuple):
    """A TanhLinear whose weight includes TANH_FACTOR: exact, since the factor is a power of two."""

    transposed: Tensor
    one: Tensor  # a tensor, since torch converts a Python number in every call

    def __call__(self, x: Tensor) -> Tensor:
        return torch.sub(self.one, torch.sigmoid(torch.mm(x, self.transposed)), alpha=2)


class _FastGroupedLinear:
    """A GroupedLinear with its weights split into groups in advance."""

    def __init__(self, layer: GroupedLinear, factor: float = 1.0) -> None:
        self.weight = layer.weight if factor == 1 else layer.weight * factor
        bias = layer.bias if layer.bias is None or factor == 1 else layer.bias * factor
        biases = [None] * len(self.weight) if bias is None else bias.unbind()
        self.groups = [_FastLinear.of(*group) for group in zip(self.weight.unbind(), biases, strict=True)]
        self.all = _FastLinear.of(self.weight.flatten(0, 1), None if bias is None else bias.flatten())

    def every(self, x: Tensor) -> Tensor:
        return self.all(x).view(x.shape[0], *self.weight.shape[:2])

    def one(self, x: Tensor, group: int) -> Tensor:
        return self.groups[group](x)

    def runs(self, x: Tensor, sizes: Sequence[int]) -> Tensor:
        if len(sizes) == 1:
            return self.groups[0](x)
        return GroupedLinear.runs(cast("GroupedLinear", self), x, sizes)
