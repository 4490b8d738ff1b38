"""Recipes: the options each set is run with, chosen on validation windows and nothing else.

`recipes.toml` is made from the search log by `written`; nobody edits it.
"""

import statistics
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import tomli_w

from leapts.config import Options
from leapts.data.catalogue import find
from leapts.files import write_file
from leapts_bench.results import Line
from leapts_bench.runs import LeapTSDesign, Learning, Run

FILE = Path(__file__).parent / "recipes.toml"

# Lean forms: their width, and what each may cost on validation windows, against the form before it, to be the recipe.
LEAN_FORMS = {64: 1.015, 32: 1.005}
_LEAN_LEAPS = 2

# What is left of the validation errors where it is worth while to take a season off; less is what seeds differ by.
_SEASON_COSTS = 0.99

_HEADER = "# Made from the search log by `leapts_bench search`: the best on validation windows. Not to be edited.\n\n"


class Recipe(Options):
    """How a set is modelled and learned."""

    model: LeapTSDesign = LeapTSDesign()
    training: Learning = Learning()
    season: int = 0  # the steps of a season to take off; 0: none

    def run(self, dataset: str, *, input_size: int, horizon: int, seed: int) -> Run:
        """The recipe at a horizon."""
        return Run(
            dataset=dataset,
            horizon=horizon,
            input_size=input_size,
            model=self.model,
            training=self.training,
            season=self.season,
            seed=seed,
        )

    def changed(self, options: dict[str, Any]) -> "Recipe":
        """The recipe with other options of the model, as an ablation wants."""
        return self.model_copy(update={"model": LeapTSDesign(options={**self.model.options, **options})})

    def averaged(self, members: int) -> "Recipe":
        """The mean of so many models of this recipe, which differ in their seeds."""
        return self.model_copy(update={"model": self.model.model_copy(update={"members": members})})

    def adjusted(self, season: int) -> "Recipe":
        """The same with a season of so many steps taken off; with 0, of values as they are."""
        return self.model_copy(update={"season": season})

    def lean(self, width: int) -> "Recipe":
        """The same at a fraction of the time: a state of at most so many numbers, and at most two leaps."""
        options = self.model.options
        scheduling = {**options.get("scheduling", {"kind": "hierarchical"}), "max_leaps": _LEAN_LEAPS}
        return self.changed({"hidden_size": min(width, options.get("hidden_size", width)), "scheduling": scheduling})


# Sets without a search of their own borrow from one of their kind.
_KIN = {"Electricity": "Electricity7", "PEMS04": "SZ-taxi", "PEMS07": "SZ-taxi"}


def recipe(dataset: str) -> Recipe:
    """The recipe of a set, for values as they are; of its kin, or plain defaults, where none was searched for."""
    return adjusting_recipe(dataset).adjusted(0)


def adjusting_recipe(dataset: str) -> Recipe:
    """The same, with the season that is taken off where validation windows would have it."""
    found = _recipes()
    if dataset in found:
        return found[dataset]
    borrowed = found.get(_KIN.get(dataset, ""), Recipe())
    return borrowed.adjusted(find(dataset).season) if borrowed.season else borrowed


def merit(line: Line) -> float:
    """What a search minimises: the geometric mean of the set's two errors, over all its validation parts."""
    scores = validations(line)
    names = ("smape", "mase") if "smape" in scores[0] else ("mse", "mae")
    return statistics.geometric_mean(score[name] for score in scores for name in names)


def validations(line: Line) -> list[Line]:
    """The scores of each validation part of a trial; trials of before there were several hold a single one."""
    several: list[Line] = line.get("validations") or [line["validation"]]
    return several


def chosen(trials: Iterable[Line]) -> dict[str, Recipe]:
    """The best of each set: among the trials with the most validation parts, whatever their length of training.

    On M4, among those judged by the weights at their end, where there are any.
    Where lean forms of the best were tried too and cost next to nothing, the leanest is taken instead; where that was
    also tried with its season taken off, and is better so by a percent, it is taken so.
    """
    by_set: dict[str, list[Line]] = defaultdict(list)
    for line in trials:
        by_set[line["run"]["dataset"]].append(line)
    return {name: _recipe(_taken(by_set[name])) for name in sorted(by_set)}


def best_of(dataset: str, trials: Iterable[Line]) -> Recipe:
    """The recipe with the smallest validation error, lean or not, of values as they are."""
    trials = [line for line in trials if line["run"]["dataset"] == dataset]
    return _recipe(min(filter(_is_unadjusted, trials), key=_rank))


def written(trials: Iterable[Line]) -> str:
    """The recipes as TOML."""
    tables = {name: recipe.model_dump(mode="json", exclude_defaults=True) for name, recipe in chosen(trials).items()}
    return _HEADER + tomli_w.dumps(tables)


def write(trials: Iterable[Line]) -> None:
    """Put the recipes in place."""
    write_file(FILE, written(trials).encode())


def _taken(trials: Sequence[Line]) -> Line:
    taken = _unadjusted(trials)
    adjusted = [line for line in trials if not _is_unadjusted(line) and _recipe(line).adjusted(0) == _recipe(taken)]
    worth_while = [line for line in adjusted if _costs_at_most(_SEASON_COSTS, line, taken)]
    return min(worth_while, key=_rank, default=taken)


def _unadjusted(trials: Sequence[Line]) -> Line:
    trials = list(filter(_is_unadjusted, trials))
    taken = min(trials, key=_rank)
    for width, cost in LEAN_FORMS.items():
        form = _recipe(taken).lean(width)
        lean = [line for line in trials if _recipe(line) == form and _costs_at_most(cost, line, taken)]
        taken = min(lean, key=_rank, default=taken)
    return taken


def _costs_at_most(cost: float, other: Line, taken: Line) -> bool:
    same_parts = len(validations(other)) == len(validations(taken))
    return same_parts and merit(other) <= cost * merit(taken)


def _rank(line: Line) -> tuple[bool, int, float]:
    # What is tested on M4 learns anew, to the end of its course: weights picked amid one show less what it will be.
    is_picked = "smape" in validations(line)[0] and line["run"]["training"]["looks"] > 1
    return is_picked, -len(validations(line)), merit(line)


def _is_unadjusted(line: Line) -> bool:
    return "season" not in line["run"]


def _recipe(line: Line) -> Recipe:
    run = Run(**line["run"])
    assert isinstance(run.model, LeapTSDesign)
    return Recipe(model=run.model, training=run.training, season=run.season)


@cache
def _recipes() -> dict[str, Recipe]:
    if not FILE.exists():
        return {}
    return {name: Recipe(**table) for name, table in tomllib.loads(FILE.read_text(encoding="utf-8")).items()}
