"""Run the detectors that have no results yet: python -m leapts_bench.anomalies, with LEAPTS_DATA set.

Then `python -m leapts_bench table` renders the page.
"""

import hashlib
import time
from pathlib import Path

import numpy as np
import torch

from leapts.datasets.loading import data_folder
from leapts.forecasting.zero_shot import WEIGHTS
from leapts_bench import results
from leapts_bench.anomalies import nab
from leapts_bench.anomalies.detectors import COLUMNS, available
from leapts_bench.anomalies.page import FILE

ALERT_RATE = 0.001


def main() -> None:
    """Score every detector on all series, and append a line for each."""
    torch.set_num_threads(1)
    target = Path(__file__).parents[3] / "benchmarks" / "results" / FILE
    done = {line["detector"] for line in results.read(target)}
    all_series = nab.read(data_folder())
    for name, detector in available().items():
        if name in done or (name == "LeapTS" and set(COLUMNS) <= done):
            continue
        started, scores = time.process_time(), dict[str, dict[str, nab.Floats]]()
        for series in all_series:
            for variant, found in detector(series).items():
                scores.setdefault(variant, {})[series.name] = found
        seconds = time.process_time() - started
        for variant, own in scores.items():
            line = {"detector": variant, **score(all_series, own), "cpu_seconds": round(seconds, 1)}
            if variant in COLUMNS:
                line["at_alert_rate"] = score_at_alert_rate(all_series, own)
                line["weights_sha256"] = hashlib.sha256(WEIGHTS.read_bytes()).hexdigest()
            results.append(target, line)
            print(variant, line["nab"], flush=True)


def score(all_series: list[nab.Labelled], scores: dict[str, nab.Floats]) -> dict[str, object]:
    """Compute all figures of one detector."""
    found = {name: nab.best(all_series, scores, profile) for name, profile in nab.PROFILES.items()}
    limit = found["standard"].threshold
    counted = [np.arange(len(one.values)) >= one.probation for one in all_series]
    pooled = np.concatenate([scores[one.name][kept] for one, kept in zip(all_series, counted, strict=True)])
    inside = np.concatenate([one.inside[kept] for one, kept in zip(all_series, counted, strict=True)])
    return {
        "nab": {name: round(one.score, 2) for name, one in found.items()},
        "threshold": limit,
        "at_threshold": nab.plain_figures(all_series, scores, limit),
        "area_under_roc": round(area_under_roc(pooled, inside), 4),
    }


def score_at_alert_rate(all_series: list[nab.Labelled], scores: dict[str, nab.Floats]) -> dict[str, object]:
    """Compute the figures at an alert rate that was stated in advance, not chosen by the labels."""
    limit = 1 - ALERT_RATE - 1e-12
    profiles = nab.PROFILES.items()
    found = {name: round(nab.at_threshold(all_series, scores, one, limit), 2) for name, one in profiles}
    return {"alert_rate": ALERT_RATE, "nab": found, **nab.plain_figures(all_series, scores, limit)}


def area_under_roc(scores: nab.Floats, inside: np.ndarray) -> float:
    """Probability that a point in a window has a higher score than one outside; ties count half."""
    values, place = np.unique(scores, return_inverse=True)
    positive = np.bincount(place[inside], minlength=len(values)).astype(float)
    negative = np.bincount(place[~inside], minlength=len(values)).astype(float)
    below = np.cumsum(negative) - negative
    return float((positive * (below + negative / 2)).sum() / (positive.sum() * negative.sum()))


if __name__ == "__main__":
    main()
