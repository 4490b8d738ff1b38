"""LeapTS against baselines that were trained under one protocol."""

import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple

from leapts_bench.baselines import BASELINES
from leapts_bench.suites import FULL
from leapts_bench.tables.markdown import NOT_RUN, percent, plain, table
from leapts_bench.tables.published import published
from leapts_bench.tables.summary import NOISIEST, Results, difference

_INTRODUCTION = """Every baseline was trained here, with one seed, on the same windows, scaling, training loop and
metrics as LeapTS. Its sizes, learning rates and batch sizes are those of its paper or of its authors' scripts
(`benchmarks/leapts_bench/baselines/settings.py`). In brackets: the result that the LeapTS paper prints for that model.

What to keep in mind:

- The recipe of LeapTS was searched for on validation windows; those of the baselines were not. The runs of LeapTS are
  the first seed of the main results. On ILI, seeds differ a lot.
- N-HiTS and N-BEATS train for 1,000 steps on absolute errors. All others train for ten epochs on squared errors (a
  hundred on ILI where no settings are published). The validation errors of PatchTST, TiDE and TSMixer were still
  falling at the end, so they could gain from longer training.
- TimesNet is narrower than published on ILI. TiDE with its published layer norm is a small linear model; its learning
  rate was scaled with the batch size.
- Amplifier and AMD are compact implementations from their papers, AMD with a learning rate chosen here. All others are
  neuralforecast's own modules.
- COVID, SP500, Wiki and ETTm2 have no baseline runs.

More on these choices: [decision page](../decisions/baselines.md)."""
_ON_MARKS = "\n\n\\*: cut short by early stopping, which is no longer used; the error may be too high."


class Comparison(NamedTuple):
    """LeapTS against one baseline in one metric: ratios of errors with their data sets."""

    ratios: Sequence[tuple[str, float]]

    @property
    def gap(self) -> float | None:
        """Relative difference by the geometric mean; below zero where LeapTS is better."""
        return _gap([ratio for _, ratio in self.ratios])

    @property
    def gap_without_noisiest(self) -> float | None:
        """The same without the data set whose seeds differ most."""
        return _gap([ratio for dataset, ratio in self.ratios if dataset != NOISIEST])

    @property
    def lost(self) -> int:
        """In how many of the results the baseline has the lower error."""
        return sum(ratio > 1 for _, ratio in self.ratios)

    @property
    def is_mostly_lost(self) -> bool:
        """Whether the baseline has the lower error in most of the results, or on average without the noisiest data."""
        gap = self.gap_without_noisiest
        return 2 * self.lost > len(self.ratios) or (gap is not None and gap > 0)

    @property
    def lower(self) -> str:
        """In how many of the results LeapTS has the lower error."""
        return f"{sum(ratio < 1 for _, ratio in self.ratios)} of {len(self.ratios)}"


def baselines(of: Results) -> str:
    """Render the study: a table for each metric, then a summary for each baseline."""
    is_marked = any(of.mark(dataset, name, horizon) for name in BASELINES for dataset, horizon in _places(of, name))
    said = _INTRODUCTION + (_ON_MARKS if is_marked else "")
    summary = f"""The geometric mean of the error of LeapTS over that of the baseline, for all data sets and horizons
that both have run; below zero where LeapTS is better. Gaps are widest and seeds differ most on {NOISIEST}, so the mean
is also given without it."""
    return "\n\n".join(
        [said, "## Summary", summary, overview(of), "## MSE", _errors(of, "MSE"), "## MAE", _errors(of, "MAE")]
    )


def overview(of: Results) -> str:
    """Tabulate LeapTS against each baseline."""
    rows = []
    for name in BASELINES:
        row = [name]
        for metric in ("mse", "mae"):
            found = compare(of, name, metric)
            row += [_percent(found.gap), _percent(found.gap_without_noisiest), found.lower]
        rows.append(row)
    columns = [[f"{metric} of LeapTS against it", f"without {NOISIEST}", "lower in"] for metric in ("MSE", "MAE")]
    return table(["baseline", *columns[0], *columns[1]], rows)


def compare(of: Results, name: str, metric: str) -> Comparison:
    """Compare LeapTS with a baseline wherever both have run."""
    ratios = []
    for dataset, horizon in _places(of, name):
        ours, theirs = (of.figure(dataset, variant, horizon, metric) for variant in (FULL, name))
        if ours is not None and theirs is not None and math.isfinite(theirs.mean):
            ratios.append((dataset, ours.mean / theirs.mean))
    return Comparison(ratios)


def _errors(of: Results, metric: str) -> str:
    rows = []
    for dataset in of.datasets():
        for horizon in of.horizons(dataset, FULL):
            row = [dataset, str(horizon)]
            for name in (FULL, *BASELINES):
                here = of.figure(dataset, name, horizon, metric.lower())
                paper = published("main", dataset, horizon, metric, name)
                said = NOT_RUN if here is None else plain(here) + of.mark(dataset, name, horizon)
                row.append(said if paper is None else f"{said} ({paper:.3f})")
            rows.append(row)
    return table(["data set", "horizon", FULL, *BASELINES], rows)


def _gap(ratios: Sequence[float]) -> float | None:
    return difference(statistics.geometric_mean(ratios), 1.0) if ratios else None


def _percent(share: float | None) -> str:
    return NOT_RUN if share is None else percent(share)


def _places(of: Results, name: str) -> list[tuple[str, int]]:
    return [(dataset, horizon) for dataset in of.datasets() for horizon in of.horizons(dataset, name)]
