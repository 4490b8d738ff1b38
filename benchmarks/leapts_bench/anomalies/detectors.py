"""Detectors: each gives every point of a series a score from the values up to it; a higher score is more unusual."""

from collections.abc import Callable, Mapping
from importlib.util import find_spec

import numpy as np
import torch
from numpy.lib.stride_tricks import sliding_window_view

from leapts import LeapTS
from leapts.data.panel import Panel
from leapts_bench.anomalies.nab import Floats, Labelled

HORIZON = 24  # of the pretrained model; not tuned
WINDOW = 100  # of the rolling z-score; not tuned
LAGS, TREES = 8, 100  # of the isolation forest; not tuned
COLUMNS = {
    "LeapTS, one step": "p_value",
    "LeapTS, within a leap": "p_value_ahead",
    "LeapTS, whole leaps": "p_value_leap",
}

Scores = Mapping[str, Floats]


def leapts(series: Labelled) -> Scores:
    """Score by the pretrained model: one minus the p-value; a leap counts at its last point."""
    panel = Panel.from_matrix(torch.tensor(series.values[None]), series=(series.name,))
    frame = LeapTS.pretrained(HORIZON).detect(panel)
    start = len(series.values) - len(frame)
    found = {}
    for name, column in COLUMNS.items():
        scores = np.zeros(len(series.values))
        scores[start:] = 1 - frame[column].to_numpy()
        if column == "p_value_leap":
            leap = frame["leap"].to_numpy()
            scores[start:][np.append(leap[1:] == leap[:-1], False)] = 0
        found[name] = scores
    return found


def rolling_z_score(series: Labelled) -> Scores:
    """Score by the distance to the mean of the values before, in their standard deviations."""
    values, scores = series.values, np.zeros(len(series.values))
    past = sliding_window_view(values[:-1], WINDOW)
    spread = past.std(1)
    distance = np.abs(values[WINDOW:] - past.mean(1))
    tiny = 1e-9 * (np.abs(past).max(1) + 1)
    scores[WINDOW:] = distance / np.maximum(spread, tiny)
    return {"rolling z-score": scores}


def isolation_forest(series: Labelled) -> Scores:
    """Score by a forest that was fitted to the probation, on a point and the values before it."""
    from sklearn.ensemble import IsolationForest

    rows = sliding_window_view(series.values, LAGS)
    forest = IsolationForest(n_estimators=TREES, random_state=0).fit(rows[: max(series.probation - LAGS, 2)])
    scores = np.zeros(len(series.values))
    scores[LAGS - 1 :] = -forest.score_samples(rows)
    return {"isolation forest": scores}


def available() -> dict[str, Callable[[Labelled], Scores]]:
    """List the detectors that can run here."""
    found: dict[str, Callable[[Labelled], Scores]] = {"LeapTS": leapts, "rolling z-score": rolling_z_score}
    return found | ({"isolation forest": isolation_forest} if find_spec("sklearn") else {})
