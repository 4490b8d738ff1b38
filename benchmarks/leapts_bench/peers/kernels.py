"""TimesNet's convolutions, several times faster and the same.

A block of it is the mean of convolutions with kernels of growing width. Convolving is linear, so that is one
convolution with the mean of the kernels, the narrower ones padded. And what a kernel reaches beyond the picture meets
padding alone: a picture of two rows needs three rows of a kernel, not eleven. The weights stay the package's own, as do
the forecasts but for rounding.
"""

from typing import cast

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn


class MergedKernels(nn.Module):
    """A block of convolutions with kernels of 1, 3, 5, ... rows and columns, computed as one convolution."""

    def __init__(self, kernels: nn.ModuleList) -> None:
        super().__init__()
        self.kernels = kernels

    def forward(self, picture: Float[Tensor, "batch channels rows columns"]) -> Float[Tensor, "batch out rows columns"]:
        """The mean of what the kernels give."""
        kernels = cast("list[nn.Conv2d]", list(self.kernels))
        reach = len(kernels) - 1
        weight = _mean([F.pad(kernel.weight, [reach - own] * 4) for own, kernel in enumerate(kernels)])
        bias = _mean([cast("Tensor", kernel.bias) for kernel in kernels])
        down, across = (min(reach, size - 1) for size in picture.shape[2:])
        met = weight[:, :, reach - down : reach + down + 1, reach - across : reach + across + 1]
        return F.conv2d(picture, met, bias, padding=(down, across))


def merge_kernels(network: nn.Module) -> None:
    """Replace every such block of a network; others have none, and stay as they are."""
    for parent in list(network.modules()):
        for name, child in list(parent.named_children()):
            if type(child).__name__ == "Inception_Block_V1":
                assert isinstance(child.kernels, nn.ModuleList)
                setattr(parent, name, MergedKernels(child.kernels))


def _mean(tensors: list[Tensor]) -> Tensor:
    return torch.stack(tensors).mean(0)
