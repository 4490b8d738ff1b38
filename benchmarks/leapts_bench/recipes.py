"""Recipes: the options each set is run with, chosen on validation windows and nothing else.

`recipes.toml` is made from the search log by `written`; nobody edits it.
"""

import statistics
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import tomli_w

from leapts.config import Options
from leapts.files import write_file
from leapts_bench.results import Line
from leapts_bench.runs import LeapTSDesign, Learning, Run

FILE = Path(__file__).parent / "recipes.toml"

# Lean forms: their width, and what each may cost on validation windows, against the form before it, to be the recipe.
LEAN_FORMS = {64: 1.015, 32: 1.005}
_LEAN_LEAPS = 2

_HEADER = "# Made from the search log by `leapts_bench search`: the best on validation windows. Not to be edited.\n\n"


class Recipe(Options):
    """How a set is modelled and learned."""

    model: LeapTSDesign = LeapTSDesign()
    training: Learning = Learning()

    def run(self, dataset: str, *, input_size: int, horizon: int, seed: int) -> Run:
        """The recipe at a horizon."""
        return Run(
            dataset=dataset,
            horizon=horizon,
            input_size=input_size,
            model=self.model,
            training=self.training,
            seed=seed,
        )

    def changed(self, options: dict[str, Any]) -> "Recipe":
        """The recipe with other options of the model, as an ablation wants."""
        return Recipe(model=LeapTSDesign(options={**self.model.options, **options}), training=self.training)

    def averaged(self, members: int) -> "Recipe":
        """The mean of so many models of this recipe, which differ in their seeds."""
        return Recipe(model=self.model.model_copy(update={"members": members}), training=self.training)

    def taught(self, teachers: int) -> "Recipe":
        """A model of this recipe that so many others of it teach."""
        return Recipe(model=self.model, training=self.training.model_copy(update={"teachers": teachers}))

    def lean(self, width: int) -> "Recipe":
        """The same at a fraction of the time: a state of at most so many numbers, and at most two leaps."""
        options = self.model.options
        scheduling = {**options.get("scheduling", {"kind": "hierarchical"}), "max_leaps": _LEAN_LEAPS}
        return self.changed({"hidden_size": min(width, options.get("hidden_size", width)), "scheduling": scheduling})


# Sets without a search of their own borrow from one of their kind.
_KIN = {"Electricity": "Electricity7", "PEMS04": "SZ-taxi", "PEMS07": "SZ-taxi"}


def recipe(dataset: str) -> Recipe:
    """The recipe of a set; of its kin, or plain defaults, where none was searched for."""
    found = _recipes()
    return found.get(dataset) or found.get(_KIN.get(dataset, "")) or Recipe()


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
    """The best of each set: among those judged on the most validation parts, and of these by the most trials.

    On M4, among those judged by the weights at their end, where there are any.
    Where lean forms of the best were tried too and cost next to nothing, the leanest is taken instead.
    """
    by_set: dict[str, list[Line]] = defaultdict(list)
    for line in trials:
        by_set[line["run"]["dataset"]].append(line)
    return {name: _taken(judged(by_set[name])).recipe for name in sorted(by_set)}


def best_of(dataset: str, trials: Iterable[Line]) -> Recipe:
    """The recipe with the smallest validation error, lean or not."""
    return min(judged(line for line in trials if line["run"]["dataset"] == dataset), key=_rank).recipe


def written(trials: Iterable[Line]) -> str:
    """The recipes as TOML."""
    tables = {name: recipe.model_dump(mode="json", exclude_defaults=True) for name, recipe in chosen(trials).items()}
    return _HEADER + tomli_w.dumps(tables)


def write(trials: Iterable[Line]) -> None:
    """Put the recipes in place."""
    write_file(FILE, written(trials).encode())


class Judgement(NamedTuple):
    """A recipe and its trials on as many validation parts, one for each seed at each horizon."""

    recipe: Recipe
    parts: int
    trials: list[Line]

    @property
    def seeds(self) -> set[int]:
        """Those it was tried with."""
        return {line["run"]["seed"] for line in self.trials}

    @property
    def merit(self) -> float:
        """The mean over its trials of what a search minimises."""
        return statistics.geometric_mean(merit(line) for line in self.trials)


def judged(trials: Iterable[Line]) -> list[Judgement]:
    """The trials of a set by recipe and number of validation parts."""
    judgements: dict[tuple[str, int], Judgement] = {}
    for line in trials:
        recipe, parts = _recipe(line), len(validations(line))
        new = Judgement(recipe, parts, [])
        judgements.setdefault((recipe.model_dump_json(), parts), new).trials.append(line)
    return list(judgements.values())


def _taken(judgements: Sequence[Judgement]) -> Judgement:
    taken = min(judgements, key=_rank)
    for width, cost in LEAN_FORMS.items():
        form = taken.recipe.lean(width)
        lean = [other for other in judgements if other.recipe == form and _costs_at_most(cost, other, taken)]
        taken = min(lean, key=_rank, default=taken)
    return taken


def _costs_at_most(cost: float, lean: Judgement, taken: Judgement) -> bool:
    return lean.parts == taken.parts and lean.merit <= cost * taken.merit


def _rank(judgement: Judgement) -> tuple[bool, int, int, float]:
    # What is tested on M4 learns anew, to the end of its course: weights picked amid one show less what it will be.
    is_picked = "smape" in validations(judgement.trials[0])[0] and judgement.recipe.training.looks > 1
    return is_picked, -judgement.parts, -len(judgement.trials), judgement.merit


def _recipe(line: Line) -> Recipe:
    run = Run(**line["run"])
    assert isinstance(run.model, LeapTSDesign)
    return Recipe(model=run.model, training=run.training)


@cache
def _recipes() -> dict[str, Recipe]:
    if not FILE.exists():
        return {}
    return {name: Recipe(**table) for name, table in tomllib.loads(FILE.read_text(encoding="utf-8")).items()}
