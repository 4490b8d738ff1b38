"""Suites: the runs behind each table. A run in two suites is done once."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from leapts.datasets.catalogue import find
from leapts_bench.baselines import CHEAP, COSTLY, baseline_run
from leapts_bench.everyday import running as everyday
from leapts_bench.gift import running
from leapts_bench.recipes import Recipe, recipe
from leapts_bench.runs import AnalysisRun, Job, Learning, NaiveDesign, Run

FULL = "LeapTS"
ENSEMBLE = "ensemble of four"
DISTILLED = "distilled from four"
NAIVE = "naive forecast"
NO_SCHEDULING = "w/o scheduling branch"
NO_HIGH_LEVEL = "w/o High-Level"
MONTE_CARLO = "Monte Carlo"
FIXED_STEP = "Fixed Step"
THREE_CLUSTERS = "LeapTS, three clusters"
TRACES = (MONTE_CARLO, FIXED_STEP)

# Fast data sets first, so that an incomplete table has as many rows as possible.
PAPER_SETS = ("ILI", "COVID", "Exchange", "SP500", "Wiki", "ETTh1", "ETTh2", "ETTm1", "ETTm2", "Weather")
UNPUBLISHED_SETS = ("Electricity7", "SZ-taxi")
SETS_ELSEWHERE = ("Electricity", "PEMS04", "PEMS07")

TIMED_SETS = ("ETTh1", "ETTh2", "Weather")  # data sets whose speed is measured

SCENARIOS = ("Scenario1", "Scenario2", "Scenario3")

# The data sets of the paper's table of signals, and Weather instead of those that are not available.
ANALYSED_SETS = ("ETTh2", "ETTm2", "Exchange", "Weather", "Electricity", "PEMS04")
CLUSTERED_SET = "Scenario1"  # its series have three kinds, which a good state separates
_ANALYSED_LOOKBACK, _ANALYSED_HORIZON = 96, 48
# About 1,500 steps each.
_ANALYSED_EPOCHS = {
    **dict.fromkeys(SCENARIOS, 4.0),
    "ETTh2": 6.0,
    "ETTm2": 1.5,
    "Exchange": 10.0,
    "Weather": 1.5,
    "Electricity": 3.0,
    "PEMS04": 4.0,
}

LONG_LOOKBACK = 720
SEEDS = (1, 2, 3)
MANY_SEEDS = (1, 2, 3, 4, 5)
MEMBERS = 4  # of an ensemble, and teachers: on validation windows four have most of the gain of six

COMPONENTS: dict[str, dict[str, object]] = {
    NO_SCHEDULING: {"scheduling": {"kind": "none"}},
    "RNN cell": {"state": {"kind": "rnn"}},
    "LSTM cell": {"state": {"kind": "lstm"}},
}
_COMPONENT_SETS = ("ETTh1", "ETTh2", "ETTm1", "ETTm2", "Weather")
_HIGH_LEVEL_SETS = ("ILI", "Exchange", "ETTh1", "ETTh2", "ETTm1", "ETTm2", "Weather")
_TRACE_SETS = ("ILI", "Exchange", "ETTm1", "ETTm2", "Weather")


M4_GROUPS = {
    "Yearly": ("Yearly",),
    "Quarterly": ("Quarterly",),
    "Monthly": ("Monthly",),
    "Others": ("Weekly", "Daily", "Hourly"),
    "Average": ("Yearly", "Quarterly", "Monthly", "Weekly", "Daily", "Hourly"),
}

# Short series allow a short look-back only; long ones have days and weeks.
_M4_HORIZONS_BACK = {
    "M4-Yearly": 3,
    "M4-Quarterly": 2,
    "M4-Monthly": 2,
    "M4-Weekly": 5,
    "M4-Daily": 3,
    "M4-Hourly": 5,
}


class Entry(NamedTuple):
    """A run and its name in a table."""

    variant: str
    run: Job


def entries(suite: str) -> list[Entry]:
    """List the runs of a suite, in the order of execution.

    Raises:
        KeyError: When there is no such suite.
    """
    return list(SUITES[suite]())


def _entry(
    dataset: str,
    horizon: int,
    *,
    seed: int = 1,
    variant: str = FULL,
    options: dict[str, object] | None = None,
    input_size: int | None = None,
) -> Entry:
    """Create a run of the data set's recipe at a horizon, with some options replaced."""
    changed: Recipe = recipe(dataset).changed(options or {})
    look_back = input_size or look_back_of(dataset)
    return Entry(variant, changed.run(dataset, input_size=look_back, horizon=horizon, seed=seed))


def look_back_of(dataset: str) -> int:
    """Return the paper's look-back; for M4, where it names none, a few horizons."""
    row = find(dataset)
    return row.input_size or _M4_HORIZONS_BACK[row.name] * row.horizons[0]


def _naive(dataset: str, horizon: int, input_size: int) -> Entry:
    run = Run(dataset=dataset, horizon=horizon, input_size=input_size, model=NaiveDesign(), training=Learning(), seed=1)
    return Entry(NAIVE, run)


def _main() -> Iterator[Entry]:
    sets = PAPER_SETS + UNPUBLISHED_SETS + SETS_ELSEWHERE
    for dataset in sets:
        for horizon in find(dataset).horizons:
            yield _naive(dataset, horizon, look_back_of(dataset))
    for seed in SEEDS:
        for dataset in sets:
            for horizon in find(dataset).horizons:
                yield _entry(dataset, horizon, seed=seed)


def _ensembles() -> Iterator[Entry]:
    """List the data sets of the paper and M4, each forecast by an ensemble of the recipe."""
    places = [
        (dataset, horizon, seed) for seed in SEEDS for dataset in PAPER_SETS for horizon in find(dataset).horizons
    ]
    places += [(entry.run.dataset, entry.run.horizon, 1) for entry in _m4()]
    for dataset, horizon, seed in places:
        mean = recipe(dataset).ensemble(MEMBERS)
        yield Entry(ENSEMBLE, mean.run(dataset, input_size=look_back_of(dataset), horizon=horizon, seed=seed))


def _distilled() -> Iterator[Entry]:
    """List the data sets of the paper, each forecast by a student of four teachers."""
    for seed in SEEDS:
        for dataset in PAPER_SETS:
            distilled = recipe(dataset).distilled(MEMBERS)
            for horizon in find(dataset).horizons:
                yield Entry(
                    DISTILLED, distilled.run(dataset, input_size=look_back_of(dataset), horizon=horizon, seed=seed)
                )


def _synthetic() -> Iterator[Entry]:
    for dataset in reversed(SCENARIOS):
        for horizon in find(dataset).horizons:
            yield _entry(dataset, horizon)
            yield _entry(dataset, horizon, variant=NO_SCHEDULING, options=COMPONENTS[NO_SCHEDULING])
    for names in (CHEAP, COSTLY):
        for dataset in reversed(SCENARIOS):
            for horizon in find(dataset).horizons:
                yield from (_baseline(name, dataset, horizon) for name in names)


def _long() -> Iterator[Entry]:
    for dataset in ("ETTm1", "ETTm2", "Weather", "Electricity"):
        for horizon in find(dataset).long_horizons:
            yield _naive(dataset, horizon, LONG_LOOKBACK)
            yield _entry(dataset, horizon, input_size=LONG_LOOKBACK)


def _ablation() -> Iterator[Entry]:
    for seed in SEEDS:
        for dataset in _HIGH_LEVEL_SETS:
            yield from _schedules(dataset, seed)
    for dataset in _COMPONENT_SETS:
        for horizon in find(dataset).horizons:
            yield _entry(dataset, horizon)
            for variant, options in COMPONENTS.items():
                yield _entry(dataset, horizon, variant=variant, options=options)


def _schedules(dataset: str, seed: int) -> Iterator[Entry]:
    """List the full model and other schedules, at the longest horizon."""
    horizon = find(dataset).horizons[-1]
    leaps = _max_leaps(dataset)
    others: dict[str, dict[str, object]] = {NO_HIGH_LEVEL: {"kind": "flat", "max_leaps": leaps}}
    if dataset in _TRACE_SETS:
        others[MONTE_CARLO] = {"kind": "monte_carlo", "max_leaps": leaps}
        others[FIXED_STEP] = {"kind": "fixed", "step": find(dataset).season}
    yield _entry(dataset, horizon, seed=seed)
    for variant, scheduling in others.items():
        yield _entry(dataset, horizon, seed=seed, variant=variant, options={"scheduling": scheduling})


def _max_leaps(dataset: str) -> int:
    scheduling = recipe(dataset).model.options.get("scheduling", {})
    leaps: int = scheduling.get("max_leaps", 4)
    return leaps


def _sensitivity() -> Iterator[Entry]:
    horizons = find("ETTm1").horizons
    for horizon in horizons:
        for layers in (1, 2, 3, 4):
            options: dict[str, object] = {"encoder_layers": layers, "head_layers": layers}
            yield _entry("ETTm1", horizon, variant=f"layers={layers}", options=options)
        for look_back in (96, 192, 336, 512):
            yield _entry("ETTm1", horizon, variant=f"L={look_back}", input_size=look_back)
        for clusters in (1, 3, 5, 7):
            state: dict[str, object] = {"state": {"kind": "cde", "clusters": clusters}}
            yield _entry("ETTm1", horizon, variant=f"G={clusters}", options=state)


def _seeds() -> Iterator[Entry]:
    for seed in MANY_SEEDS:
        for dataset in ("ETTh1", "ETTh2", "ETTm1", "ETTm2", "Weather", "Electricity"):
            for horizon in find(dataset).horizons:
                yield _entry(dataset, horizon, seed=seed)


def _m4() -> Iterator[Entry]:
    for frequency in ("Hourly", "Weekly", "Yearly", "Daily", "Quarterly", "Monthly"):
        dataset = f"M4-{frequency}"
        yield _entry(dataset, find(dataset).horizons[0])


def _baselines() -> Iterator[Entry]:
    """List cheap baselines on all data sets first, then the fast runs of expensive ones, then the rest."""
    places = [(dataset, horizon) for dataset, horizons in _baseline_places() for horizon in horizons]
    for dataset, horizon in places:
        yield _entry(dataset, horizon)
        yield from (_baseline(name, dataset, horizon) for name in CHEAP)
    soon = [place for place in places if place[0] == "ILI" or place == ("ETTh1", 24)]
    for dataset, horizon in [*soon, *(place for place in places if place not in soon)]:
        yield from (_baseline(name, dataset, horizon) for name in COSTLY)


def _baseline_places() -> Iterator[tuple[str, tuple[int, ...]]]:
    yield from ((dataset, find(dataset).horizons) for dataset in ("ILI", "Exchange", "ETTh1", "ETTh2"))
    yield from ((dataset, (24, 60)) for dataset in ("ETTm1", "Weather"))
    # The paper has no figures for these.
    yield from ((dataset, (24, find(dataset).horizons[-1])) for dataset in UNPUBLISHED_SETS)


def _baseline(name: str, dataset: str, horizon: int) -> Entry:
    return Entry(name, baseline_run(name, dataset, input_size=look_back_of(dataset), horizon=horizon))


def _analysis() -> Iterator[Entry]:
    """List runs with default options: recipes change, and shares are comparable only for equal options."""
    for dataset in (*SCENARIOS, *ANALYSED_SETS):
        yield Entry(FULL, _analysed(dataset, {}))
    clustered: dict[str, object] = {"state": {"kind": "cde", "clusters": 3}}
    yield Entry(THREE_CLUSTERS, _analysed(CLUSTERED_SET, clustered))
    yield Entry(NO_SCHEDULING, _analysed(CLUSTERED_SET, COMPONENTS[NO_SCHEDULING]))
    linear = baseline_run("DLinear", CLUSTERED_SET, input_size=_ANALYSED_LOOKBACK, horizon=_ANALYSED_HORIZON)
    yield Entry("DLinear", AnalysisRun(**linear.model_dump(), purpose="analysis"))


def _analysed(dataset: str, options: dict[str, object]) -> AnalysisRun:
    plain = Recipe(training=Learning(epochs=_ANALYSED_EPOCHS[dataset])).changed(options)
    run = plain.run(dataset, input_size=_ANALYSED_LOOKBACK, horizon=_ANALYSED_HORIZON, seed=1)
    return AnalysisRun(**run.model_dump(), purpose="analysis")


def _published(benchmark: running.BenchmarkName) -> Iterator[Entry]:
    """Every forecaster on every task of a published benchmark, quick forecasters first."""
    return (Entry(run.model, run) for run in running.runs(benchmark))


SUITES: dict[str, Callable[[], Iterator[Entry]]] = {
    "main": _main,
    "distilled": _distilled,
    "ensembles": _ensembles,
    "synthetic": _synthetic,
    "long": _long,
    "ablation": _ablation,
    "sensitivity": _sensitivity,
    "seeds": _seeds,
    "m4": _m4,
    "baselines": _baselines,
    "analysis": _analysis,
    "gift": lambda: _published("gift"),
    "covariates": lambda: _published("covariates"),
    "defaults": lambda: (Entry(run.model, run) for run in everyday.runs()),
}
