"""TimesNet's convolutions in a fraction of the time, equal up to rounding.

A block is the mean of convolutions with kernels of growing width. Convolution is linear, so this is one convolution
with the mean of the padded kernels. The part of a kernel beyond the image only meets padding: an image of two rows
needs three rows of a kernel, not eleven. Convolution is a product of frequencies, which is less work; images are so
small that matrix products transform them faster than the FFT. The weights are those of the package.
"""

from functools import lru_cache
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
        """Return the mean of the convolutions."""
        kernels = cast("list[nn.Conv2d]", list(self.kernels))
        reach = len(kernels) - 1
        weight = _mean([F.pad(kernel.weight, [reach - own] * 4) for own, kernel in enumerate(kernels)])
        bias = _mean([cast("Tensor", kernel.bias) for kernel in kernels])
        down, across = (min(reach, size - 1) for size in picture.shape[2:])
        met = weight[:, :, reach - down : reach + down + 1, reach - across : reach + across + 1]
        return convolve(picture, met) + bias[:, None, None]


def convolve(
    picture: Float[Tensor, "batch channels rows columns"], weight: Float[Tensor, "out channels height width"]
) -> Float[Tensor, "batch out rows columns"]:
    """Compute `F.conv2d` with a kernel of odd size and padding that keeps the size of the image."""
    batch, channels, rows, columns = picture.shape
    out, _, height, width = weight.shape
    transform, transform_kernel, back = _transforms(rows, columns, height, width)
    pixels = picture.permute(2, 3, 0, 1).reshape(rows * columns, -1)
    taps = weight.permute(2, 3, 1, 0).reshape(height * width, -1)
    # A matrix product for each frequency, real and imaginary parts side by side. The kernel is not flipped, so its
    # frequencies are conjugate.
    seen = (transform @ pixels).view(2, -1, batch, channels).permute(1, 2, 0, 3).flatten(2)
    real, imaginary = (transform_kernel @ taps).view(2, -1, channels, out)
    answer = seen @ torch.cat([torch.cat([real, -imaginary], 2), torch.cat([imaginary, real], 2)], 1)
    parts = answer.view(-1, batch, 2, out).permute(2, 0, 1, 3).reshape(-1, batch * out)
    return (back @ parts).view(rows, columns, batch, out).permute(2, 3, 0, 1)


@lru_cache(maxsize=1000)
def _transforms(rows: int, columns: int, height: int, width: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return matrices from pixels to frequencies, from kernel entries to frequencies, and from frequencies to pixels.

    The frequencies are those of an image padded on one side by the reach of the kernel, with periodic boundaries. Real
    parts come first. Half of the column frequencies suffice: the others are their conjugates.
    """
    down, across = height // 2, width // 2
    room, wide = rows + down, columns + across
    frequency = _places(room, wide // 2 + 1)
    turns = 2 * torch.pi * frequency / torch.tensor([room, wide])
    angles = turns @ _places(rows, columns).T
    angles_kernel = turns @ (_places(height, width) - torch.tensor([down, across])).T
    is_own_conjugate = (frequency[:, 1] * 2 % wide == 0)[:, None]
    share = torch.where(is_own_conjugate, 1.0, 2.0) / (room * wide)
    matrices = (_parts(angles), _parts(angles_kernel), _parts(angles, share).T.contiguous())
    forth, forth_kernel, back = (matrix.float() for matrix in matrices)
    return forth, forth_kernel, back


def _places(rows: int, columns: int) -> Float[Tensor, "places 2"]:
    return torch.cartesian_prod(torch.arange(rows), torch.arange(columns)).double()


def _parts(angles: Float[Tensor, "frequencies places"], share: Tensor | float = 1.0) -> Tensor:
    return torch.cat([angles.cos() * share, -angles.sin() * share])


def _mean(tensors: list[Tensor]) -> Tensor:
    return torch.stack(tensors).mean(0)
