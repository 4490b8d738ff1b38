"""Scores of the everyday sets."""

from collections.abc import Iterable

import numpy as np
from jaxtyping import Float64

from leapts_bench.everyday.forecasters import WIDE_LEVELS, WindowForecast
from leapts_bench.gift.scoring import pinball
from leapts_bench.gift.series import LEVELS, Floats, Quantiles, SeriesSet, Task

INTERVALS = {80: (0.1, 0.9), 95: (0.025, 0.975)}


class _Counts:
    """Values inside an interval, and values compared with it."""

    def __init__(self) -> None:
        self.inside = self.known = 0

    def add(self, actual: Floats, low: Floats, high: Floats) -> None:
        known = ~np.isnan(actual)
        self.known += int(known.sum())
        self.inside += int(((actual >= low) & (actual <= high) & known).sum())


def everyday_scores(task: Task, forecasts: Iterable[WindowForecast]) -> dict[str, float]:
    """Score the windows of a task.

    MASE and MAE are means over the points of all windows, CRPS a ratio of sums over them at the levels 0.1 to 0.9.
    Scores of quantiles are left out without quantiles, those of totals over the horizon without sample paths.
    """
    scaled, points, absolute, known = 0.0, 0, 0.0, 0
    loss, size = np.zeros(len(LEVELS)), 0.0
    coverage = {name: _Counts() for name in (*map(str, INTERVALS), "total", "independent")}
    pairs = crossings = outside = values = 0
    for (past, actual), forecast in zip(task.windows(), forecasts, strict=True):
        scale = past.mean_seasonal_difference(task.season)[:, None]
        error = np.abs(actual - forecast.point)
        counted = ~np.isnan(error) & (scale > 0)
        scaled += float(np.divide(error, scale, out=np.zeros_like(error), where=counted).sum())
        points += int(counted.sum())
        absolute, known = absolute + float(np.nansum(error)), known + int((~np.isnan(error)).sum())
        if forecast.quantiles is None:
            continue
        quantiles = forecast.quantiles
        loss += np.nansum(pinball(actual, quantiles[:, 1:-1]), axis=(0, 2))
        size += float(np.nansum(np.abs(actual)))
        for level, (low, high) in INTERVALS.items():
            places = WIDE_LEVELS.index(low), WIDE_LEVELS.index(high)
            coverage[str(level)].add(actual, *(quantiles[:, place] for place in places))
        crossings += int((np.diff(quantiles, axis=1) < 0).sum())
        pairs += quantiles[:, 1:].size
        outside, values = outside + outside_of_support(past, quantiles), values + quantiles.size
        if forecast.paths is not None:
            for name, paths in (("total", forecast.paths), ("independent", independent(forecast.paths))):
                coverage[name].add(actual.sum(1), *np.quantile(paths.sum(1), INTERVALS[80], axis=1))
    points_only = {"mase": scaled / points, "mae": absolute / known}
    if not pairs:
        return points_only
    return {
        **points_only,
        "crps": float(np.mean(loss / size)),
        **{f"coverage_{name}": one.inside / one.known for name, one in coverage.items() if one.known},
        "crossings": crossings,
        "pairs": pairs,
        "outside": outside,
        "values": values,
    }


def outside_of_support(past: SeriesSet, quantiles: Quantiles) -> int:
    """Count quantiles below zero where the past never was, and fractions where it only has whole numbers from zero."""
    every = [series[~np.isnan(series)] for series in np.split(past.values, past.ends[:-1])]
    is_positive = np.array([bool((series >= 0).all()) for series in every])
    is_count = is_positive & np.array([bool((series == series.round()).all()) for series in every])
    below = (quantiles < 0) & is_positive[:, None, None]
    broken = (quantiles != quantiles.round()) & is_count[:, None, None]
    return int((below | broken).sum())


def independent(
    paths: Float64[np.ndarray, "series horizon samples"],
) -> Float64[np.ndarray, "series horizon samples"]:
    """Shuffle the samples of each step, so that steps no longer depend on each other."""
    return np.random.default_rng(0).permuted(paths, axis=2)
