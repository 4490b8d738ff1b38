"""The encoder: from a normalized look-back to a latent vector, with optional mixing of series."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from leapts.model.inference import Mlp, hardswish

Latent = Float[Tensor, "series batch hidden"]


class Encoder(nn.Module):
    """Encodes the look-back of every series by one MLP, adds series embeddings, and mixes the series."""

    def __init__(
        self, *, inputs: int, hidden: int, layers: int, pooling: nn.Module, identity: nn.Module, mixer: nn.Module
    ) -> None:
        super().__init__()
        self.pooling = pooling
        self.mlp = Mlp(inputs, hidden, layers=layers)
        self.identity = identity  # the series embedding; its name is part of saved models
        self.mixer = mixer

    def forward(self, history: Float[Tensor, "series batch inputs"], beside: Tensor | None = None) -> Latent:
        """Compute the latent vector of every series of every window, from what is known beside its history, too."""
        inputs = self.pooling(history)
        inputs = inputs if beside is None else torch.cat([inputs, beside], -1)
        latent: Tensor = self.mixer(self.identity(self.mlp(inputs)))
        return latent


class LookbackPooling(nn.Module):
    """Keeps the latest steps of a look-back, and averages older ones over 4, 16 and 64 steps.

    A look-back of many seasons then costs hardly more than a short one. Steps before the oldest full mean are dropped.
    """

    def __init__(self, lookback: int) -> None:
        super().__init__()
        self.lookback = lookback
        self.spans: list[tuple[int, int, int]] = []  # start, stop and steps of each mean, the oldest first
        stop = lookback
        for size, length in ((1, 128), (4, 256), (16, 1024), (64, lookback)):
            start = stop - min(stop, length) // size * size
            if start < stop:
                self.spans.insert(0, (start, stop, size))
            stop = start
        self.outputs = sum((stop - start) // size for start, stop, size in self.spans)

    def forward(self, history: Float[Tensor, "series batch inputs"]) -> Float[Tensor, "series batch outputs"]:
        """Average the steps of every look-back, and of its mask if there is one."""
        parts = history.unflatten(-1, (-1, self.lookback))
        means = [parts[..., a:b].unflatten(-1, (-1, size)).mean(-1) for a, b, size in self.spans]
        return torch.cat(means, -1).flatten(-2)


class LinearPath(nn.Module):
    """A linear map from the normalized look-back to the horizon, which copies seasons better than an MLP.

    It starts at zero; `leapts.training.linear` fits it by least squares before training, and adds simple forecasts to
    it afterwards. The rest of the network then has a share below 1 of the point forecast.
    """

    def __init__(self, lookback: int, horizon: int, outputs_per_step: int) -> None:
        super().__init__()
        self.outputs_per_step = outputs_per_step
        self.map = nn.Linear(lookback, horizon, bias=False)
        nn.init.zeros_(self.map.weight)
        self.share: Tensor
        self.register_buffer("share", torch.ones(()))

    def forward(
        self, written: Float[Tensor, "rows outputs"], history: Float[Tensor, "rows lookback"]
    ) -> Float[Tensor, "rows outputs"]:
        """Add the linear forecast to the point forecast, which is the first output of every step."""
        if self.outputs_per_step == 1:
            return torch.addcmul(self.map(history), written, self.share)
        point, *others = written.unflatten(1, (-1, self.outputs_per_step)).unbind(2)
        return torch.stack([torch.addcmul(self.map(history), point, self.share), *others], 2).flatten(1)


class SeriesEmbedding(nn.Module):
    """Adds a learned vector for each series, so that series with equal windows can differ in forecast."""

    def __init__(self, n_series: int, hidden: int) -> None:
        super().__init__()
        self.vectors = nn.Parameter(torch.empty(n_series, 1, hidden).normal_(std=0.02))

    def forward(self, latent: Latent) -> Latent:
        """Add the vector of each series."""
        return latent + self.vectors


class MlpMixer(nn.Module):
    """Mixes series by a two-layer MLP over all of them, at a cost of 2 x series x rank for each latent value."""

    def __init__(self, n_series: int, *, rank: int) -> None:
        super().__init__()
        self.gather = nn.Linear(n_series, rank)
        self.scatter = nn.Linear(rank, n_series)

    def forward(self, latent: Latent) -> Latent:
        """Add to every series a learned function of all series."""
        columns = latent.flatten(1)
        shared = hardswish(torch.addmm(self.gather.bias.unsqueeze(1), self.gather.weight, columns))
        mixed = torch.addmm(self.scatter.bias.unsqueeze(1), self.scatter.weight, shared)
        return latent + mixed.view_as(latent)


class PooledMixer(nn.Module):
    """Mixes series by way of their mean: linear in their number, and independent of their order."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.own = nn.Linear(hidden, hidden)
        self.pooled = nn.Linear(hidden, hidden, bias=False)
        self.out = nn.Linear(hidden, hidden)

    def forward(self, latent: Latent) -> Latent:
        """Add to every series a learned function of itself and of the mean of all series."""
        mixed: Tensor = self.out(hardswish(self.own(latent) + self.pooled(latent.mean(0, keepdim=True))))
        return latent + mixed
