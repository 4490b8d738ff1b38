"""Scores of quantile forecasts, by the protocols of GIFT-Eval and fev-bench."""

from collections.abc import Iterable
from statistics import fmean

import numpy as np
from jaxtyping import Float64

from leapts_bench.gift.series import LEVELS, MEDIAN, Floats, Quantiles, Task

Scores = dict[str, float]


def gift_scores(task: Task, forecasts: Iterable[Quantiles]) -> Scores:
    """Score the windows by the protocol of GIFT-Eval.

    MASE is a mean over the points of all windows, CRPS a ratio of sums over them. Windows with scale 0 count in CRPS
    only; points without an actual value count nowhere.
    """
    scaled, points, loss, size = 0.0, 0, np.zeros(len(LEVELS)), 0.0
    for (past, actual), quantiles in zip(task.windows(), forecasts, strict=True):
        scale = past.mean_seasonal_difference(task.season)[:, None]
        counted = ~np.isnan(actual) & (scale > 0)
        ratio = np.divide(np.abs(actual - quantiles[:, MEDIAN]), scale, out=np.zeros_like(actual), where=counted)
        scaled += float(ratio.sum())
        points += int(counted.sum())
        loss += np.nansum(pinball(actual, quantiles), axis=(0, 2))
        size += float(np.nansum(np.abs(actual)))
    return {"mase": scaled / points, "crps": float(np.mean(loss / size))}


def fev_scores(task: Task, forecasts: Iterable[Quantiles]) -> Scores:
    """Score each window and target by the protocol of fev-bench, then average.

    Series without a finite positive scale are left out of the scaled scores (SQL and MASE).
    """
    rows: list[Scores] = []
    for (past, actual), quantiles in zip(task.windows(), forecasts, strict=True):
        scale = past.mean_seasonal_difference(task.season)[:, None]
        scale = np.where(scale > 0, scale, np.nan)
        error, loss = np.abs(actual - quantiles[:, MEDIAN]), pinball(actual, quantiles).mean(1)
        for target in range(task.targets):
            some = slice(target, None, task.targets)
            size = max(_mean(np.abs(actual[some])), 1.0)
            rows.append(
                {
                    "sql": _mean(loss[some] / scale[some]),
                    "mase": _mean(error[some] / scale[some]),
                    "wql": _mean(loss[some]) / size,
                    "wape": _mean(error[some]) / size,
                }
            )
    return {name: fmean(row[name] for row in rows) for name in rows[0]}


def pinball(
    actual: Float64[np.ndarray, "series horizon"], quantiles: Quantiles
) -> Float64[np.ndarray, "series levels horizon"]:
    """Twice the pinball loss; NaN where there is no actual value."""
    error = actual[:, None] - quantiles
    levels = np.array(LEVELS)[:, None]
    loss: Floats = 2 * np.maximum(levels * error, (levels - 1) * error)
    return loss


def _mean(values: Floats) -> float:
    return float(np.nanmean(values))
