"""Means over seeds with their spread, at one horizon or averaged over all."""

import math
import statistics
from collections.abc import Collection, Mapping, Sequence
from typing import Literal, NamedTuple

from leapts_bench.results import Line, is_cut_short
from leapts_bench.suites import Entry
from leapts_bench.tables.published import AVERAGE

NOISIEST = "ILI"  # the data set whose seeds differ most

# A horizon, or the average over all.
Horizon = int | Literal["AVG"]


class Figure(NamedTuple):
    """A mean over seeds, its standard deviation (0 for one seed), and the number of seeds."""

    mean: float
    spread: float
    seeds: int

    @classmethod
    def of(cls, values: Sequence[float]) -> "Figure":
        """Compute from one value for each seed."""
        spread = statistics.stdev(values) if len(values) > 1 else 0.0
        return cls(statistics.fmean(values), spread, len(values))


class Results:
    """The finished runs of a suite, by data set, variant and horizon."""

    def __init__(self, entries: Sequence[Entry], done: Mapping[str, Line]) -> None:
        self._lines: dict[tuple[str, str, int], dict[int, Line]] = {}
        for variant, run in entries:
            seeds = self._lines.setdefault((run.dataset, variant, run.horizon), {})
            if run.key in done:
                seeds[run.seed] = done[run.key]

    def datasets(self) -> list[str]:
        """All data sets of the suite, run or not."""
        return list(dict.fromkeys(dataset for dataset, _, _ in self._lines))

    def variants(self) -> list[str]:
        """All variants of the suite, run or not."""
        return list(dict.fromkeys(variant for _, variant, _ in self._lines))

    def horizons(self, dataset: str, variant: str) -> list[int]:
        """The horizons of a variant, sorted."""
        return sorted(horizon for name, kind, horizon in self._lines if (name, kind) == (dataset, variant))

    def places(self, dataset: str, variant: str) -> list[Horizon]:
        """The horizons of a variant, then their average."""
        return [*self.horizons(dataset, variant), AVERAGE]

    def lines(self, dataset: str, variant: str, horizon: int) -> list[Line]:
        """The results of all seeds."""
        return list(self._lines.get((dataset, variant, horizon), {}).values())

    def mark(self, dataset: str, variant: str, horizon: Horizon) -> str:
        """An asterisk where early stopping cut a run short, else empty."""
        horizons = [horizon] if isinstance(horizon, int) else self.horizons(dataset, variant)
        lines = [line for place in horizons for line in self.lines(dataset, variant, place)]
        return " \\*" if any(is_cut_short(line) for line in lines) else ""

    def figure(
        self, dataset: str, variant: str, horizon: Horizon, metric: str, seeds: Collection[int] = ()
    ) -> Figure | None:
        """The mean over seeds at a horizon or over all horizons; None without results."""
        if not isinstance(horizon, int):
            return self.average(dataset, variant, metric, seeds=seeds)
        lines = self._lines.get((dataset, variant, horizon), {})
        values = [line["test"][metric] for seed, line in lines.items() if not seeds or seed in seeds]
        return Figure.of(values) if values and None not in values else None

    def seeds(self, dataset: str, variants: Sequence[str], horizons: Sequence[int]) -> set[int]:
        """Seeds with which all variants have run at all horizons."""
        cells = [self._lines.get((dataset, one, horizon), {}) for one in variants for horizon in horizons]
        return set.intersection(*map(set, cells)) if cells else set()

    def average(
        self,
        dataset: str,
        variant: str,
        metric: str,
        horizons: Sequence[int] = (),
        part: str = "test",
        seeds: Collection[int] = (),
    ) -> Figure | None:
        """The mean over horizons, from the seeds that have run at every one of them."""
        wanted = horizons or self.horizons(dataset, variant)
        cells = [self._lines.get((dataset, variant, horizon), {}) for horizon in wanted]
        complete = sorted(self.seeds(dataset, [variant], wanted))
        if seeds:
            complete = [seed for seed in complete if seed in seeds]
        if not complete:
            return None
        return Figure.of([statistics.fmean(cell[seed][part][metric] for cell in cells) for seed in complete])


def difference(ours: float, theirs: float) -> float:
    """Relative difference of one error from another."""
    return ours / theirs - 1


def confidence_halfwidth(figure: Figure, level: float) -> float:
    """Half the width of Student's confidence interval of a mean over seeds."""
    # Only tables with several seeds need it, and only they need SciPy.
    from scipy.stats import t

    quantile = float(t.ppf((1 + level) / 2, figure.seeds - 1))
    return quantile * figure.spread / math.sqrt(figure.seeds)
