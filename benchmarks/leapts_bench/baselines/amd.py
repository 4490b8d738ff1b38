"""AMD, adaptive multi-scale decomposition (Hu et al., 2025), compact and our own, from its paper.

The window is averaged down to several scales, which are mixed from coarse to fine; blocks then let patches of time, and
the variates at each of them, act on each other; at the end several predictors share the forecast, and how much each
counts depends on the mixed scales.

Simplified: every predictor takes part, weighted by a softmax, where the paper keeps the strongest few under noise and
balances their load by a term in the loss; normalisation within the blocks is by layer throughout.
"""

from itertools import pairwise

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from leapts_bench.baselines.parts import WindowScale


class AMD(nn.Module):
    """Decompose into scales, let time and variates interact, synthesise the forecasts of several predictors."""

    def __init__(
        self,
        *,
        input_size: int,
        horizon: int,
        variates: int,
        scales: int = 3,
        patch: int = 16,
        blocks: int = 1,
        experts: int = 8,
        width: int = 256,
        alpha: float = 0.0,
        dropout: float = 0.1,
    ) -> None:
        super().__init__()
        self.mixing = ScaleMixing(input_size, scales)
        self.blocks = nn.ModuleList(
            DualInteraction(input_size, variates, patch=patch, alpha=alpha, dropout=dropout) for _ in range(blocks)
        )
        self.selector = nn.Sequential(nn.Linear(input_size, width), nn.ReLU(), nn.Linear(width, experts))
        self.inner = nn.Sequential(nn.Linear(input_size, width), nn.ReLU(), nn.Dropout(dropout))
        # The last layers of all predictors as one product.
        self.experts = nn.Linear(width, experts * horizon)
        self.shape = (experts, horizon)

    def forward(self, history: Float[Tensor, "batch variates lookback"]) -> Float[Tensor, "batch variates horizon"]:
        """Forecast every variate."""
        scale = WindowScale.of(history)
        mixed = self.mixing(scale.apply(history))
        x = mixed
        for block in self.blocks:
            x = block(x)
        weights = self.selector(mixed).softmax(2)
        forecasts = self.experts(self.inner(x)).unflatten(2, self.shape)
        return scale.undo(torch.einsum("bve,bveh->bvh", weights, forecasts))


class ScaleMixing(nn.Module):
    """Averages of growing width, each mapped to the length of the next finer one and added to it."""

    def __init__(self, steps: int, scales: int) -> None:
        super().__init__()
        lengths = [steps]
        while len(lengths) <= scales and lengths[-1] >= 4:
            lengths.append(lengths[-1] // 2)
        self.lifts = nn.ModuleList(
            nn.Sequential(nn.Linear(coarse, fine), nn.GELU(), nn.Linear(fine, fine))
            for fine, coarse in pairwise(lengths)
        )

    def forward(self, x: Float[Tensor, "batch variates steps"]) -> Float[Tensor, "batch variates steps"]:
        """From the coarsest scale to the finest."""
        levels = [x]
        for _ in self.lifts:
            levels.append(F.avg_pool1d(levels[-1], 2))
        mixed = levels.pop()
        for lift in reversed(list(self.lifts)):
            mixed = levels.pop() + lift(mixed)
        return mixed


class DualInteraction(nn.Module):
    """Patch after patch of time: each is forecast from the one before, and its variates act on each other."""

    def __init__(self, steps: int, variates: int, *, patch: int, alpha: float, dropout: float) -> None:
        super().__init__()
        self.patch = min(patch, steps)
        self.alpha = alpha
        self.norm = nn.LayerNorm(self.patch)
        self.time = nn.Sequential(nn.Linear(self.patch, self.patch), nn.GELU(), nn.Dropout(dropout))
        hidden = max(8, 2 * variates)
        self.across = nn.Sequential(
            nn.LayerNorm(variates),
            nn.Linear(variates, hidden),
            nn.GELU(),
            nn.Dropout(dropout),
            nn.Linear(hidden, variates),
        )

    def forward(self, x: Float[Tensor, "batch variates steps"]) -> Float[Tensor, "batch variates steps"]:
        """The same steps; those that do not fill a patch stand in front and stay as they are."""
        whole = x.shape[2] // self.patch * self.patch
        front, *patches = x.split([x.shape[2] - whole, *[self.patch] * (whole // self.patch)], 2)
        done = [patches[0]]
        for patch in patches[1:]:
            seen = patch + self.time(self.norm(done[-1]))
            exchanged = self.across(seen.transpose(1, 2)).transpose(1, 2)
            done.append(seen + self.alpha * exchanged)
        return torch.cat([front, *done], 2)
