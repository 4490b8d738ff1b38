"""Published scores. GIFT-Eval: its repository's `results/*/all_results.csv` at commit 4fd98a9f803a (2026-08-07).

Kinds and leaks are the submitters' own words; numbers of weights come from model names, model cards and papers.
fev-bench: `benchmarks/fev_bench/results` of autogluon/fev at commit 1bc95fd779b3 (2026-08-19); which models use
covariates comes from their papers. Both repositories are under the Apache License 2.0; only figures are stored here.
"""

import csv
from functools import cache
from pathlib import Path
from typing import NamedTuple

_FOLDER = Path(__file__).parent
SOURCE, FEV_SOURCE = "https://github.com/SalesforceAIResearch/gift-eval", "https://github.com/autogluon/fev"
NAIVE, FEV_NAIVE = "seasonal_naive", "Seasonal Naive"
TRAINED = "trained per set"
_KINDS = {"deep-learning": TRAINED, "agentic": "agents and ensembles"}
_SIZES = ((10e6, "zero-shot, below 10 M weights"), (100e6, "zero-shot, 10 to 100 M"), (1e12, "zero-shot, above 100 M"))
LEAKED = "test data leaked"
WITH_COVARIATES, WITHOUT_COVARIATES = ", with covariates", ", without covariates"
KINDS = (
    "statistical",
    TRAINED,
    *(name for _, name in _SIZES),
    "zero-shot, size not published",
    "pretrained",
    "fine-tuned",
    "agents and ensembles",
    LEAKED,
)


class Model(NamedTuple):
    """A model with its scores, by metric and configuration."""

    name: str
    kind: str
    parameters: int | None
    scores: dict[str, dict[str, float]]
    seconds: dict[str, float] | None = None  # processor time by configuration, of a model run here


@cache
def gift_models() -> dict[str, Model]:
    """Read all models of GIFT-Eval, by name."""
    models: dict[str, Model] = {}
    with (_FOLDER / "gift_eval.csv").open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            name, kind, parameters, leaked, metric = (
                row.pop(key) for key in ("model", "kind", "parameters", "leaked", "metric")
            )
            size = int(parameters) if parameters else None
            model = models.setdefault(name, Model(name, _kind(kind, size, is_leaked=leaked == "1"), size, {}))
            model.scores[metric] = {configuration: float(value) for configuration, value in row.items()}
    return models


@cache
def fev_models() -> dict[str, Model]:
    """Read the models of fev-bench, by name; the kind says whether they use covariates."""
    models: dict[str, Model] = {}
    with (_FOLDER / "fev_bench.csv").open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            name, kind, covariates, leaked, metric = (
                row.pop(key) for key in ("model", "kind", "covariates", "leaked", "metric")
            )
            use = WITH_COVARIATES if covariates == "1" else WITHOUT_COVARIATES
            label = LEAKED if leaked else f"{_KINDS.get(kind, kind)}{use}"
            scores = {task: float(value) for task, value in row.items()}
            models.setdefault(name, Model(name, label, None, {})).scores[metric] = scores
    return models


def _kind(kind: str, parameters: int | None, *, is_leaked: bool) -> str:
    if is_leaked:
        return LEAKED
    if kind != "zero-shot":
        return _KINDS.get(kind, kind)
    return "zero-shot, size not published" if parameters is None else _size(parameters)


def _size(parameters: int) -> str:
    return next(name for limit, name in _SIZES if parameters < limit)
