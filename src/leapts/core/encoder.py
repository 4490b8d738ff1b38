"""From a normalised look-back to the latent state: an MLP over time, with an optional exchange between variates."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from leapts.core.activations import bend
from leapts.core.layers import Mlp


class Encoder(nn.Module):
    """Encodes every variate's look-back by one MLP, tells variates apart, and lets them exchange.

    Variates come first in memory: mixing between them is then a single matrix product, without moving data.
    """

    def __init__(self, *, lookback: int, hidden: int, layers: int, identity: nn.Module, mixer: nn.Module) -> None:
        super().__init__()
        self.mlp = Mlp(lookback, hidden, layers=layers)
        self.identity = identity
        self.mixer = mixer

    def forward(self, history: Float[Tensor, "variates batch lookback"]) -> Float[Tensor, "variates batch hidden"]:
        """The latent state of every variate of every window."""
        latent: Tensor = self.mixer(self.identity(self.mlp(history)))
        return latent


class VariateIdentity(nn.Module):
    """A learned vector for each variate, so that variates that look alike in a window can still behave differently."""

    def __init__(self, variates: int, hidden: int) -> None:
        super().__init__()
        self.vectors = nn.Parameter(torch.empty(variates, 1, hidden).normal_(std=0.02))

    def forward(self, latent: Float[Tensor, "variates batch hidden"]) -> Float[Tensor, "variates batch hidden"]:
        """Add each variate's vector."""
        return latent + self.vectors


class MlpMixer(nn.Module):
    """Exchange through a two-layer MLP over the variates, with a residual.

    Its cost is twice variates x rank for each latent number; a rank below the number of variates keeps it bearable when
    there are hundreds of them.
    """

    def __init__(self, variates: int, *, rank: int) -> None:
        super().__init__()
        self.gather = nn.Linear(variates, rank)
        self.scatter = nn.Linear(rank, variates)

    def forward(self, latent: Float[Tensor, "variates batch hidden"]) -> Float[Tensor, "variates batch hidden"]:
        """Every variate receives a learned function of all of them."""
        columns = latent.flatten(1)
        shared = bend(torch.addmm(self.gather.bias.unsqueeze(1), self.gather.weight, columns))
        exchanged = torch.addmm(self.scatter.bias.unsqueeze(1), self.scatter.weight, shared)
        return latent + exchanged.view_as(latent)


class PooledMixer(nn.Module):
    """Exchange through the mean over variates: linear in their number and indifferent to their order."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.own = nn.Linear(hidden, hidden)
        self.pooled = nn.Linear(hidden, hidden, bias=False)
        self.out = nn.Linear(hidden, hidden)

    def forward(self, latent: Float[Tensor, "variates batch hidden"]) -> Float[Tensor, "variates batch hidden"]:
        """Every variate receives a learned function of itself and of the mean of all."""
        exchanged: Tensor = self.out(bend(self.own(latent) + self.pooled(latent.mean(0, keepdim=True))))
        return latent + exchanged
