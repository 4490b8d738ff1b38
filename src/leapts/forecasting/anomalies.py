"""Anomalies: conformal p-values of observations and of leaps.

An observation becomes a normal score under its forecast; its size is its nonconformity. The p-value is the share of
earlier scores of the same series, held-out windows of the fit included, that are at least as large. Where scores are
exchangeable, a p-value is at most `alert_rate` for at most such a share of the observations.
"""

from bisect import bisect_left, insort
from collections import deque
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Int64
from torch import Tensor

from leapts.data.frames import long_frame
from leapts.data.panel import Panel
from leapts.errors import ConfigError, DataError
from leapts.forecasting.forecast import Forecast
from leapts.forecasting.predictor import Predictor
from leapts.forecasting.rolling import Cutoffs, forecasts_at, targets
from leapts.forecasting.samples import MAX_SCORE, normal_scores

Floats = npt.NDArray[np.float64]

_ABOVE_ALL = 1e6  # a score that stands for one above all others, in sums
MAX_REFERENCE = 5_000  # most recent scores that a score is compared with


def detect(
    predictor: Predictor,
    panel: Panel,
    first: Int64[Tensor, " series"],
    *,
    alias: str,
    alert_rate: float,
    fdr: float | None,
) -> Any:
    """Compute p-values of all observations in whole windows after the first values of each series.

    Raises:
        DataError: When no series has a horizon of values after those.
    """
    h, panel = predictor.config.h, panel.without_lookahead()
    for name, rate in (("alert_rate", alert_rate), ("fdr", 0.5 if fdr is None else fdr)):
        if not 0 < rate < 1:
            raise ConfigError(f"{name}={rate}: must be between 0 and 1")
    windows = Cutoffs.every(h, first, panel.lengths - h)
    if not len(windows):
        raise DataError(f"no series has {h} values after its first {int(first.min())}; give newer data with history")
    steps = Cutoffs(windows.series.repeat_interleave(h), (windows.steps[:, None] + torch.arange(h)).flatten())
    ahead, leaps = _ahead(predictor, panel, windows)
    point, next_step = _one_step(predictor, panel, steps)
    known = [_held_out(predictor, name) for name in panel.series]
    p_value, p_ahead, p_leap = np.empty(len(steps)), np.empty(len(steps)), np.empty(len(steps))
    for series in windows.series.unique().tolist():
        own, its = (steps.series == series).numpy(), (windows.series == series).numpy()
        reference = known[series]
        p_value[own] = conformal_p_values(next_step[own], reference[:, 0])
        p_ahead[own] = conformal_p_values(ahead[its].reshape(-1), reference.reshape(-1))
        p_leap[own] = leap_p_values(ahead[its], leaps[its], reference).reshape(-1)
    starts = leaps.reshape(-1)
    return long_frame(
        panel,
        steps.series.numpy(),
        panel.timestamps()[steps.rows(panel, 1).flatten().numpy()],
        {
            panel.style.target_col: targets(panel, steps, 1).flatten().numpy(),
            alias: point,
            "p_value": p_value,
            "anomaly": rejected(p_value, alert_rate, fdr),
            "p_value_ahead": p_ahead,
            "leap": np.cumsum(starts),
            "p_value_leap": p_leap,
            "leap_anomaly": rejected(p_leap[starts], alert_rate, fdr)[np.cumsum(starts) - 1],
        },
    )


def conformal_p_values(scores: Floats, reference: Floats) -> Floats:
    """Rank each score among the reference and the scores before it, up to `MAX_REFERENCE` of them."""
    recent = deque(reference[-MAX_REFERENCE:].tolist())
    rising, found = sorted(recent), np.empty(len(scores))
    for place, score in enumerate(scores.tolist()):
        found[place] = (len(rising) - bisect_left(rising, score) + 1) / (len(rising) + 1)
        insort(rising, score)
        recent.append(score)
        if len(rising) > MAX_REFERENCE:
            del rising[bisect_left(rising, recent.popleft())]
    return found


def leap_p_values(scores: Floats, starts: npt.NDArray[np.bool_], reference: Floats) -> Floats:
    """Rank the sum of scores over the steps of each leap among the sums over the same steps of earlier windows."""
    every = np.concatenate([reference, scores]).clip(max=_ABOVE_ALL)  # infinite scores would leave no differences
    totals = np.concatenate([np.zeros((len(every), 1)), every.cumsum(1)], axis=1)
    found = np.empty(scores.shape)
    for window, row in enumerate(starts, start=len(reference)):
        ends = [*np.flatnonzero(row).tolist(), len(row)]
        for start, end in pairwise(ends):
            recent = totals[max(0, window - MAX_REFERENCE) : window + 1]
            sums = recent[:, end] - recent[:, start]
            found[window - len(reference), start:end] = np.mean(sums >= sums[-1])
    return found


def rejected(p_values: Floats, alert_rate: float, fdr: float | None) -> npt.NDArray[np.bool_]:
    """Mark p-values up to the alert rate, or those that Benjamini and Hochberg's procedure rejects at a rate."""
    if fdr is None:
        return np.asarray(p_values <= alert_rate)
    rising = np.sort(p_values)
    passed = rising[rising <= fdr * np.arange(1, len(rising) + 1) / len(rising)]
    return np.asarray(p_values <= (passed[-1] if len(passed) else -1))


def _ahead(predictor: Predictor, panel: Panel, windows: Cutoffs) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """Score the steps of each window by its own forecast, and mark the steps at which leaps start."""
    actual = targets(panel, windows, predictor.config.h)
    scores, starts = np.empty(actual.shape), np.zeros(actual.shape, dtype=np.bool_)
    starts[:, 0] = True  # a model without a scheduler forecasts in one piece
    for index, forecast in forecasts_at(predictor, panel, windows, "leaps"):
        scores[index] = _scores(forecast, actual[index])
        if forecast.trace is not None:
            row, leap = forecast.trace.taken.nonzero(as_tuple=True)
            starts[index[row], forecast.trace.start[row, leap]] = True
    return scores, starts


def _one_step(predictor: Predictor, panel: Panel, steps: Cutoffs) -> tuple[Floats, Floats]:
    """Forecast each observation from the one before it; return point forecasts and scores."""
    actual = targets(panel, steps, 1)
    points, scores = np.empty(len(steps)), np.empty(len(steps))
    for index, forecast in forecasts_at(predictor, panel, steps):
        points[index] = forecast.values[:, 0]
        scores[index] = _scores(forecast, actual[index])[:, 0]
    return points, scores


def _scores(forecast: Forecast, actual: Tensor) -> Tensor:
    """Nonconformity of the first steps of a forecast: absolute normal scores."""
    quantiles, levels = forecast.calibrated()
    return normal_scores(quantiles[:, : actual.shape[1]], actual, levels).abs()


def _held_out(predictor: Predictor, name: str | int) -> Floats:
    """Scores of the fit's held-out windows, as [windows, h]; those cut off at the limit rank above all others."""
    known = None if predictor.calibration is None else predictor.calibration.scores
    if known is None:
        return np.empty((0, predictor.config.h))
    place = int(predictor.places_of([name])[0])
    found: Floats = known[:, max(place, 0) if known.shape[1] > 1 else 0].double().abs().numpy()
    return np.where(found >= MAX_SCORE, np.inf, found)
