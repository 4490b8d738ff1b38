"""Inference copies: modules that compute the same forecast without the overhead of `nn.Module`.

In a loop of small matrix products, torch's handling of attributes and calls takes as long as the products.
"""

from functools import cache
from typing import Any, TypeVar, cast

from torch import nn

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
    children = {name: None if child is None else inference_copy(child) for name, child in module._modules.items()}
    plain.update(children, _modules=children)  # torch's containers iterate over the latter
    return cast("M", copy)


class _InferenceCopy:
    """Marks the classes of inference copies."""


@cache
def _copy_class(original: type[nn.Module]) -> type[nn.Module]:
    """Derive a class whose calls skip torch's hooks."""
    return type(original.__name__, (_InferenceCopy, original), {"__call__": original.forward})
