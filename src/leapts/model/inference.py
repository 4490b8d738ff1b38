"""Layers that several parts of the network share, and inference copies of modules.

An inference copy computes the same forecast without the overhead of `nn.Module`: in a loop of small matrix products,
torch's handling of attributes, calls and scalars takes as long as the products.
"""

from collections.abc import Sequence
from functools import cache
from itertools import accumulate, pairwise
from typing import Any, NamedTuple, TypeVar, cast

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

M = TypeVar("M", bound=nn.Module)

_TORCH_ATTRIBUTES = {name for name in nn.Module().__dict__ if name.startswith("_")}

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


class GroupedTanh(GroupedLinear):
    """A GroupedLinear layer; `weigh` multiplies other numbers by the tanh of its outputs."""

    weigh = staticmethod(tanh_times)


def _select(parameter: nn.Parameter, group: int) -> Tensor:
    # The gradient of squeeze is a view; the gradient of an index is a copy into zeros.
    return parameter.squeeze(0) if len(parameter) == 1 else parameter[group]


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
        case GroupedTanh():
            return _FastGroupedTanh(child, TANH_FACTOR)
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


class _FastGroupedTanh(_FastGroupedLinear):
    """A GroupedTanh whose weights include TANH_FACTOR."""

    weigh = staticmethod(tanh_times_scaled)
