"""Runs of the everyday sets: which forecasters on which sets, and the scores of one run."""

import time
import warnings
from importlib.util import find_spec
from typing import Any

from leapts.datasets.loading import data_folder
from leapts.forecasting.baselines import Drift, HistoricMean, Naive, SeasonalNaive, statistical_baselines
from leapts_bench.everyday import sets
from leapts_bench.everyday.forecasters import LeapTSForecaster, PointForecaster, WindowForecaster, season_of
from leapts_bench.everyday.scoring import everyday_scores
from leapts_bench.gift.series import Task
from leapts_bench.runs import PublishedRun

LEAPTS, SYMMETRIC = "LeapTS", "LeapTS symmetric"
SIMPLE = ("Naive", "SeasonalNaive", "Drift", "HistoricMean")
STATISTICAL = ("AutoETS", "AutoTheta")
# Raise the version of LeapTS when its defaults change: its runs are then done again, and the old lines count nowhere.
_VERSIONS = {LEAPTS: "1", SYMMETRIC: "1", **dict.fromkeys(SIMPLE, "1"), **dict.fromkeys(STATISTICAL, "2.1.1")}
_M4_SECONDS = {"hourly": 3000, "monthly": 1500, "weekly": 300, "daily": 300, "quarterly": 300, "yearly": 60}


def runs() -> list[PublishedRun]:
    """List the runs, quick ones first; GIFT-Eval is for LeapTS only, with its other results on a page of its own."""
    found = [
        PublishedRun(
            dataset=name, horizon=sets.horizon_of(name), benchmark="defaults", model=model, version=_VERSIONS[model]
        )
        for model in _VERSIONS
        for name in (*sets.SMALL, *sets.M4, *(sets.GIFT if model in (LEAPTS, SYMMETRIC) else ()))
    ]
    return sorted(found, key=estimated_seconds)


def forecast_and_score(run: PublishedRun) -> dict[str, Any]:
    """Forecast every window of a set, and score the forecasts.

    Seconds are processor time, without that of reading the data.
    """
    task = sets.load(run.dataset, data_folder())
    forecaster = _forecaster(run, task)
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of series that statsforecast refuses: they get the seasonal naive forecast
        forecasts = list(forecaster.forecasts(task))
    seconds = time.process_time() - started
    scores = everyday_scores(task, forecasts)
    size = int(task.past(0).lengths.sum())
    return {
        "test": {**scores, "series": len(task.series), "windows": task.count, "fitted": size},
        "parameters": forecaster.parameters,
        "seconds": {"core": round(seconds, 2)},
    }


def files_of(run: PublishedRun) -> list[str]:
    """Files that a run reads, relative to the data folder."""
    return sets.files_of(run.dataset)


def package_needed(model: str) -> str | None:
    """Package that a forecaster needs and that is not installed."""
    is_missing = model in STATISTICAL and find_spec("statsforecast") is None
    return f"statsforecast=={_VERSIONS[model]}" if is_missing else None


def _forecaster(run: PublishedRun, task: Task) -> WindowForecaster:
    season = season_of(task)
    if run.model in (LEAPTS, SYMMETRIC):
        return LeapTSForecaster(run.seed, symmetric=run.model == SYMMETRIC)
    if run.model in STATISTICAL:
        return PointForecaster(statistical_baselines(season, [run.model])[0])
    simple = (Naive(), SeasonalNaive(season), Drift(), HistoricMean())
    return PointForecaster(next(one for one in simple if one.name == run.model))


def estimated_seconds(run: PublishedRun) -> float:
    """Estimate the processor time of a run, from a few runs on one machine."""
    if run.model in SIMPLE:
        return 1
    if run.model not in STATISTICAL:
        return 60 if run.dataset in sets.M4 else 15
    frequency = run.dataset.removeprefix("m4_").removesuffix("_sample")
    return _M4_SECONDS.get(frequency, 20)
