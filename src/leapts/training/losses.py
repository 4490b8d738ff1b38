"""Losses of training: Huber for point forecasts, pinball for quantiles."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

Levels = Float[Tensor, " quantiles"]


def huber_loss(forecast: Tensor, target: Tensor, *, delta: float) -> Float[Tensor, ""]:
    """Compute the mean Huber loss; an unknown target (NaN) gives neither loss nor gradient."""
    # A known forecast as its own target has no error.
    return F.huber_loss(forecast, torch.where(target.isnan(), forecast.detach(), target), delta=delta)


def pinball_loss(
    forecast: Float[Tensor, "*rows outputs"], target: Float[Tensor, "*rows targets"], levels: Levels
) -> Float[Tensor, ""]:
    """Compute twice the mean pinball loss, which is the absolute error of a median.

    It approximates the continuous ranked probability score (CRPS). Unknown targets (NaN) give neither loss nor
    gradient.

    Args:
        forecast: Quantiles, step after step.
        target: One target for each step, or one for each quantile of each step.
        levels: The level of each quantile, between 0 and 1.
    """
    return pinball_errors(forecast, target, levels).mean()


def pinball_errors(forecast: Tensor, target: Tensor, levels: Levels) -> Float[Tensor, "*rows steps quantiles"]:
    """Compute twice the pinball loss of each quantile of each step; 0 for unknown targets."""
    quantiles = forecast.unflatten(-1, (-1, len(levels)))
    actual = target.unflatten(-1, (quantiles.shape[-2], -1))
    error = (actual - quantiles).masked_fill(actual.isnan(), 0.0)
    return torch.addcmul(error.abs(), error, 2 * levels - 1)
