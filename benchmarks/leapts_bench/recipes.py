"""Recipes: the options of each data set, chosen on validation windows alone.

`recipes.toml` is written from the search log; do not edit it.
"""

import statistics
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import tomli_w

from leapts.files import write_file
from leapts.parts import Options
from leapts_bench.results import Line
from leapts_bench.runs import LeapTSDesign, Learning, Run

FILE = Path(__file__).parent / "recipes.toml"

# Compact variants: hidden size, and the largest ratio of validation errors at which they replace the larger recipe.
COMPACT_WIDTHS = {64: 1.015, 32: 1.005}
_COMPACT_LEAPS = 2

_HEADER = "# Made from the search log by `leapts_bench search`: the best on validation windows. Not to be edited.\n\n"


class Recipe(Options):
    """Model and training options of a data set."""

    model: LeapTSDesign = LeapTSDesign()
    training: Learning = Learning()

    def run(self, dataset: str, *, input_size: int, horizon: int, seed: int) -> Run:
        """Build the run of this recipe at a horizon."""
        return Run(
            dataset=dataset,
            horizon=horizon,
            input_size=input_size,
            model=self.model,
            training=self.training,
            seed=seed,
        )

    def changed(self, options: dict[str, Any]) -> "Recipe":
        """Replace some model options, as in an ablation."""
        return Recipe(model=LeapTSDesign(options={**self.model.options, **options}), training=self.training)

    def ensemble(self, members: int) -> "Recipe":
        """An ensemble of networks of this recipe with different seeds."""
        return Recipe(model=self.model.model_copy(update={"members": members}), training=self.training)

    def distilled(self, teachers: int) -> "Recipe":
        """A model of this recipe, trained with knowledge distillation."""
        return Recipe(model=self.model, training=self.training.model_copy(update={"teachers": teachers}))

    def compact(self, width: int) -> "Recipe":
        """The compact variant: a limited hidden size and at most two leaps."""
        options = self.model.options
        scheduling = {**options.get("scheduling", {"kind": "hierarchical"}), "max_leaps": _COMPACT_LEAPS}
        return self.changed({"hidden_size": min(width, options.get("hidden_size", width)), "scheduling": scheduling})


# Data sets without a search of their own use the recipe of a similar one.
_FALLBACKS = {"Electricity": "Electricity7", "PEMS04": "SZ-taxi", "PEMS07": "SZ-taxi"}


def recipe(dataset: str) -> Recipe:
    """The recipe of a data set, its fallback recipe, or default options."""
    found = _recipes()
    return found.get(dataset) or found.get(_FALLBACKS.get(dataset, "")) or Recipe()


def merit(line: Line) -> float:
    """Compute the objective of a search: the geometric mean of both errors over all validation parts."""
    scores = validations(line)
    names = ("smape", "mase") if "smape" in scores[0] else ("mse", "mae")
    return statistics.geometric_mean(score[name] for score in scores for name in names)


def validations(line: Line) -> list[Line]:
    """Return the scores of each validation part of a trial; early trials hold a single one."""
    several: list[Line] = line.get("validations") or [line["validation"]]
    return several


def chosen(trials: Iterable[Line]) -> dict[str, Recipe]:
    """Choose the best recipe of each data set, among those with the most validation parts, then the most trials.

    On M4, recipes judged by their final weights come first. If a compact variant of the best recipe was tried and is
    nearly as good, the smallest such variant replaces it.
    """
    by_set: dict[str, list[Line]] = defaultdict(list)
    for line in trials:
        by_set[line["run"]["dataset"]].append(line)
    return {name: _taken(judged(by_set[name])).recipe for name in sorted(by_set)}


def best_of(dataset: str, trials: Iterable[Line]) -> Recipe:
    """Return the recipe with the smallest validation error, compact or not."""
    return min(judged(line for line in trials if line["run"]["dataset"] == dataset), key=_rank).recipe


def written(trials: Iterable[Line]) -> str:
    """Return the recipes as TOML."""
    tables = {name: recipe.model_dump(mode="json", exclude_defaults=True) for name, recipe in chosen(trials).items()}
    return _HEADER + tomli_w.dumps(tables)


def write(trials: Iterable[Line]) -> None:
    """Write the recipes to their file."""
    write_file(FILE, written(trials).encode())


class Judgement(NamedTuple):
    """A recipe and its trials on the same number of validation parts, for each seed and horizon."""

    recipe: Recipe
    parts: int
    trials: list[Line]

    @property
    def seeds(self) -> set[int]:
        """Return the seeds of the trials."""
        return {line["run"]["seed"] for line in self.trials}

    @property
    def merit(self) -> float:
        """Return the mean objective over the trials."""
        return statistics.geometric_mean(merit(line) for line in self.trials)


def judged(trials: Iterable[Line]) -> list[Judgement]:
    """Group the trials of a data set by recipe and number of validation parts."""
    judgements: dict[tuple[str, int], Judgement] = {}
    for line in trials:
        recipe, parts = _recipe(line), len(validations(line))
        new = Judgement(recipe, parts, [])
        judgements.setdefault((recipe.model_dump_json(), parts), new).trials.append(line)
    return list(judgements.values())


def _taken(judgements: Sequence[Judgement]) -> Judgement:
    taken = min(judgements, key=_rank)
    for width, cost in COMPACT_WIDTHS.items():
        form = taken.recipe.compact(width)
        compact = [other for other in judgements if other.recipe == form and _costs_at_most(cost, other, taken)]
        taken = min(compact, key=_rank, default=taken)
    return taken


def _costs_at_most(cost: float, compact: Judgement, taken: Judgement) -> bool:
    return compact.parts == taken.parts and compact.merit <= cost * taken.merit


def _rank(judgement: Judgement) -> tuple[bool, int, int, float]:
    # On M4 the tested model is refitted to the end of its training, so the best weights during a trial say little.
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
