"""The neighbours of a recipe, tried on several validation parts and with several seeds.

A search draws few candidates, and on all but the shortest sets it judges them on one part, with one seed: what it finds
may owe more to that part or seed than to its options. Here the recipe that it found is compared with those that differ
in one option, among the options that cost a forecast next to nothing; width, depth and leaps stay as they were found.
"""

import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from pathlib import Path
from typing import Any, NamedTuple

from leapts.data.catalogue import find
from leapts.errors import DataError
from leapts_bench.protocol import folds
from leapts_bench.recipes import Recipe, merit, recipe
from leapts_bench.search import LOG, tried
from leapts_bench.suites import look_back_of

RUNG = "refinement"

_PARTS = 3
_SEEDS = (1, 2, 3)  # all candidates have the first
_FINALISTS = 3

_HUBER_DELTAS = (0.05, 0.1, 0.3, 1.0)
_NORMALIZATIONS = ("mean", "last", "none")
_MIXINGS = ("none", "mlp", "pooled")


class Change(NamedTuple):
    """One option of a recipe, and what it is to be instead."""

    option: str
    value: Any

    def applied(self, to: Recipe) -> Recipe:
        """The recipe with that one option changed; variates that exchange are told apart."""
        match self.option:
            case "normalization":
                return to.changed({"normalization": self.value})
            case "mixing":
                return to.changed({"mixing": {"kind": self.value}, "variate_identity": self.value != "none"})
            case _:
                return Recipe(model=to.model, training=to.training.model_copy(update={self.option: self.value}))

    def __str__(self) -> str:
        return f"{self.option} {self.value}"


def refine(dataset: str, folder: Path, *, tell: Callable[[str], None]) -> None:
    """Try the neighbours of a set's recipe, and log every trial.

    All are tried with one seed. The best of them, all changes for the better together, and the recipe itself are then
    tried with further seeds. Which of these is the recipe is for `recipes.chosen` to say.

    Raises:
        DataError: When the set has no borders to cut it by.
    """
    row = find(dataset)
    if row.split is None:
        raise DataError(f"{row.name} keeps its test part apart and cannot be cut into parts; search for it instead")
    cuts = folds(row.split, _PARTS)
    horizon, look_back = row.horizons[len(row.horizons) // 2], look_back_of(row.name)

    def judged(candidate: Recipe, seeds: Sequence[int]) -> float:
        runs = [candidate.run(row.name, input_size=look_back, horizon=horizon, seed=seed) for seed in seeds]
        return statistics.geometric_mean(merit(tried(run, cuts, RUNG, folder / LOG)) for run in runs)

    base = recipe(row.name)
    start = judged(base, _SEEDS[:1])
    tell(f"{row.name}, the recipe: {start:.4f}")
    errors = {}
    for change in changes(base, row.series):
        errors[change] = judged(change.applied(base), _SEEDS[:1])
        tell(f"{row.name}, {change}: {errors[change] / start - 1:+.1%}")
    better = sorted((change for change, error in errors.items() if error < start), key=errors.__getitem__)
    for finalist in finalists(base, better):
        tell(f"{row.name}, {len(_SEEDS)} seeds: {judged(finalist, _SEEDS):.4f} {finalist.model_dump()}")


def changes(base: Recipe, variates: int) -> Iterator[Change]:
    """Every neighbour of a recipe: half and twice, the next value up and down, or another kind."""
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
    """The recipe, its best neighbours, and all changes for the better together, the best of each option."""
    yield base
    yield from (change.applied(base) for change in better[:_FINALISTS])
    best_of_each = {change.option: change for change in reversed(better)}
    if len(best_of_each) > 1:
        yield _with_all(base, best_of_each.values())


def _with_all(base: Recipe, several: Iterable[Change]) -> Recipe:
    return reduce(lambda changed, change: change.applied(changed), several, base)
