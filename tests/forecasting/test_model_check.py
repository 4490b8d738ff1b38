"""Evaluation on newer data: no leakage, the figures of a backtest, and verdicts by their rules."""

import json
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from utilsforecast.losses import mae as utils_mae

from leapts import LeapTS
from leapts.errors import ConfigError, DataError, NotFittedError
from leapts.forecasting.metrics import pinball
from leapts.forecasting.model_check import MAX_COVERAGE_GAP, MAX_GROWTH
from leapts.forecasting.rolling import Cutoffs
from tests.forecasting.frames import LOOKBACK, MULTIVARIATE, UNIVARIATE, H, make_forecaster, make_frame

OLD, NEW = 120, 40


def cut(frame: pd.DataFrame, steps: int) -> pd.DataFrame:
    return frame.groupby("unique_id", sort=False).head(steps).reset_index(drop=True)


@pytest.fixture(scope="module", params=[UNIVARIATE, MULTIVARIATE], ids=["univariate", "multivariate"])
def fitted(request: pytest.FixtureRequest) -> LeapTS:
    return make_forecaster(**request.param, val_size=24).fit(cut(make_frame(), OLD), progress=None)


def test_forecasts_are_those_of_predict_from_each_cutoff(fitted: LeapTS) -> None:
    data = make_frame()
    found = fitted.evaluate(data, level=[80])
    assert found.windows == 3 * (NEW // H)
    for cutoff, rows in found.frame.groupby("cutoff"):
        history = data[data["ds"] <= cutoff]
        alone = fitted.predict(history, level=[80])
        merged = rows.merge(alone, on=["unique_id", "ds"], suffixes=("", "_alone"))
        assert len(merged) == len(rows) == 3 * H
        for column in ("LeapTS", "LeapTS-lo-80", "LeapTS-hi-80"):
            np.testing.assert_allclose(merged[column], merged[f"{column}_alone"], rtol=1e-5)
        assert (rows["ds"] > cutoff).all()
        assert len(history) >= 3 * OLD


def test_later_values_do_not_change_a_forecast(fitted: LeapTS) -> None:
    data = make_frame()
    before = fitted.evaluate(data).frame
    changed = data.copy()
    late = changed.groupby("unique_id").cumcount() >= OLD + NEW // 2
    changed.loc[late, "y"] *= 3
    after = fitted.evaluate(changed).frame
    first_change = changed.loc[late, "ds"].min()
    same = before["cutoff"] < first_change
    assert 0 < same.sum() < len(before)
    columns = [name for name in before if name.startswith(("LeapTS", "Seasonal"))]
    pd.testing.assert_frame_equal(before.loc[same, columns], after.loc[same, columns])


def test_figures_are_those_of_the_frame(fitted: LeapTS) -> None:
    found = fitted.evaluate(make_frame(), level=[60, 90])
    frame = found.frame
    for name in ("LeapTS", "SeasonalNaive"):
        own = utils_mae(frame, [name])[name].mean()
        assert found.errors[name]["mae"] == pytest.approx(own)
    for level in (60, 90):
        inside = frame["y"].between(frame[f"LeapTS-lo-{level}"], frame[f"LeapTS-hi-{level}"]).mean()
        assert found.coverage[level] == pytest.approx(inside)
    tenths = [number / 10 for number in range(1, 10)]
    naive = np.mean([pinball(frame["y"], frame["SeasonalNaive"], share) for share in tenths])
    assert found.errors["SeasonalNaive"]["pinball"] == pytest.approx(naive)
    assert json.loads(json.dumps(found.to_dict()))["verdict"] == found.verdict
    assert "frame" not in found.to_dict()
    assert found.verdict in repr(found)


def test_seasonal_naive_repeats_the_week_before_the_cutoff(fitted: LeapTS) -> None:
    data = make_frame()
    values = data.set_index(["unique_id", "ds"])["y"]
    for row in fitted.evaluate(data).frame.itertuples():
        assert row.SeasonalNaive == values[row.unique_id, row.ds - pd.Timedelta(days=7)]


def test_newer_data_may_lack_the_history_of_the_fit(fitted: LeapTS) -> None:
    whole, late = make_frame(), make_frame().groupby("unique_id").tail(NEW)
    found = fitted.evaluate(late)
    expected = fitted.evaluate(whole, n_windows=(NEW - LOOKBACK) // H).frame
    pd.testing.assert_frame_equal(found.frame, expected)


def test_windows_of_unseen_series_start_after_one_look_back() -> None:
    model = make_forecaster(**UNIVARIATE).fit(cut(make_frame(), OLD), progress=None)
    other = make_frame({"new": 50, "short": H + 2}, seed=3)
    found = model.evaluate(other)
    assert set(found.frame["unique_id"]) == {"new"}
    assert found.windows == (50 - LOOKBACK) // H
    assert found.drift.level is None


def _waves(steps: int, seed: int, noise: float = 1.0, period: float = 7.0, start: int = 0) -> pd.DataFrame:
    frames = []
    for number in range(4):
        random, time = np.random.default_rng([seed, number]), start + np.arange(steps)
        y = 50 + 4 * np.sin(2 * np.pi * time / period) + noise * random.normal(size=steps)
        days = pd.date_range("2020-01-01", periods=start + steps)[start:]
        frames.append(pd.DataFrame({"unique_id": f"s{number}", "ds": days, "y": y}))
    return pd.concat(frames)


@pytest.fixture(scope="module")
def waves() -> LeapTS:
    return LeapTS(7, 28, max_steps=100, model={"mixing": {"kind": "none"}}).fit(_waves(400, 0), progress=None)


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        ({}, "still good"),
        ({"noise": 1.6}, "recalibrate"),
        ({"period": 10.6}, "fit again"),
        ({"noise": 5.0}, "fit again"),
    ],
    ids=["same", "noisier", "other season", "much noisier"],
)
@pytest.mark.parametrize("seed", range(1, 4))
def test_verdict_follows_what_changed(waves: LeapTS, change: dict[str, Any], verdict: str, seed: int) -> None:
    newer = pd.concat([_waves(400, 0), _waves(140, seed, start=400, **change)])
    assert waves.evaluate(newer).verdict == verdict


def test_a_calibration_cures_what_the_verdict_said(waves: LeapTS) -> None:
    newer = pd.concat([_waves(400, 0), _waves(300, 5, noise=1.6, start=400)])
    until = newer[newer["ds"] < newer["ds"].max() - pd.Timedelta(days=150)]
    params = waves.get_params()
    model = LeapTS(**params)
    model._keep(waves.predictor_)
    assert model.evaluate(until).verdict == "recalibrate"
    model.calibrate(until[until["ds"] >= pd.Timestamp("2021-01-20")])
    found = model.evaluate(newer, n_windows=20)
    assert found.verdict == "still good"
    assert max(abs(share - level / 100) for level, share in found.coverage.items()) < 2 * MAX_COVERAGE_GAP


def test_one_window_proves_nothing(waves: LeapTS) -> None:
    newer = pd.concat([_waves(400, 0), _waves(7, 1, noise=5.0, start=400)])
    one = newer[newer["unique_id"] == "s0"]
    found = waves.evaluate(one)
    assert found.windows == 1
    assert found.drift.growth is not None
    assert found.drift.growth > MAX_GROWTH
    assert found.verdict == "still good"


def test_level_and_spread_are_those_of_the_new_values(waves: LeapTS) -> None:
    newer = _waves(140, 1, start=400)
    newer["y"] = 50 + 3 * (newer["y"] - 50) + 10
    found = waves.evaluate(pd.concat([_waves(400, 0), newer])).drift
    assert found.level == pytest.approx(10 / 3.0, rel=0.15)
    assert found.spread == pytest.approx(3, rel=0.1)


def test_pretrained_model_is_evaluated_on_the_second_half() -> None:
    data = _waves(200, 1)
    found = LeapTS.pretrained(7).fit(data).evaluate(data)
    assert found.frame["cutoff"].min() >= data["ds"].min() + pd.Timedelta(days=99)
    assert found.drift.growth is None
    rolled = found.frame[found.frame["cutoff"] == found.frame["cutoff"].max()]
    alone = LeapTS.pretrained(7, support="real").predict(data[data["ds"] <= rolled["cutoff"].iloc[0]])
    np.testing.assert_allclose(rolled["LeapTS"], alone["LeapTS"], rtol=1e-4)


def test_point_forecasts_without_calibration_have_no_coverage() -> None:
    model = make_forecaster(loss="huber", val_size=0).fit(cut(make_frame(), OLD), progress=None)
    found = model.evaluate(make_frame())
    assert found.coverage == {}
    median = np.mean([pinball(found.frame["y"], found.frame["LeapTS"], share / 10) for share in range(1, 10)])
    assert found.errors["LeapTS"]["pinball"] == pytest.approx(median)


def test_what_cannot_be_evaluated_is_refused(fitted: LeapTS) -> None:
    with pytest.raises(DataError, match="6 values after the end of the fit's data"):
        fitted.evaluate(cut(make_frame(), OLD + H - 1))
    with pytest.raises(ConfigError, match="n_windows=0"):
        fitted.evaluate(make_frame(), n_windows=0)
    with pytest.raises(ConfigError, match=r"LeapTS\.evaluate has no option 'levels'; did you mean level"):
        fitted.evaluate(make_frame(), levels=[80])  # type: ignore[call-arg]
    with pytest.raises(NotFittedError):
        make_forecaster().evaluate(make_frame())


def test_cutoffs_count_back_from_the_last() -> None:
    import torch

    found = Cutoffs.every(4, torch.tensor([3, 9, 1]), torch.tensor([12, 8, 5]), limit=2)
    assert found.series.tolist() == [0, 0, 2, 2]
    assert found.steps.tolist() == [8, 12, 1, 5]
    assert math.prod(found.steps.shape) == len(found)
