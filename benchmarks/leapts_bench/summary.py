"""From single results to figures: the mean over seeds with its spread, at one horizon or over all of them."""

import math
import statistics
from collections.abc import Collection, Mapping, Sequence
from typing import Literal, NamedTuple

from leapts_bench.published import AVERAGE
from leapts_bench.results import Line, is_cut_short
from leapts_bench.suites import Entry

NOISIEST = "ILI"  # the set whose seeds differ by more than most models do elsewhere

# A horizon, or the average over all.
Horizon = int | Literal["AVG"]


class Figure(NamedTuple):
    """A mean over seeds, their standard deviation (0 for a single one), and how many they were."""

    mean: float
    spread: float
    seeds: int

    @classmethod
    def of(cls, values: Sequence[float]) -> "Figure":
        """Of one value for each seed."""
        spread = statistics.stdev(values) if len(values) > 1 else 0.0
        return cls(statistics.fmean(values), spread, len(values))


class Results:
    """The finished runs behind a suite's entries, asked for by what a table calls them."""

    def __init__(self, entries: Sequence[Entry], done: Mapping[str, Line]) -> None:
        self._lines: dict[tuple[str, str, int], dict[int, Line]] = {}
        for variant, run in entries:
            seeds = self._lines.setdefault((run.dataset, variant, run.horizon), {})
            if run.key in done:
                seeds[run.seed] = done[run.key]

    def datasets(self) -> list[str]:
        """Every set of the suite, run or not."""
        return list(dict.fromkeys(dataset for dataset, _, _ in self._lines))

    def variants(self) -> list[str]:
        """Every variant of the suite, run or not."""
        return list(dict.fromkeys(variant for _, variant, _ in self._lines))

    def horizons(self, dataset: str, variant: str) -> list[int]:
        """The horizons a variant is to be run at, in order."""
        return sorted(horizon for name, kind, horizon in self._lines if (name, kind) == (dataset, variant))

    def places(self, dataset: str, variant: str) -> list[Horizon]:
        """The horizons, and then their average."""
        return [*self.horizons(dataset, variant), AVERAGE]

    def lines(self, dataset: str, variant: str, horizon: int) -> list[Line]:
        """The results there, one for each seed."""
        return list(self._lines.get((dataset, variant, horizon), {}).values())

    def mark(self, dataset: str, variant: str, horizon: Horizon) -> str:
        """An asterisk where a run was cut short, and nothing elsewhere."""
        horizons = [horizon] if isinstance(horizon, int) else self.horizons(dataset, variant)
        lines = [line for place in horizons for line in self.lines(dataset, variant, place)]
        return " \\*" if any(is_cut_short(line) for line in lines) else ""

    def figure(
        self, dataset: str, variant: str, horizon: Horizon, metric: str, seeds: Collection[int] = ()
    ) -> Figure | None:
        """The figure at a horizon, or over all of them, of all seeds or those given; none where nothing has run."""
        if not isinstance(horizon, int):
            return self.average(dataset, variant, metric, seeds=seeds)
        lines = self._lines.get((dataset, variant, horizon), {})
        values = [line["test"][metric] for seed, line in lines.items() if not seeds or seed in seeds]
        return Figure.of(values) if values and None not in values else None

    def seeds(self, dataset: str, variants: Sequence[str], horizons: Sequence[int]) -> set[int]:
        """Those that all of the variants have run with, at every one of the horizons."""
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
        """The figure over all horizons (or those given), from the seeds (given) that have run at every one of them."""
        wanted = horizons or self.horizons(dataset, variant)
        cells = [self._lines.get((dataset, variant, horizon), {}) for horizon in wanted]
        complete = sorted(self.seeds(dataset, [variant], wanted))
        if seeds:
            complete = [seed for seed in complete if seed in seeds]
        if not complete:
            return None
        return Figure.of([statistics.fmean(cell[seed][part][metric] for cell in cells) for seed in complete])


def difference(ours: float, theirs: float) -> float:
    """How far ours is above theirs, as a share of theirs."""
    return ours / theirs - 1


def confidence_halfwidth(figure: Figure, level: float) -> float:
    """Half the width of Student's confidence interval of a mean over seeds."""
    # Only tables with several seeds need it, and only they need SciPy.
    from scipy.stats import t

    quantile = float(t.ppf((1 + level) / 2, figure.seeds - 1))
    return quantile * figure.spread / math.sqrt(figure.seeds)
