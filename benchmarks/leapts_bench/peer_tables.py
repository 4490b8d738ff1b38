"""The table of the peers: ours beside each of them, under one protocol."""

import math
import statistics
from collections.abc import Sequence

from leapts_bench.markdown import NOT_RUN, percent, plain, table
from leapts_bench.peers import PEERS
from leapts_bench.published import published
from leapts_bench.suites import FULL
from leapts_bench.summary import NOISIEST, Results, difference

_SAID = """Each peer with the sizes, learning rates and batches of its paper or its authors' scripts
(`benchmarks/leapts_bench/peers/settings.py`), one seed, under this harness's windows, scaling, training loop and
scores. Where that is not all of its authors' doing, it is said in [decisions/peers.md](decisions/peers.md): N-HiTS and
N-BEATS have a thousand steps on absolute errors, as the script of N-HiTS has it; all others have ten epochs on squared
ones (a hundred on ILI where there are no settings for it), of which PatchTST, TiDE and TSMixer could use more: their
validation errors were still falling at the last looks; TimesNet is narrower on ILI; TiDE at its published layer norm is
a linear model, and small. Amplifier and AMD are compact implementations of our own from their papers, AMD with a
learning rate of our own; TiDE has its authors' in proportion to the batch; all but the two are neuralforecast's own
modules. LeapTS is with its recipe, which was searched for: the first seed of the main results, and on ILI seeds differ
by much. COVID, SP500, Wiki and ETTm2 have no runs of peers. In brackets: what
the paper prints for that model."""
_ON_MARKS = " \\*: cut short by early stopping, which is no longer done, and may be worse for it; to be run again."


def peers(of: Results) -> str:
    """A table for each metric, and how LeapTS stands against each peer over all that both have run."""
    is_marked = any(of.mark(dataset, name, horizon) for name in PEERS for dataset, horizon in _places(of, name))
    said = _SAID + (_ON_MARKS if is_marked else "")
    return "\n\n".join([said, "MSE:", _errors(of, "MSE"), "MAE:", _errors(of, "MAE"), _standing(of)])


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
        row = [name]
        for metric in ("mse", "mae"):
            ratios = _ratios(of, name, metric)
            better = sum(ratio < 1 for _, ratio in ratios)
            others = [(dataset, ratio) for dataset, ratio in ratios if dataset != NOISIEST]
            row += [_mean_gap(ratios), _mean_gap(others), f"{better} of {len(ratios)}"]
        rows.append(row)
    columns = [[f"LeapTS against it, {metric}", f"without {NOISIEST}", "lower"] for metric in ("MSE", "MAE")]
    said = "LeapTS against each peer, the geometric mean over sets and horizons; below zero where LeapTS is better. "
    said += f"Of {NOISIEST} the gaps are the widest and the seeds differ most, so the mean is given without it, too:"
    return f"{said}\n\n{table(['peer', *columns[0], *columns[1]], rows)}"


def _mean_gap(ratios: Sequence[tuple[str, float]]) -> str:
    if not ratios:
        return NOT_RUN
    return percent(difference(statistics.geometric_mean([ratio for _, ratio in ratios]), 1.0))


def _ratios(of: Results, name: str, metric: str) -> list[tuple[str, float]]:
    """LeapTS over the peer, wherever both have run, with the set."""
    ratios = []
    for dataset, horizon in _places(of, name):
        ours, theirs = (of.figure(dataset, variant, horizon, metric) for variant in (FULL, name))
        if ours is not None and theirs is not None and math.isfinite(theirs.mean):
            ratios.append((dataset, ours.mean / theirs.mean))
    return ratios


def _places(of: Results, name: str) -> list[tuple[str, int]]:
    return [(dataset, horizon) for dataset in of.datasets() for horizon in of.horizons(dataset, name)]
