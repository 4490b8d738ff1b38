"""TimeMixer's blocks in about two thirds of the time, equal up to rounding.

A block splits each scale into trend and season, passes seasons from fine to coarse and trends from coarse to fine, and
adds the two. Trend and season of a scale sum to the scale, so only the passed parts have to be added to it. A moving
average is a matrix product, which is faster than pooling; with features first and time last, no layer needs a
transposition. The weights are those of the package.
"""

from collections.abc import Iterable
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from leapts_bench.baselines.parts import MovingAverage


class FoldedMixing(nn.Module):
    """A block that mixes the scales of single series, with moving averages as trends."""

    def __init__(self, block: Any) -> None:
        super().__init__()
        self.block = block
        average = MovingAverage(block.decompsition.MovingAvg.kernel_size)
        units = [torch.eye(block.seq_len // 2**halvings) for halvings in range(block.down_sampling_layers + 1)]
        self.to_trend = [average(unit[None])[0].T for unit in units]
        self.to_season = [unit - trend for unit, trend in zip(units, self.to_trend, strict=True)]

    def forward(self, scales: list[Float[Tensor, "rows _ features"]]) -> list[Float[Tensor, "rows _ features"]]:
        """Return the mixed scales, from fine to coarse."""
        own = [scale.permute(2, 0, 1).contiguous() for scale in scales]
        seasons = [F.linear(scale, taken) for scale, taken in zip(own[:-1], self.to_season[:-1], strict=True)]
        trends = [F.linear(scale, taken) for scale, taken in zip(own[1:], self.to_trend[1:], strict=True)]
        down = _passed_on(seasons, self.block.mixing_multi_scale_season.down_sampling_layers)
        up = _passed_on(reversed(trends), self.block.mixing_multi_scale_trend.up_sampling_layers)
        mixed = list(own)
        for scale, passed in [*enumerate(down, 1), *enumerate(reversed(up))]:
            mixed[scale] = mixed[scale] + passed
        return [(before + self._crossed(after)).permute(1, 2, 0) for before, after in zip(own, mixed, strict=True)]

    def _crossed(self, scale: Float[Tensor, "features rows steps"]) -> Float[Tensor, "features rows steps"]:
        first, _, last = self.block.out_cross_layer
        hidden = F.gelu(torch.addmm(first.bias[:, None], first.weight, scale.flatten(1)))
        return torch.addmm(last.bias[:, None], last.weight, hidden).view_as(scale)


def can_fold(block: Any) -> bool:
    """Check whether `FoldedMixing` can replace a block of TimeMixer."""
    return (
        bool(block.channel_independence)
        and block.down_sampling_window == 2
        and hasattr(block.decompsition, "MovingAvg")
    )


def _passed_on(parts: Iterable[Tensor], layers: nn.ModuleList) -> list[Tensor]:
    """Return what each part passes to the next, including what it received."""
    passed: list[Tensor] = []
    for part, layer in zip(parts, layers, strict=True):
        passed.append(layer(part + passed[-1] if passed else part))
    return passed
