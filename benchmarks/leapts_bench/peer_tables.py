"""The table of the peers: ours beside each of them, under one protocol."""

import math
import statistics

from leapts_bench.markdown import NOT_RUN, percent, plain, table
from leapts_bench.peers import PEERS
from leapts_bench.published import published
from leapts_bench.suites import FULL
from leapts_bench.summary import Results, difference

_SAID = """Each peer at its published settings (`benchmarks/leapts_bench/peers/settings.py`), one seed, under this
harness's windows, scaling, training loop and scores. Amplifier and AMD are compact implementations of our own from
their papers, AMD with a learning rate of our own; the others are neuralforecast's own modules. TiDE at its published
layer norm is a linear model (`docs/decisions/peers.md`). LeapTS is with its recipe, as in the main results. In
brackets: what the paper prints for that model."""


def peers(of: Results) -> str:
    """A table for each metric, and how LeapTS stands against each peer over all that both have run."""
    return "\n\n".join([_SAID, "MSE:", _errors(of, "MSE"), "MAE:", _errors(of, "MAE"), _standing(of)])


def _errors(of: Results, metric: str) -> str:
    rows = []
    for dataset in of.datasets():
        for horizon in of.horizons(dataset, FULL):
            row = [dataset, str(horizon)]
            for name in (FULL, *PEERS):
                here = of.figure(dataset, name, horizon, metric.lower())
                paper = published("main", dataset, horizon, metric, name)
                said = NOT_RUN if here is None else plain(here)
                row.append(said if paper is None else f"{said} ({paper:.3f})")
            rows.append(row)
    return table(["set", "horizon", FULL, *PEERS], rows)


def _standing(of: Results) -> str:
    rows = []
    for name in PEERS:
        row, count = [name], 0
        for metric in ("mse", "mae"):
            ratios = _ratios(of, name, metric)
            count = len(ratios)
            better = sum(ratio < 1 for ratio in ratios)
            gap = percent(difference(statistics.geometric_mean(ratios), 1.0)) if ratios else NOT_RUN
            row += [gap, f"{better} of {count}"]
        rows.append([*row, str(count)])
    headings = ["peer", "LeapTS against it, MSE", "lower", "LeapTS against it, MAE", "lower", "places both have run"]
    said = "LeapTS against each peer, the geometric mean over sets and horizons; below zero where LeapTS is better:"
    return f"{said}\n\n{table(headings, rows)}"


def _ratios(of: Results, name: str, metric: str) -> list[float]:
    """LeapTS over the peer, wherever both have run."""
    ratios = []
    for dataset in of.datasets():
        for horizon in of.horizons(dataset, name):
            ours, theirs = (of.figure(dataset, variant, horizon, metric) for variant in (FULL, name))
            if ours is not None and theirs is not None and math.isfinite(theirs.mean):
                ratios.append(ours.mean / theirs.mean)
    return ratios
