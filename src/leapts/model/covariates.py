"""Covariates in the network: what they add to the target, what the encoder sees of them, and what a leap knows.

Their effect, a learned function of the covariates of one step, is subtracted from the look-back and added to the
horizon again; encoder, leaps and linear path forecast what is left. Categories are channels of zeros and ones, so that
the first linear layer holds their embeddings.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from leapts.errors import ShapeError
from leapts.model.inference import hardswish
from leapts.parts import CovariateChannels

_WIDTH, _CELL_WIDTH, _MAX_CELLS = 16, 8, 24


class CovariateWindows(NamedTuple):
    """Channels of the covariates of windows; those of known-future covariates come first."""

    past: Float[Tensor, "batch series lookback channels"]
    future: Float[Tensor, "batch series horizon known"]
    static: Float[Tensor, "batch series static"]


class Known(NamedTuple):
    """What is known of windows beside the target, as [series, batch, ...]."""

    network: "CovariateNetwork"
    past_effect: Tensor
    future_effect: Tensor
    summary: Tensor  # for the encoder
    steps: Tensor  # embedding of each step of the horizon, before its activation
    sums: Tensor  # of the embeddings before each step

    def by_row(self, arrange: Callable[[Tensor], Tensor]) -> "Known":
        """Arrange the series, and flatten series and windows to rows."""
        return Known(self.network, *(arrange(part).flatten(0, 1) for part in self[1:]))

    def written(self, latent: Tensor) -> Tensor:
        """Compute what the covariates of each step write to the coarse forecast."""
        shared = self.network.latent(latent).unsqueeze(1)
        written: Tensor = self.network.write(hardswish(self.steps + shared)).flatten(1)
        return written

    def ahead(self, hidden: Tensor, start: Tensor, rows: Tensor) -> Tensor:
        """Add to hidden vectors the means of what is known over spans of 1, 2, 4 ... steps from `start` on."""
        horizon = self.sums.shape[1] - 1
        begin = start.detach().nan_to_num(0.0).long().clamp(0, horizon).unsqueeze(1)
        ends = (begin + self.network.spans).clamp(max=horizon)
        places = torch.cat([begin, ends], 1) + (rows * (horizon + 1)).unsqueeze(1)
        sums = self.sums.flatten(0, 1).index_select(0, places.flatten()).unflatten(0, places.shape)
        means = (sums[:, 1:] - sums[:, :1]) / (ends - begin).clamp(min=1).unsqueeze(2)
        seen: Tensor = hidden + self.network.outlook(means.flatten(1))
        return seen


class CovariateNetwork(nn.Module):
    """Embeds covariates step by step; its effects start at zero."""

    def __init__(
        self, channels: CovariateChannels, lookback: int, horizon: int, hidden: int, outputs_per_step: int
    ) -> None:
        super().__init__()
        self.known = channels.future
        self.linear = nn.Linear(self.known, 1, bias=False)
        self.step = nn.Linear(self.known, _WIDTH)
        self.static = nn.Linear(channels.static, _WIDTH, bias=False)
        self.curve = nn.Linear(_WIDTH, 1, bias=False)
        self.past_cell = nn.Linear(self.known + channels.past, _CELL_WIDTH)
        self.future_cell = nn.Linear(self.known, _CELL_WIDTH)
        self.latent = nn.Linear(hidden, _WIDTH)
        self.write = nn.Linear(_WIDTH, outputs_per_step)
        self.spans: Tensor
        spans = torch.tensor([2**power for power in range(horizon.bit_length())], device="cpu")
        self.register_buffer("spans", spans, persistent=False)
        self.outlook = nn.Linear(len(spans) * _WIDTH, hidden, bias=False)
        for start in (self.linear.weight, self.curve.weight, self.write.weight, self.write.bias, self.outlook.weight):
            nn.init.zeros_(start)
        self.summary_size = (_cells(lookback) + _cells(horizon)) * _CELL_WIDTH + channels.static

    def forward(self, windows: CovariateWindows | None) -> Known:
        """Embed the covariates of windows."""
        if windows is None:
            raise ShapeError("this model was built with covariates; give those of the windows")
        past, future, static = (channels.transpose(0, 1) for channels in windows)
        of_series = self.static(static).unsqueeze(-2)
        steps = self.step(future) + of_series
        cells = [self.past_cell(_pooled(past)).flatten(2), self.future_cell(_pooled(future)).flatten(2)]
        embedded, before = hardswish(steps), past[..., : self.known]
        return Known(
            network=self,
            past_effect=self._effect(before, hardswish(self.step(before) + of_series)),
            future_effect=self._effect(future, embedded),
            summary=torch.cat([*cells, static], -1),
            steps=steps,
            sums=F.pad(embedded.cumsum(-2), (0, 0, 1, 0)),
        )

    def _effect(self, channels: Tensor, embedded: Tensor) -> Tensor:
        effect: Tensor = (self.linear(channels) + self.curve(embedded)).squeeze(-1)
        return effect


def _cells(steps: int) -> int:
    return steps // -(-steps // _MAX_CELLS)


def _pooled(values: Float[Tensor, "series batch steps channels"]) -> Float[Tensor, "series batch cells channels"]:
    """Average the steps of each cell."""
    cells = _cells(values.shape[2])
    size = values.shape[2] // cells
    means: Tensor = values[:, :, : cells * size].unflatten(2, (cells, size)).mean(3)
    return means
