"""Sample paths: whole futures, whose steps and series depend on each other as they did on held-out windows.

A held-out target becomes a normal score: the standard normal quantile of the level at which the forecast had it. Random
sums of the scores of held-out windows have the same correlations between steps, and between the series of a
multivariate model. Read back through the quantiles of a forecast, they are sample paths of it.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Float16, Float64
from torch import Generator, Tensor

from leapts.forecasting.intervals import normal_scores_of

MAX_SCORES = 2**22  # numbers kept, 8 MiB
_MAX_WINDOWS = 256
MAX_SCORE = 4.0
# Weight of the cautious assumption that all steps err in one direction, in held-out windows.
_PRIOR_WINDOWS = 5

Scores = Float16[Tensor, "windows series h"]


def held_out_scores(
    quantiles: Float[Tensor, "windows series h quantiles"],
    targets: Float[Tensor, "windows series h"],
    levels: Sequence[float],
) -> Scores:
    """Compute the normal scores of held-out targets under their calibrated forecasts."""
    count = min(len(targets), _MAX_WINDOWS, max(1, MAX_SCORES // targets[0].numel()))
    chosen = torch.linspace(0, len(targets) - 1, count).round().long()
    return normal_scores(quantiles[chosen], targets[chosen], levels).clamp(-MAX_SCORE, MAX_SCORE).half()


def normal_scores(
    quantiles: Float[Tensor, "*rows quantiles"], targets: Float[Tensor, "*rows"], levels: Sequence[float]
) -> Float64[Tensor, "*rows"]:
    """Compute the standard normal quantile of the level at which a forecast has each target.

    It is linear between two quantiles, and beyond the outer two.
    """
    quantiles, targets, scores = quantiles.double(), targets.double(), normal_scores_of(levels)
    right = (quantiles < targets.unsqueeze(-1)).sum(-1).clamp(1, len(levels) - 1).unsqueeze(-1)
    below, above = (quantiles.gather(-1, place).squeeze(-1) for place in (right - 1, right))
    low, high = scores[right - 1].squeeze(-1), scores[right].squeeze(-1)
    share = torch.where((above > below) | (targets != below), (targets - below) / (above - below).clamp(min=1e-12), 0.5)
    return low + share * (high - low)


def draw_paths(
    quantiles: Float64[Tensor, "series h quantiles"],
    levels: Sequence[float],
    scores: Scores | None,
    *,
    count: int,
    seed: int,
) -> Float64[Tensor, "series h samples"]:
    """Draw sample paths from the quantiles of a forecast.

    Args:
        quantiles: Calibrated quantiles.
        levels: Their levels.
        scores: From `held_out_scores`, for the same series or one for all of them. By default all steps move together.
        count: Number of paths.
        seed: Seed of the random numbers.
    """
    series, h, _ = quantiles.shape
    known = torch.zeros(0, 1, h) if scores is None else scores.float()
    prior = torch.full((1, known.shape[1], h), _PRIOR_WINDOWS**0.5)
    windows = torch.cat([known, prior])
    windows = windows / windows.square().sum(0).sqrt()  # each step has variance 1
    generator = Generator().manual_seed(seed)
    if windows.shape[1] == 1:  # series are independent
        weights = torch.randn(series, count, len(windows), generator=generator)
        drawn = (weights @ windows[:, 0]).transpose(1, 2)
    else:
        weights = torch.randn(count, len(windows), generator=generator)
        drawn = (weights @ windows.flatten(1)).unflatten(1, (series, h)).permute(1, 2, 0)
    return _quantiles_at_scores(quantiles, levels, drawn.double().contiguous())


def _quantiles_at_scores(
    quantiles: Float64[Tensor, "series h quantiles"],
    levels: Sequence[float],
    drawn: Float64[Tensor, "series h samples"],
) -> Float64[Tensor, "series h samples"]:
    """Evaluate the quantile function at normal scores: linear between two quantiles, and beyond the outer two."""
    scores = normal_scores_of(levels)
    right = torch.bucketize(drawn, scores).clamp(1, len(levels) - 1)
    low, high = scores[right - 1], scores[right]
    below, above = quantiles.gather(2, right - 1), quantiles.gather(2, right)
    return below + (above - below) * ((drawn - low) / (high - low))
