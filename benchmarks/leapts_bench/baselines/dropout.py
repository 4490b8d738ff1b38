"""Dropout that draws sixteen bits for each value, where torch draws a whole random number."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

_BITS = 16
_STEPS = 2**_BITS
_PER_DRAW = 64 // _BITS


class PackedDropout(nn.Module):
    """Dropout in a fraction of the time, with other draws: a value stays with its probability, to a share of 2^-17."""

    def __init__(self, probability: float) -> None:
        super().__init__()
        self.probability = probability
        # How many of the numbers that sixteen bits can be mean that a value stays.
        self.staying = round((1 - probability) * _STEPS)

    def forward(self, values: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        """The values that stay, as much larger as there are fewer of them; all of them when not learning."""
        if not self.training or self.staying == _STEPS:
            return values
        draws = torch.empty(-(-values.numel() // _PER_DRAW), dtype=torch.int64).random_(-(2**63), None)
        numbers = draws.view(torch.int16)[: values.numel()]
        stays = torch.lt(numbers, self.staying - _STEPS // 2, out=values.new_empty(values.numel()))
        return values * stays.mul_(_STEPS / max(1, self.staying)).view_as(values)
