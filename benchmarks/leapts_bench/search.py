"""The search for a recipe: successive halving over random candidates, by validation error alone.

Candidates are drawn from a seed of the set's name, so a search that was stopped goes on with the same ones.
"""

import hashlib
import itertools
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from leapts.datasets.catalogue import Dataset, find
from leapts_bench import results
from leapts_bench.execution import Cut, trial
from leapts_bench.m4 import Earlier
from leapts_bench.protocol import folds
from leapts_bench.recipes import COMPACT_WIDTHS, Recipe, best_of, merit, recipe, validations
from leapts_bench.runs import LeapTSDesign, Learning, Run, Unit
from leapts_bench.suites import TIMED_SETS, look_back_of

LOG = "search.jsonl"

# How many candidates a rung takes, after the anchors and the random ones of the first.
_SURVIVORS = (5, 2)
_RANDOM = 10
_RAGGED_SURVIVORS = (4, 2, 2)  # two to the end: what they differ by before it is no more than seeds do

# Epochs of each rung: small sets need many, large ones show their order early.
_EPOCHS = {
    "ILI": (5.0, 15.0, 30.0),
    "COVID": (5.0, 15.0, 30.0),
    "Wiki": (3.0, 8.0, 16.0),
    "SP500": (2.0, 6.0, 12.0),
    "Exchange": (2.0, 6.0, 12.0),
    "ETTh1": (2.0, 6.0, 12.0),
    "ETTh2": (2.0, 6.0, 12.0),
    "ETTm1": (0.5, 2.0, 6.0),
    "ETTm2": (0.5, 2.0, 6.0),
    "Weather": (0.3, 1.0, 4.0),
    "SZ-taxi": (1.0, 3.0, 8.0),
    "Electricity7": (0.5, 2.0, 6.0),
    # Quarterly and monthly series, many and with seasons, go on getting better.
    "M4-Yearly": (0.25, 1.0, 2.0),
    "M4-Quarterly": (0.4, 1.6, 4.0),
    "M4-Monthly": (0.1, 0.4, 1.3, 4.0),
    "M4-Weekly": (3.0, 12.0),
    "M4-Daily": (0.2, 0.8),
    "M4-Hourly": (0.8, 3.2),
    # Made by equations: the longer a model learns, the closer it comes.
    "Scenario1": (0.5, 2.0, 12.0),
    "Scenario2": (2.0, 10.0, 60.0),
    "Scenario3": (2.0, 10.0, 60.0),
}
_USUAL_EPOCHS = (0.5, 2.0, 6.0)

# A tenth of fewer steps than this is too little to judge by: such sets are validated on three parts, one after another.
_SHORT = 1000
_FOLDS_OF_SHORT = 3

# Years differ in their growth: what does best before the last six may not before others.
_EARLIER: dict[str, Sequence[Cut]] = {"M4-Yearly": [Earlier(0), Earlier(1), Earlier(2)]}


def search(dataset: str, folder: Path, *, tell: Callable[[str], None]) -> None:
    """Search for a recipe, and log every trial."""
    row = find(dataset)
    horizon = middle_horizon(row)
    look_back = look_back_of(row.name)
    log = folder / LOG
    cuts = folds(row.split, _FOLDS_OF_SHORT) if is_short(row) and row.split is not None else _EARLIER.get(row.name, [])
    ragged = row.split is None
    survivors = ragged_candidates() if ragged else candidates(row.name, row.series)
    taken = _RAGGED_SURVIVORS if ragged else _SURVIVORS
    rungs = _EPOCHS.get(row.name, _USUAL_EPOCHS)
    for rung, epochs in enumerate(rungs):
        if ragged and rung == len(rungs) - 1:
            survivors = _with_former(survivors, recipe(row.name))
        lines = []
        for number, candidate in enumerate(survivors, 1):
            run = _at(candidate, epochs).run(row.name, input_size=look_back, horizon=horizon, seed=1)
            line = tried(run, cuts, rung, log)
            lines.append((merit(line), number - 1))
            tell(f"{row.name} rung {rung}, {number}/{len(survivors)}: {merit(line):.4f} {candidate.model.options}")
        if rung < len(taken):
            best = sorted(lines)[: taken[rung]]
            survivors = [survivors[number] for _, number in best]
    if row.name in TIMED_SETS:
        winner = best_of(row.name, results.read(log))
        for rung, width in enumerate(COMPACT_WIDTHS, len(taken) + 1):
            compact = winner.compact(width)
            line = tried(compact.run(row.name, input_size=look_back, horizon=horizon, seed=1), cuts, rung, log)
            tell(f"{row.name}, compact variant of the best: {merit(line):.4f} {compact.model.options}")


def is_short(row: Dataset) -> bool:
    """Whether a set has so few steps that one validation part is too little to judge by."""
    return row.length is not None and row.length < _SHORT


def middle_horizon(row: Dataset) -> int:
    """The horizon that recipes are looked for at."""
    return row.horizons[len(row.horizons) // 2]


def tried(run: Run, cuts: Sequence[Cut], rung: int | str, log: Path) -> results.Line:
    """The trial of a run, from the log where it is there."""
    for line in results.read(log):
        if line["key"] == run.key and len(validations(line)) == max(1, len(cuts)):
            return line
    line = {**trial(run, cuts), "rung": rung}
    results.append(log, line)
    return line


def candidates(dataset: str, variates: int) -> list[Recipe]:
    """Plain anchors first, three normalisations with and without mixing, then random ones."""
    random_ = random.Random(int.from_bytes(hashlib.sha256(dataset.encode()).digest()[:8], "big"))
    mixings = ("none", "mlp") if variates > 1 else ("none",)
    anchors = [
        Recipe(model=LeapTSDesign(options=_model(normalization=normalization, mixing=mixing)))
        for normalization in ("mean", "last", "none")
        for mixing in mixings
    ]
    drawn = [_drawn(random_, variates) for _ in range(_RANDOM)]
    return anchors + drawn


def ragged_candidates() -> list[Recipe]:
    """For very many series of their own levels: larger batches, and windows seen from their last value.

    In units of the series, of the window, and of each value, the last two also with windows that go on after the end.
    The one look is at the end: what is tested learns anew, to the end of its course, so no other weights are its like.
    """
    plain = Learning(batch_size=256, looks=1, short_histories=True)
    by_series = [
        Recipe(
            model=LeapTSDesign(options=_model(normalization="last", mixing="none", hidden_size=width)),
            training=plain.model_copy(update={"unit": "owa", "learning_rate": rate, "huber_delta": delta}),
        )
        for width, rate, delta in ((64, 4e-3, 0.1), (64, 8e-3, 1.0), (128, 4e-3, 1.0), (128, 8e-3, 0.1))
    ]
    units: tuple[Unit, ...] = ("level", "log")
    shifted = [
        Recipe(
            model=LeapTSDesign(options=_model(normalization="shift", mixing="none", hidden_size=width)),
            training=plain.model_copy(update={"unit": unit, "unfinished": unfinished, "learning_rate": rate}),
        )
        for unit, unfinished, width, rate in itertools.product(units, (False, True), (64, 128), (4e-3, 8e-3))
    ]
    return by_series + shifted


def _with_former(survivors: list[Recipe], former: Recipe) -> list[Recipe]:
    """The survivors and the recipe of before, judged as they are: early rungs, noisy as they are, do not replace it."""
    epochs = survivors[0].training.epochs
    defender = Recipe(model=former.model, training=former.training.model_copy(update={"epochs": epochs, "looks": 1}))
    return survivors if defender in survivors else [*survivors, defender]


def _drawn(random_: random.Random, variates: int) -> Recipe:
    choice = random_.choice
    mixing = choice(("none", "none", "mlp", "mlp", "pooled"))
    options = _model(
        normalization=choice(("mean", "mean", "last", "last", "none")),
        mixing=mixing if variates > 1 else "none",
        hidden_size=choice((16, 32, 64, 64, 128)),
        encoder_layers=choice((1, 2, 2, 3)),
        head_layers=choice((1, 1, 2)),
        max_leaps=choice((2, 4, 4, 6)),
    )
    training = Learning(
        batch_size=choice((16, 32, 64)),
        learning_rate=choice((5e-4, 1e-3, 2e-3, 4e-3)),
        huber_delta=choice((0.05, 0.1, 0.3, 1.0)),
    )
    return Recipe(model=LeapTSDesign(options=options), training=training)


def _model(
    *,
    normalization: str,
    mixing: str,
    hidden_size: int = 64,
    encoder_layers: int = 2,
    head_layers: int = 1,
    max_leaps: int = 4,
) -> dict[str, Any]:
    """Options of a model; variates that exchange are told apart."""
    return {
        "hidden_size": hidden_size,
        "encoder_layers": encoder_layers,
        "head_layers": head_layers,
        "normalization": normalization,
        "series_embedding": mixing != "none",
        "mixing": {"kind": mixing},
        "scheduling": {"kind": "hierarchical", "max_leaps": max_leaps},
    }


def _at(candidate: Recipe, epochs: float) -> Recipe:
    return Recipe(model=candidate.model, training=candidate.training.model_copy(update={"epochs": epochs}))
