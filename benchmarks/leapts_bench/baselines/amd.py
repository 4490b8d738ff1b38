"""AMD, adaptive multi-scale decomposition (Hu et al., 2025): our own compact implementation.

The window is averaged to several scales, which are mixed from coarse to fine. Blocks then let patches of time, and
the series within each patch, interact. The forecast is a sum of several predictors, weighted by the mixed scales.

Simplifications: all predictors are weighted by a softmax, where the paper keeps the few strongest with noise and
balances their load by a term of the loss; blocks use layer normalization throughout.
"""

from itertools import pairwise

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from leapts_bench.baselines.parts import WindowScale


class AMD(nn.Module):
    """Decompose into scales, let time and series interact, combine the forecasts of several predictors."""

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
        """Forecast every series."""
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
        """Mix from the coarsest scale to the finest."""
        levels = [x]
        for _ in self.lifts:
            levels.append(F.avg_pool1d(levels[-1], 2))
        mixed = levels.pop()
        for lift in reversed(list(self.lifts)):
            mixed = levels.pop() + lift(mixed)
        return mixed


class DualInteraction(nn.Module):
    """Forecast each patch of time from the previous one, and let its series interact."""

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
        """Return as many steps; steps before the first full patch stay unchanged."""
        whole = x.shape[2] // self.patch * self.patch
        front, *patches = x.split([x.shape[2] - whole, *[self.patch] * (whole // self.patch)], 2)
        done = [patches[0]]
        for patch in patches[1:]:
            seen = patch + self.time(self.norm(done[-1]))
            exchanged = self.across(seen.transpose(1, 2)).transpose(1, 2)
            done.append(seen + self.alpha * exchanged)
        return torch.cat([front, *done], 2)
