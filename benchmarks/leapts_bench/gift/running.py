"""Runs of the published benchmarks: which forecasters on which tasks, and the scores of one run."""

import time
from collections.abc import Callable
from importlib.util import find_spec
from types import ModuleType
from typing import Any, Literal

from leapts.datasets.loading import data_folder
from leapts_bench.gift import fev_bench, gift_eval
from leapts_bench.gift.forecasters import Flair, Forecaster, LeapTSDefaults, LeapTSZero, SeasonalNaive
from leapts_bench.gift.scoring import fev_scores, gift_scores
from leapts_bench.runs import PublishedRun

BenchmarkName = Literal["gift", "covariates"]

SEASONAL_NAIVE, LEAPTS, FLAIR, ENSEMBLE = "SeasonalNaive", "LeapTS", "FLAIR", "LeapTS ensemble"
ZERO = "LeapTS-Zero"
MEMBERS = 4
# Raise the version of LeapTS when its defaults change: its runs are then done again, and the old lines count nowhere.
_LEAPTS_VERSION = "2"
# The version of LeapTS-Zero is its milestone.
_VERSIONS = {SEASONAL_NAIVE: "1", LEAPTS: _LEAPTS_VERSION, FLAIR: "0.6.1", ENSEMBLE: _LEAPTS_VERSION, ZERO: "2"}
_NAIVE_HISTORY = {"gift": None, "covariates": 1000}  # number of last values that each benchmark's SeasonalNaive uses
_PROTOCOLS: dict[str, ModuleType] = {"gift": gift_eval, "covariates": fev_bench}


def runs(benchmark: BenchmarkName) -> list[PublishedRun]:
    """List the runs of a benchmark, quick forecasters and tasks first."""
    names = gift_eval.configurations() if benchmark == "gift" else fev_bench.tasks()
    models = _VERSIONS if benchmark == "gift" else (SEASONAL_NAIVE, LEAPTS, ZERO)
    found = [
        PublishedRun(
            dataset=name,
            horizon=_PROTOCOLS[benchmark].horizon_of(name),
            benchmark=benchmark,
            model=model,
            version=_VERSIONS[model],
        )
        for model in models
        for name in names
    ]
    return sorted(found, key=estimated_seconds)


def forecast_and_score(run: PublishedRun) -> dict[str, Any]:
    """Forecast every window of a task, and score the forecasts.

    Seconds are processor time, without that of reading the data.
    """
    task = _PROTOCOLS[run.benchmark].load(run.dataset, data_folder())
    forecaster, score = _forecaster(run), gift_scores if run.benchmark == "gift" else fev_scores
    started = time.process_time()
    scores = score(task, forecaster.forecasts(task))
    seconds = time.process_time() - started
    return {
        "test": {**scores, "series": len(task.series), "windows": task.count},
        "parameters": forecaster.parameters,
        "seconds": {"core": round(seconds, 2)},
    }


def files_of(run: PublishedRun) -> list[str]:
    """Files that a run reads, relative to the data folder."""
    files: list[str] = _PROTOCOLS[run.benchmark].files_of(run.dataset)
    return files


def package_needed(model: str) -> str | None:
    """Package that a forecaster needs and that is not installed."""
    return f"flaircast=={_VERSIONS[FLAIR]}" if model == FLAIR and find_spec("flaircast") is None else None


def _forecaster(run: PublishedRun) -> Forecaster:
    build: dict[str, Callable[[], Forecaster]] = {
        SEASONAL_NAIVE: lambda: SeasonalNaive(_NAIVE_HISTORY[run.benchmark]),
        LEAPTS: lambda: LeapTSDefaults(run.seed),
        FLAIR: lambda: Flair(run.seed),
        ENSEMBLE: lambda: LeapTSDefaults(run.seed, MEMBERS),
        ZERO: LeapTSZero,
    }
    return build[run.model]()


def estimated_seconds(run: PublishedRun) -> float:
    """Estimate the processor time of a run, from a few runs on one machine."""
    if run.model == SEASONAL_NAIVE:
        return 3
    dataset, frequency, term = run.dataset.split("/") if run.benchmark == "gift" else (run.dataset, "H", "medium")
    is_m4 = dataset.startswith("m4_")
    if run.model in (FLAIR, ZERO):
        return 400 if is_m4 else 15
    horizons = gift_eval.TERMS[term]
    fit = 180 if is_m4 else {"10T": 100 * horizons, "15T": 100 * horizons, "H": 80 + 20 * horizons}.get(frequency, 10)
    return fit * (MEMBERS if run.model == ENSEMBLE else 1)
