"""LeapTS as a forecaster of sktime."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

pytest.importorskip("sktime", reason="sktime is not installed")

from sktime.forecasting.base import ForecastingHorizon
from sktime.tests.test_class_register import get_test_classes_for_obj
from sktime.utils.estimator_checks import check_estimator

import leapts
from leapts.errors import ConfigError, DataError
from leapts.integrations.sktime import LeapTSForecaster
from tests.forecasting.frames import LOOKBACK, H, make_frame

FH = list(range(1, H + 1))
OPTIONS: dict[str, Any] = {"input_size": LOOKBACK, "max_steps": 20, "batch_size": 16}
SMALL: dict[str, Any] = {"model": {"mixing": {"kind": "none"}, "hidden_size": 8}}


def make_panel(lengths: dict[str, int] | None = None) -> pd.DataFrame:
    return make_frame(lengths).set_index(["unique_id", "ds"])


def make_wide() -> pd.DataFrame:
    return make_panel()["y"].unstack("unique_id").asfreq("D")


def by_facade(frame: pd.DataFrame, **options: Any) -> leapts.LeapTS:
    return leapts.LeapTS(H, freq="D", pad_short=True, **{**OPTIONS, **SMALL, **options}).fit(frame)


@pytest.mark.parametrize("part", range(4))  # in parallel in half the time
def test_every_check_of_sktime_passes(part: int) -> None:
    checks = {name for kind in get_test_classes_for_obj(LeapTSForecaster) for name in dir(kind) if name[:5] == "test_"}
    results = check_estimator(LeapTSForecaster, verbose=False, tests_to_run=sorted(checks)[part::4])
    assert len(results) > 100
    assert {name: result for name, result in results.items() if result != "PASSED"} == {}


def test_a_panel_is_forecast_by_one_model_like_the_estimator() -> None:
    forecast = LeapTSForecaster(**OPTIONS, **SMALL).fit(make_panel(), fh=FH).predict()
    expected = by_facade(make_frame()).predict().set_index(["unique_id", "ds"])
    np.testing.assert_allclose(forecast["y"].to_numpy(), expected["LeapTS"].to_numpy(), rtol=1e-6)
    assert forecast.index.names == ["unique_id", "ds"]
    assert [(str(name), timestamp) for name, timestamp in forecast.index] == [(str(n), s) for n, s in expected.index]


def test_several_variables_are_forecast_as_the_series_of_a_panel() -> None:
    wide = make_wide()
    forecast = LeapTSForecaster(**OPTIONS, **SMALL).fit(wide, fh=FH).predict()
    assert list(forecast.columns) == ["a", "b", "c"]
    expected = by_facade(make_frame()).predict()["LeapTS"].to_numpy().reshape(3, H)
    np.testing.assert_allclose(forecast.to_numpy().T, expected, rtol=1e-6)


def test_series_are_forecast_from_their_own_ends() -> None:
    lengths = {"a": 160, "b": 120, "c": 40}
    frame = make_panel(lengths)
    forecaster = LeapTSForecaster(**OPTIONS, **SMALL).fit(frame, fh=[2, 5])
    forecast = forecaster.predict()
    for name, length in lengths.items():
        ends = pd.date_range("2024-01-01", periods=length + 5)[[length + 1, length + 4]]
        assert list(forecast.loc[name].index) == list(ends)


def test_absolute_and_relative_horizons_give_the_same_forecast() -> None:
    series = make_wide()["a"]
    ahead = pd.date_range(series.index[-1], periods=H + 1, freq="D")[1:]
    relative = LeapTSForecaster(**OPTIONS, **SMALL).fit(series, fh=FH).predict()
    absolute = LeapTSForecaster(**OPTIONS, **SMALL).fit(series, fh=ForecastingHorizon(ahead, is_relative=False))
    pd.testing.assert_series_equal(absolute.predict(), relative)


def test_intervals_equal_those_of_the_estimator() -> None:
    forecaster = LeapTSForecaster(**OPTIONS, **SMALL, val_size=40).fit(make_panel(), fh=FH)
    assert forecaster.intervals_from_ == "held-out windows"
    intervals = forecaster.predict_interval(coverage=[0.8])
    expected = by_facade(make_frame(), val_size=40).predict(level=[80])
    for side, name in (("lower", "lo"), ("upper", "hi")):
        np.testing.assert_allclose(intervals["y", 0.8, side], expected[f"LeapTS-{name}-80"], rtol=1e-6)


def test_a_short_series_has_intervals_from_training_windows() -> None:
    series = make_wide()["a"].iloc[:18]
    forecaster = LeapTSForecaster(max_steps=5, **SMALL).fit(series, fh=FH)
    assert forecaster.intervals_from_ == "training windows"
    quantiles = forecaster.predict_quantiles(alpha=[0.005, 0.1, 0.5, 0.9, 0.995]).to_numpy()
    assert (np.diff(quantiles, axis=1) > 0).all()
    np.testing.assert_allclose(quantiles[:, 2], forecaster.predict().to_numpy())


def test_an_update_without_training_forecasts_from_the_new_end_with_the_old_weights() -> None:
    frame = make_frame()
    panel = frame.set_index(["unique_id", "ds"])
    early = panel.groupby("unique_id").head(150)
    forecaster = LeapTSForecaster(**OPTIONS, **SMALL).fit(early, fh=FH)
    forecaster.update(panel.groupby("unique_id").tail(10), update_params=False)
    expected = by_facade(early.reset_index()).predict(frame)
    np.testing.assert_allclose(forecaster.predict()["y"], expected["LeapTS"], rtol=1e-6)


def test_an_update_with_training_continues_from_the_current_weights() -> None:
    panel = make_panel()
    early, late = panel.groupby("unique_id").head(150), panel.groupby("unique_id").tail(10)
    # The few steps of a test may not improve the error; without this, training would stop early.
    options = {**OPTIONS, **SMALL, "update_steps": 150, "learning_rate": 5e-3, "training": {"patience": 0}}
    forecaster = LeapTSForecaster(**options).fit(early, fh=FH)
    weights = forecaster.forecaster_.predictor_.model.head.weight.detach().clone()
    forecaster.update(late)
    assert not torch.equal(forecaster.forecaster_.predictor_.model.head.weight, weights)
    assert forecaster.forecaster_.report_.steps == 150
    assert list(forecaster.predict().loc["a"].index) == list(pd.date_range("2024-06-09", periods=H))


def test_an_update_calibrates_intervals_on_as_many_windows() -> None:
    panel = make_panel()
    early, late = panel.groupby("unique_id").head(150), panel.groupby("unique_id").tail(10)
    forecaster = LeapTSForecaster(**OPTIONS, **SMALL, val_size=40).fit(early, fh=FH)

    def windows() -> list[int]:
        calibration = forecaster.forecaster_.predictor_.calibration
        assert calibration is not None
        counts: list[int] = calibration.windows.tolist()
        return counts

    before = windows()
    forecaster.update(late)
    assert windows() == before


def test_an_update_with_held_out_windows_calibrates_intervals_on_them() -> None:
    series = make_wide()["a"]
    forecaster = LeapTSForecaster(**OPTIONS, **SMALL).fit(series.iloc[: 2 * H], fh=FH)
    assert forecaster.intervals_from_ == "training windows"
    forecaster.update(series.iloc[2 * H :])
    assert forecaster.intervals_from_ == "held-out windows"


def test_a_horizon_inside_the_data_is_refused() -> None:
    series = make_wide()["a"]
    early, late = series.iloc[:-H], series.iloc[-H:]
    fh = ForecastingHorizon(late.index, is_relative=False)
    forecaster = LeapTSForecaster(**OPTIONS, **SMALL).fit(early, fh=fh)
    forecaster.update(late.iloc[:2], update_params=False)
    with pytest.raises((ConfigError, NotImplementedError), match=r"fit again with this fh|in-sample"):
        forecaster.predict()


def test_instances_keep_their_forecasts_after_an_update_sorts_them() -> None:
    frame = make_frame({"b": 160, "a": 160})
    frame.loc[frame["unique_id"] == "b", "y"] += 1000
    panel = frame.set_index(["unique_id", "ds"])
    known, new = panel[panel.groupby("unique_id").cumcount() < 150], panel[panel.groupby("unique_id").cumcount() >= 150]
    multivariate = {"mixing": {"kind": "mlp"}, "series_embedding": True, "hidden_size": 8}
    forecaster = LeapTSForecaster(**OPTIONS, model=multivariate).fit(known, fh=FH)
    forecaster.update(new, update_params=False)
    forecast = forecaster.predict()["y"].groupby(level=0).mean()
    assert forecast["b"] > 900 > forecast["a"]
    upper = forecaster.predict_interval(coverage=0.5)[("y", 0.5, "upper")].groupby(level=0).mean()
    assert upper["b"] > 900 > upper["a"]


def test_categories_without_a_series_are_ignored() -> None:
    frame = make_frame()
    frame["unique_id"] = pd.Categorical(frame["unique_id"], categories=["a", "b", "c", "nobody"])
    forecaster = LeapTSForecaster(**OPTIONS, **SMALL).fit(frame.set_index(["unique_id", "ds"]), fh=FH)
    assert len(forecaster.predict()) == 3 * H


def test_timestamps_without_a_frequency_are_refused_before_the_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    days = pd.date_range("2024-01-01", periods=41)
    series = pd.Series(np.sin(np.arange(40.0)), index=days.delete(20))
    monkeypatch.setattr(leapts.LeapTS, "fit", lambda *_: pytest.fail("it was fitted"))
    with pytest.raises(DataError, match=r"the series have no frequency.*asfreq"):
        LeapTSForecaster(input_size=6, max_steps=2).fit(series, fh=[1, 3])
    panel = pd.concat({"a": pd.Series(np.arange(41.0), index=days), "b": series}, names=["name", "day"])
    with pytest.raises(DataError, match=r"instance 'b' have no frequency"):
        LeapTSForecaster(input_size=6, max_steps=2).fit(panel.to_frame("y"), fh=[1, 3])


def test_missing_periods_are_refused() -> None:
    y = pd.Series(np.arange(60.0), index=pd.period_range("2020-01", periods=60, freq="M"), name="y")
    with pytest.raises(DataError, match="the series has no value for 2022-03"):
        LeapTSForecaster(**OPTIONS, **SMALL).fit(y.drop(y.index[26:32]), fh=FH)
    both = pd.concat({"a": y, "b": y.drop(y.index[26:32])}, names=["shop", "month"]).to_frame()
    with pytest.raises(DataError, match="instance 'b' has no value for 2022-03"):
        LeapTSForecaster(**OPTIONS, **SMALL).fit(both, fh=FH)
