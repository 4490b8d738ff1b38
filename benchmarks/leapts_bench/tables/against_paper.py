"""LeapTS against the results of its paper: one row for each data set, one kind of model at a time."""

from collections.abc import Mapping
from dataclasses import dataclass

from leapts_bench.suites import FULL, NAIVE, PAPER_SETS
from leapts_bench.tables.main_results import METRICS, columns_for, compared
from leapts_bench.tables.markdown import NOT_RUN, percent, plain, table
from leapts_bench.tables.published import AVERAGE, published
from leapts_bench.tables.studies import m4_group
from leapts_bench.tables.summary import Results, difference


@dataclass(frozen=True)
class Standing:
    """How one kind of model compares with the paper, on averages over the horizons.

    Attributes:
        gaps: The relative difference of each data set that was run in full, in MSE and in MAE.
        reached: The data sets whose MSE and MAE are at or below the paper's, to its three decimals.
        below_naive: The data sets where the naive forecast is at or below LeapTS in MSE and MAE.
    """

    gaps: Mapping[str, tuple[float, float]]
    reached: tuple[str, ...]
    below_naive: tuple[str, ...]

    def summary(self) -> str:
        """Sum up the comparison in a sentence."""
        if not self.gaps:
            return f"{NOT_RUN}."
        mean = sum(sum(pair) for pair in self.gaps.values()) / (2 * len(self.gaps))
        count = f"{len(self.reached)} of {len(self.gaps)}"
        return f"MSE and MAE at or below the paper's on {count} data sets; mean difference {percent(mean)}."


def standing(of: Results, variant: str = FULL, naive: Results | None = None) -> Standing:
    """Compare a kind of model with the paper.

    Args:
        of: Its runs.
        variant: Its name in the suite.
        naive: The runs of the naive forecast, where they are in another suite.
    """
    gaps, reached, below = {}, [], []
    for dataset in [name for name in PAPER_SETS if name in of.datasets()]:
        found = [of.average(dataset, variant, metric.lower()) for metric in METRICS]
        paper = [published("main", dataset, AVERAGE, metric) for metric in METRICS]
        pairs = [(here.mean, there) for here, there in zip(found, paper, strict=True) if here and there]
        if len(pairs) < len(METRICS):
            continue
        gaps[dataset] = (difference(*pairs[0]), difference(*pairs[1]))
        if all(round(here, 3) <= there for here, there in pairs):
            reached.append(dataset)
        last = [(naive or of).average(dataset, NAIVE, metric.lower()) for metric in METRICS]
        if all(one is not None and one.mean <= here for one, (here, _) in zip(last, pairs, strict=True)):
            below.append(dataset)
    return Standing(gaps, tuple(reached), tuple(below))


def averages(of: Results, variant: str = FULL) -> str:
    """Tabulate the averages over the horizons beside the paper's."""
    found = standing(of, variant)
    rows = []
    for dataset in [name for name in PAPER_SETS if name in of.datasets()]:
        row = [dataset]
        for metric in METRICS:
            row += compared(of.average(dataset, variant, metric.lower()), published("main", dataset, AVERAGE, metric))
        figure = of.average(dataset, variant, "mse")
        verdict = NOT_RUN if dataset not in found.gaps else "yes" if dataset in found.reached else "no"
        rows.append([*row, str(figure.seeds if figure else 0), verdict])
    headings = ["data set", *columns_for("MSE"), *columns_for("MAE"), "seeds", "at or below the paper in both"]
    return f"{table(headings, rows)}\n\n{found.summary()}"


def losses(kinds: Mapping[str, Standing], long: Results, m4: Results) -> list[str]:
    """List where LeapTS is worse than the paper or than a naive forecast."""
    said = []
    for kind, found in kinds.items():
        missed = [
            f"{dataset} (MSE {percent(mse)}, MAE {percent(mae)})"
            for dataset, (mse, mae) in found.gaps.items()
            if dataset not in found.reached
        ]
        if missed:
            said.append(f"{kind} is above the paper's MSE or MAE on {', '.join(missed)}.")
    if below := sorted({name for found in kinds.values() for name in found.below_naive}, key=PAPER_SETS.index):
        said.append(f"A naive forecast (the last value repeated) is as good or better on {', '.join(below)}.")
    held = [
        round(here.mean, 3) <= paper
        for dataset in long.datasets()
        for horizon in long.horizons(dataset, FULL)
        for metric in METRICS
        if (here := long.figure(dataset, FULL, horizon, metric.lower())) is not None
        and (paper := published("long", dataset, horizon, metric)) is not None
    ]
    if held and not all(held):
        said.append(
            f"With a [look-back of 720](benchmarks/long-look-back.md), {sum(held)} of {len(held)} errors are at or "
            "below the paper's."
        )
    if all_series := m4_group(m4, "Average"):
        pairs = [
            f"{name} {value:.3f} (paper {plain(published('m4', 'Average', '-', name))})"
            for name, value in all_series.items()
        ]
        said.append(f"On all series of [M4](benchmarks/m4.md), one model has {', '.join(pairs)}.")
    return said
