"""Local search: neighbors of a recipe, tried on several validation parts and with several seeds.

A search draws few candidates and, on all but the shortest data sets, judges them on one validation part with one seed,
so its result may depend on that part or seed. Here its recipe is compared with recipes that differ in one option, among
the options that hardly change the cost of a forecast; width, depth and number of leaps stay.

This uses the middle horizon of a data set. On short data sets, `final_selection` tries the finalists at the other
horizons as well.
"""

import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from pathlib import Path
from typing import Any, NamedTuple

from leapts.datasets.catalogue import Dataset, find
from leapts.errors import DataError
from leapts_bench import results
from leapts_bench.protocol import folds
from leapts_bench.recipes import Recipe, judged, merit, recipe
from leapts_bench.search import LOG, is_short, middle_horizon, tried
from leapts_bench.suites import look_back_of

RUNG = "refinement"

_PARTS = 3
_SEEDS = (1, 2, 3)  # all candidates have the first
_FINALISTS = 3

_HUBER_DELTAS = (0.05, 0.1, 0.3, 1.0)
_NORMALIZATIONS = ("mean", "last", "none")
_MIXINGS = ("none", "mlp", "pooled")


class Change(NamedTuple):
    """One option of a recipe and its new value."""

    option: str
    value: Any

    def applied(self, to: Recipe) -> Recipe:
        """Return the recipe with this option changed; mixing models have series embeddings."""
        match self.option:
            case "normalization":
                return to.changed({"normalization": self.value})
            case "mixing":
                return to.changed({"mixing": {"kind": self.value}, "series_embedding": self.value != "none"})
            case _:
                return Recipe(model=to.model, training=to.training.model_copy(update={self.option: self.value}))

    def __str__(self) -> str:
        return f"{self.option} {self.value}"


def local_search(dataset: str, folder: Path, *, tell: Callable[[str], None]) -> None:
    """Try the neighbors of a recipe, and log every trial.

    All are tried with one seed. The best of them, the combination of all improvements, and the recipe itself are then
    tried with further seeds. `recipes.chosen` selects the recipe among these.

    Raises:
        DataError: When the data set has no split boundaries.
    """
    row = find(dataset)
    horizons = [middle_horizon(row)]
    log = folder / LOG
    base = recipe(row.name)
    start = _error(base, row, horizons, _SEEDS[:1], log)
    tell(f"{row.name}, the recipe: {start:.4f}")
    errors = {}
    for change in changes(base, row.series):
        errors[change] = _error(change.applied(base), row, horizons, _SEEDS[:1], log)
        tell(f"{row.name}, {change}: {errors[change] / start - 1:+.1%}")
    better = sorted((change for change, error in errors.items() if error < start), key=errors.__getitem__)
    for finalist in finalists(base, better):
        error = _error(finalist, row, horizons, _SEEDS, log)
        tell(f"{row.name}, {len(_SEEDS)} seeds: {error:.4f} {finalist.model_dump()}")


def final_selection(dataset: str, folder: Path, *, tell: Callable[[str], None]) -> None:
    """Try the finalists of a short data set at every horizon, and log every trial.

    The average over horizons is reported, and with few windows the ranking differs between horizons.

    Raises:
        DataError: When the data set is not short, or had no local search.
    """
    row, log = find(dataset), folder / LOG
    if not is_short(row):
        raise DataError(f"{row.name} is long enough to be judged at one horizon")
    trials = [line for line in results.read(log) if line["run"]["dataset"] == row.name]
    known = [each for each in judged(trials) if each.parts == _PARTS and each.seeds == set(_SEEDS)]
    if not known:
        raise DataError(f"{row.name} has no finalists to choose between; run local-search first")
    for finalist in (each.recipe for each in known):
        error = _error(finalist, row, row.horizons, _SEEDS, log)
        tell(f"{row.name}, {len(row.horizons)} horizons: {error:.4f} {finalist.model_dump()}")


def _error(candidate: Recipe, row: Dataset, horizons: Sequence[int], seeds: Sequence[int], log: Path) -> float:
    """Compute the geometric mean over horizons, seeds and validation parts."""
    if row.split is None:
        raise DataError(f"{row.name} keeps its test part apart and cannot be cut into parts; search for it instead")
    cuts, look_back = folds(row.split, _PARTS), look_back_of(row.name)
    runs = [
        candidate.run(row.name, input_size=look_back, horizon=horizon, seed=seed)
        for horizon in horizons
        for seed in seeds
    ]
    return statistics.geometric_mean(merit(tried(run, cuts, RUNG, log)) for run in runs)


def changes(base: Recipe, variates: int) -> Iterator[Change]:
    """List the neighbors of a recipe: half and twice a value, the next value up and down, or another kind."""
    training, model = base.training, base.model.config(input_size=2, horizon=2, variates=variates)
    for option, value in (("learning_rate", training.learning_rate), ("epochs", training.epochs)):
        yield from (Change(option, value / 2), Change(option, value * 2))
    yield from (Change("batch_size", size) for size in (training.batch_size // 2, training.batch_size * 2) if size)
    narrower = [delta for delta in _HUBER_DELTAS if delta < training.huber_delta]
    wider = [delta for delta in _HUBER_DELTAS if delta > training.huber_delta]
    yield from (Change("huber_delta", delta) for delta in (*narrower[-1:], *wider[:1]))
    yield from (Change("normalization", kind) for kind in _NORMALIZATIONS if kind != model.normalization)
    if variates > 1:
        yield from (Change("mixing", kind) for kind in _MIXINGS if kind != model.mixing.kind)


def finalists(base: Recipe, better: Sequence[Change]) -> Iterator[Recipe]:
    """Return the recipe, its best neighbors, and the combination of the best change of each option."""
    yield base
    yield from (change.applied(base) for change in better[:_FINALISTS])
    best_of_each = {change.option: change for change in reversed(better)}
    if len(best_of_each) > 1:
        yield _with_all(base, best_of_each.values())


def _with_all(base: Recipe, several: Iterable[Change]) -> Recipe:
    return reduce(lambda changed, change: change.applied(changed), several, base)
