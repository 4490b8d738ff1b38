"""Forecast many series at once: M4 Monthly, from frame to frame."""

import importlib.util
import logging
from functools import partial
from typing import Any

import pandas as pd

from leapts import LeapTS
from leapts.data.frames import panel_frame
from leapts.datasets.catalogue import find
from leapts.datasets.loading import load_dataset
from leapts_bench.results import Line
from leapts_bench.speed.plan import OURS, Plan
from leapts_bench.speed.timing import once
from leapts_bench.suites import look_back_of

_SET = "M4-Monthly"
_FEW = 500


def mass(plan: Plan) -> Line:
    """Measure reading, fitting and forecasting all series, next to neuralforecast's DLinear and a naive forecast."""
    dataset = find(_SET)
    h, input_size = dataset.horizons[0], look_back_of(_SET)
    # Column names that all three packages use.
    frame: pd.DataFrame = panel_frame(load_dataset(dataset, part="train")).set_axis(["unique_id", "ds", "y"], axis=1)
    frame = frame[frame["unique_id"].isin(frame["unique_id"].unique()[:_FEW])] if plan.is_quick else frame
    options: dict[str, Any] = {"max_steps": 20} if plan.is_quick else {}
    model = LeapTS(h=h, input_size=input_size, freq=1, random_seed=plan.seed, pad_short=True, **options)
    reading = min(once(partial(model.read, frame)) for _ in range(3))
    fitting = once(partial(model.fit, frame))
    seconds = {OURS: _best(partial(model.predict, frame), plan)}
    for name, make in (("neuralforecast's DLinear", _neural), ("statsforecast's SeasonalNaive", _naive)):
        predict = make(frame, h, input_size, dataset.season, plan)
        if predict is not None:
            seconds[name] = _best(predict, plan)
    series = int(frame["unique_id"].nunique())
    return {"series": series, "rows": len(frame), "reading": reading, "fit": fitting, "predict": seconds}


def _best(predict: Any, plan: Plan) -> float:
    return min(once(predict) for _ in range(min(3, plan.rounds)))


def _neural(frame: pd.DataFrame, h: int, input_size: int, season: int, plan: Plan) -> Any:  # noqa: ARG001
    if importlib.util.find_spec("neuralforecast") is None:
        return None
    from neuralforecast import NeuralForecast
    from neuralforecast.models import DLinear

    for chatty in ("lightning_fabric", "pytorch_lightning", "lightning.pytorch"):
        logging.getLogger(chatty).setLevel(logging.ERROR)
    quiet = {"enable_progress_bar": False, "enable_model_summary": False, "logger": False, "accelerator": "cpu"}
    # The time of a forecast does not depend on the training.
    linear = DLinear(
        h=h, input_size=input_size, max_steps=1, start_padding_enabled=True, random_seed=plan.seed, **quiet
    )
    forecaster = NeuralForecast(models=[linear], freq=1)
    forecaster.fit(frame)
    return partial(forecaster.predict, frame)


def _naive(frame: pd.DataFrame, h: int, input_size: int, season: int, plan: Plan) -> Any:  # noqa: ARG001
    if importlib.util.find_spec("statsforecast") is None:
        return None
    from statsforecast import StatsForecast
    from statsforecast.models import SeasonalNaive

    forecaster = StatsForecast(models=[SeasonalNaive(season_length=season)], freq=1, n_jobs=1)
    return partial(forecaster.forecast, df=frame, h=h)
