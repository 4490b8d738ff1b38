"""LeapTS as an estimator and predictor of GluonTS."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("gluonts", reason="gluonts is not installed")
with warnings.catch_warnings(action="ignore"):  # it recommends a faster reader of JSON
    import gluonts.json  # noqa: F401

from gluonts.core import serde
from gluonts.dataset.common import ListDataset
from gluonts.dataset.split import split
from gluonts.ev.metrics import MASE, MeanWeightedSumQuantileLoss
from gluonts.evaluation import make_evaluation_predictions
from gluonts.model.evaluation import evaluate_model
from gluonts.model.forecast import QuantileForecast
from gluonts.model.predictor import Predictor

from leapts import LeapTS
from leapts.errors import ConfigError, DataError
from leapts.integrations.gluonts import QUANTILE_LEVELS, LeapTSEstimator, LeapTSPredictor
from leapts_bench.gift import gift_eval
from leapts_bench.gift.forecasters import LeapTSDefaults
from leapts_bench.gift.scoring import gift_scores
from tests.bench.published_data import folder_with
from tests.forecasting.frames import LOOKBACK, H, make_frame

OPTIONS: dict[str, Any] = {"input_size": LOOKBACK, "max_steps": 20, "batch_size": 16, "model": {"hidden_size": 8}}
Entry = dict[str, Any]


def make_entries(lengths: dict[str, int] | None = None, *, freq: str = "D", named: bool = True) -> list[Entry]:
    groups = make_frame(lengths).groupby("unique_id", sort=False)
    return [
        {"start": pd.Period(part["ds"].iloc[0], freq=freq), "target": part["y"].to_numpy()}
        | ({"item_id": str(name)} if named else {})
        for name, part in groups
    ]


def train(entries: list[Entry], **options: Any) -> LeapTSPredictor:
    estimator: LeapTSEstimator = LeapTSEstimator(H, **OPTIONS | options)
    return estimator.train(entries)


def arrays(predictor: Predictor, entries: Any) -> list[Any]:
    return [forecast.forecast_array for forecast in predictor.predict(entries)]


def test_forecasts_are_those_of_the_estimator() -> None:
    forecasts = list(train(make_entries()).predict(make_entries()))
    expected = LeapTS(H, **OPTIONS).fit(make_frame()).predict(quantiles=QUANTILE_LEVELS)
    by_series = expected.iloc[:, -len(QUANTILE_LEVELS) :].to_numpy().reshape(len(forecasts), H, -1)
    np.testing.assert_allclose([forecast.forecast_array.T for forecast in forecasts], by_series, rtol=1e-6)
    assert [forecast.item_id for forecast in forecasts] == list(expected["unique_id"].unique())
    assert [forecast.start_date.to_timestamp() for forecast in forecasts] == list(expected["ds"].iloc[::H])
    np.testing.assert_array_equal(forecasts[0].quantile(0.3), forecasts[0].forecast_array[2])


def test_windows_of_one_series_are_forecast_each_from_its_own_past() -> None:
    entries = make_entries()
    predictor = train(entries)
    shorter = [entry | {"target": entry["target"][:-H]} for entry in entries]
    windows = [window for pair in zip(shorter, entries, strict=True) for window in pair]
    forecasts = list(predictor.predict(windows))
    ends = [entry["start"] + len(entry["target"]) for entry in windows]
    assert [(one.item_id, one.start_date) for one in forecasts] == [
        (entry["item_id"], end) for entry, end in zip(windows, ends, strict=True)
    ]
    apart = [arrays(predictor, shorter), arrays(predictor, entries)]
    np.testing.assert_array_equal([one.forecast_array for one in forecasts[0::2]], apart[0])
    np.testing.assert_array_equal([one.forecast_array for one in forecasts[1::2]], apart[1])


@pytest.mark.parametrize("freq", ["s", "10min", "h", "D", "W-TUE", "M", "Q-DEC", "Y-DEC"])
def test_a_forecast_starts_after_the_last_period(freq: str) -> None:
    entries = make_entries(freq=freq)
    forecasts = train(entries, max_steps=1).predict(entries)
    assert [one.start_date for one in forecasts] == [entry["start"] + len(entry["target"]) for entry in entries]


def test_entries_without_a_name_are_forecast_whatever_else_is_in_the_dataset() -> None:
    entries = make_entries(named=False)
    predictor = train(entries)
    together = arrays(predictor, entries)
    assert not np.allclose(together[0], together[1])
    for entry, expected in zip(entries, together, strict=True):
        np.testing.assert_allclose(arrays(predictor, [entry]), [expected], rtol=1e-5)


def test_data_with_holes_and_short_series_get_quantiles() -> None:
    entries = make_entries({"a": 200, "b": 3 * H})
    entries[0]["target"][50:60] = np.nan
    for quantiles in arrays(train(entries), entries):
        assert np.isfinite(quantiles).all()
        assert (np.diff(quantiles, axis=0) >= 0).all()


def test_a_predictor_is_the_same_after_writing_and_reading(tmp_path: Path) -> None:
    predictor = LeapTSEstimator(H, quantile_levels=(0.25, 0.5), **OPTIONS).train(make_entries())
    predictor.serialize(tmp_path)
    copy = Predictor.deserialize(tmp_path)
    assert isinstance(copy, LeapTSPredictor)
    assert copy.quantile_levels == (0.25, 0.5)
    assert copy.prediction_length == H
    np.testing.assert_array_equal(arrays(copy, make_entries()), arrays(predictor, make_entries()))


def test_gluonts_stores_and_creates_estimators_with_their_options() -> None:
    estimator = LeapTSEstimator(H, **OPTIONS)
    assert serde.decode(serde.encode(estimator)).options == OPTIONS
    assert LeapTSEstimator.from_hyperparameters(prediction_length=H, **OPTIONS).options == OPTIONS
    assert LeapTSEstimator.from_inputs([], prediction_length=H, **OPTIONS).options == OPTIONS


def test_the_evaluations_of_gluonts_run() -> None:
    dataset = ListDataset(make_entries(), freq="D")
    training, template = split(dataset, offset=-2 * H)
    predictor = train(list(training))
    windows = template.generate_instances(H, windows=2, distance=H)
    metrics = [MASE(), MeanWeightedSumQuantileLoss(QUANTILE_LEVELS)]
    scores = evaluate_model(predictor, test_data=windows, metrics=metrics, seasonality=7)
    assert np.isfinite(scores.to_numpy()).all()
    forecasts, actual = make_evaluation_predictions(dataset, predictor, num_samples=10)
    assert all(isinstance(forecast, QuantileForecast) for forecast in forecasts)
    assert len(list(actual)) == len(dataset)


@pytest.mark.parametrize("target", [np.zeros((2, 50)), np.zeros(0)])
def test_a_target_that_is_no_series_is_named(target: Any) -> None:
    wrong = {"start": pd.Period("2020-01-01", "D"), "target": target, "item_id": "wide"}
    with pytest.raises(DataError, match="wide"):
        train([*make_entries(), wrong])


def test_options_of_other_estimators_and_predictors_have_no_effect() -> None:
    """AutoGluon passes these to every estimator and predictor of GluonTS."""
    entries = make_entries()
    predictor = LeapTSEstimator(H, **OPTIONS).train(entries, validation_data=entries, cache_data=True)
    forecasts = predictor.predict(dataset=entries, num_samples=250)
    np.testing.assert_array_equal([one.forecast_array for one in forecasts], arrays(train(entries), entries))


def test_an_unknown_option_is_refused_at_once() -> None:
    with pytest.raises(ConfigError, match="input_size"):
        LeapTSEstimator(H, context_length=24)


# The path of GIFT-Eval's own scripts: split, instances and metrics are those of GluonTS.
@pytest.mark.slow
@pytest.mark.parametrize("name", ["ett1/W/short", "us_births/M/short", "saugeen/M/short"])
def test_gift_eval_by_gluonts_equals_our_harness(name: str) -> None:
    task = gift_eval.load(name, folder_with(gift_eval.files_of(name)))
    expected = gift_scores(task, LeapTSDefaults(seed=1).forecasts(task))

    values = np.split(task.series.values, task.series.ends[:-1])
    start = pd.Period(task.start, freq={"MS": "M"}.get(task.freq, task.freq))
    dataset = [{"start": start, "target": target, "item_id": f"{at:04}"} for at, target in enumerate(values)]
    training, template = split(dataset, offset=-task.count * task.horizon)
    predictor = LeapTSEstimator(task.horizon, random_seed=1).train(training)
    windows = template.generate_instances(task.horizon, windows=task.count, distance=task.horizon)
    metrics = [MASE(), MeanWeightedSumQuantileLoss(QUANTILE_LEVELS)]
    scores = evaluate_model(predictor, test_data=windows, metrics=metrics, axis=None, seasonality=task.season)
    assert scores.iloc[0].to_list() == pytest.approx([expected["mase"], expected["crps"]], rel=1e-6)
