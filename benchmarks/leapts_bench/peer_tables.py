"""The table of the peers: ours beside each of them, under one protocol."""

import math
import statistics

from leapts_bench.markdown import NOT_RUN, percent, plain, table
from leapts_bench.peers import PEERS
from leapts_bench.published import published
from leapts_bench.suites import FULL
from leapts_bench.summary import Results, difference

_SAID = """Each peer with the sizes, learning rates and batches of its paper or its authors' scripts
(`benchmarks/leapts_bench/peers/settings.py`), one seed, under this harness's windows, scaling, training loop and
scores. Where that is not all of its authors' doing, it is said in [decisions/peers.md](decisions/peers.md): N-HiTS and
N-BEATS have a thousand steps on absolute errors, as the script of N-HiTS has it; all others have ten epochs on squared
ones (a hundred on ILI where there are no settings for it), of which TSMixer could use more, being at its best at its
last look; TimesNet is narrower on ILI; TiDE at its published layer norm is a linear model, and small.
Amplifier and AMD are compact implementations of our own from their papers, AMD with a learning rate of our own; TiDE
has its authors' in proportion to the batch; all but the two are neuralforecast's own modules. LeapTS is with its
recipe, which was searched for: the first seed of the main results, and on ILI seeds differ by much. In brackets: what
the paper prints for that model. \\*: cut short by early stopping, which is no longer done, and may be worse for it;
to be run again."""


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
                said = NOT_RUN if here is None else plain(here) + of.mark(dataset, name, horizon)
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
        marked = [place for place in _places(of, name) if of.mark(place[0], name, place[1])]
        rows.append([*row, str(count), str(len(marked))])
    headings = ["peer", "LeapTS against it, MSE", "lower", "LeapTS against it, MAE", "lower", "places both have run"]
    headings.append("of them cut short")
    said = "LeapTS against each peer, the geometric mean over sets and horizons; below zero where LeapTS is better:"
    return f"{said}\n\n{table(headings, rows)}"


def _ratios(of: Results, name: str, metric: str) -> list[float]:
    """LeapTS over the peer, wherever both have run."""
    ratios = []
    for dataset, horizon in _places(of, name):
        ours, theirs = (of.figure(dataset, variant, horizon, metric) for variant in (FULL, name))
        if ours is not None and theirs is not None and math.isfinite(theirs.mean):
            ratios.append(ours.mean / theirs.mean)
    return ratios


def _places(of: Results, name: str) -> list[tuple[str, int]]:
    return [(dataset, horizon) for dataset in of.datasets() for horizon in of.horizons(dataset, name)]
