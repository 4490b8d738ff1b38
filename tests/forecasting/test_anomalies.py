"""Anomalies: valid p-values, rate control, no leakage, and planted anomalies that are found."""

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from leapts import LeapTS
from leapts.errors import ConfigError, DataError
from leapts.forecasting import anomalies
from leapts.forecasting.anomalies import conformal_p_values, leap_p_values, rejected
from leapts.forecasting.intervals import normal_scores_of
from leapts.forecasting.samples import _quantiles_at_scores, normal_scores
from tests.forecasting.frames import LOOKBACK, MULTIVARIATE, UNIVARIATE, H, make_forecaster, make_frame

some_scores = st.lists(st.integers(0, 6).map(float), max_size=30).map(np.array)


@given(scores=some_scores, reference=some_scores, limit=st.integers(1, 40))
def test_p_value_is_the_share_of_earlier_scores_at_least_as_large(
    scores: np.ndarray, reference: np.ndarray, limit: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(anomalies, "MAX_REFERENCE", limit)
        found = conformal_p_values(scores, reference)
    every = [*reference, *scores]
    for place, value in enumerate(scores):
        before = every[: len(reference) + place][-limit:]
        assert found[place] == (1 + sum(one >= value for one in before)) / (1 + len(before))


@pytest.mark.parametrize("rate", [0.01, 0.05, 0.2])
def test_exchangeable_scores_are_marked_at_the_rate(rate: float) -> None:
    random = np.random.default_rng(1)
    found = np.concatenate([conformal_p_values(random.normal(size=400), random.normal(size=99)) for _ in range(50)])
    marked = rejected(found, rate, None).mean()
    assert marked == pytest.approx(rate, abs=4 * (rate / len(found)) ** 0.5 + 1 / 200)
    tied = conformal_p_values(random.integers(0, 3, 5000).astype(float), np.empty(0))
    assert (tied <= rate).mean() <= rate


@given(st.lists(st.floats(1e-6, 1), min_size=1, max_size=40).map(np.array), st.sampled_from([0.01, 0.1, 0.5]))
def test_false_discoveries_are_controlled_as_by_scipy(p_values: np.ndarray, rate: float) -> None:
    expected = stats.false_discovery_control(p_values) <= rate
    close = np.isclose(stats.false_discovery_control(p_values), rate)
    assert (rejected(p_values, 0.01, rate) == expected)[~close].all()


def test_p_value_of_a_leap_compares_the_same_steps_of_earlier_windows() -> None:
    random = np.random.default_rng(2)
    scores, reference = random.random((5, 4)), random.random((3, 4))
    starts = np.zeros((5, 4), dtype=np.bool_)
    starts[:, 0], starts[::2, 1], starts[1::2, 3] = True, True, True
    found = leap_p_values(scores, starts, reference)
    for window in range(5):
        before = np.concatenate([reference, scores[:window]])
        for start, end in ((0, 1), (1, 4)) if window % 2 == 0 else ((0, 3), (3, 4)):
            means, own = before[:, start:end].mean(1), scores[window, start:end].mean()
            share = (1 + (means >= own).sum()) / (1 + len(before))
            assert found[window, start:end] == pytest.approx(share)


def test_normal_scores_invert_the_quantile_function() -> None:
    levels = (0.05, 0.3, 0.5, 0.9)
    quantiles = torch.rand(4, 3, 4, dtype=torch.float64).cumsum(-1) + normal_scores_of(levels)
    drawn = torch.linspace(-4, 4, 7, dtype=torch.float64).expand(4, 3, 7).contiguous()
    values = _quantiles_at_scores(quantiles, levels, drawn)
    again = [normal_scores(quantiles, values[..., place], levels) for place in range(7)]
    torch.testing.assert_close(torch.stack(again, -1), drawn)


def test_a_value_beside_a_forecast_that_is_sure_is_improbable() -> None:
    quantiles = torch.zeros(3, 3, dtype=torch.float64)
    scores = normal_scores(quantiles, torch.tensor([0.0, 1e-3, -1e-3]), (0.1, 0.5, 0.9))
    assert scores[0].abs() < 2
    assert scores[1] > 1e6
    assert scores[2] < -1e6


@pytest.fixture(scope="module", params=[UNIVARIATE, MULTIVARIATE, {}], ids=["univariate", "multivariate", "auto"])
def fitted(request: pytest.FixtureRequest) -> LeapTS:
    old = make_frame().groupby("unique_id", sort=False).head(120)
    return make_forecaster(**request.param, val_size=40).fit(old, progress=None)


def test_observations_after_the_fit_are_scored_by_one_step_forecasts(fitted: LeapTS) -> None:
    data = make_frame()
    found = fitted.detect(data)
    assert found.groupby("unique_id").size().tolist() == [40 // H * H] * 3
    merged = found.merge(data, on=["unique_id", "ds"], suffixes=("", "_given"))
    assert (merged["y"] == merged["y_given"]).all()
    row = found.iloc[7]
    before = data[data["ds"] < row["ds"]]
    alone = fitted.predict(before).set_index(["unique_id", "ds"])["LeapTS"]
    assert row["LeapTS"] == pytest.approx(alone[row["unique_id"], row["ds"]], rel=1e-5)
    assert found["p_value"].between(0, 1, inclusive="right").all()


def test_later_values_do_not_change_a_p_value(fitted: LeapTS) -> None:
    data = make_frame()
    changed = data.copy()
    late = changed.groupby("unique_id").cumcount() >= 142
    changed.loc[late, "y"] *= 2
    before, after = fitted.detect(data), fitted.detect(changed)
    same = before["ds"] < changed.loc[late, "ds"].min()
    assert 0 < same.sum() < len(before)
    columns = ["p_value", "p_value_ahead", "LeapTS"]
    pd.testing.assert_frame_equal(before.loc[same, columns], after.loc[same, columns])
    assert after.loc[~same, "p_value"].mean() < before.loc[~same, "p_value"].mean()


def test_leaps_cover_the_windows_and_share_a_p_value(fitted: LeapTS) -> None:
    found = fitted.detect(make_frame())
    by_leap = found.groupby("leap")
    assert (by_leap["p_value_leap"].nunique() == 1).all()
    assert (by_leap["leap_anomaly"].nunique() == 1).all()
    assert by_leap.size().max() <= H
    assert found["leap"].diff().dropna().isin([0, 1]).all()
    assert (by_leap["unique_id"].nunique() == 1).all()


def _planted(length: int) -> tuple[pd.DataFrame, int]:
    random, time = np.random.default_rng(4), np.arange(length)
    y = 20 + 5 * np.sin(2 * np.pi * time / 12) + random.normal(size=length)
    y[length - 30] += 15
    frame = pd.DataFrame({"unique_id": "s", "ds": time, "y": y})
    return frame, length - 30


def test_a_planted_spike_is_found_by_fitted_and_pretrained_models() -> None:
    data, place = _planted(600)
    models = [LeapTS(12, 36, max_steps=60, val_size=120).fit(data[:400], progress=None), LeapTS.pretrained(12)]
    for model in models:
        found = model.detect(data, alert_rate=0.02).set_index("ds")
        assert found.loc[place, "anomaly"]
        assert found.loc[place, "p_value"] == found.loc[:place, "p_value"].min()
        assert found["anomaly"].mean() < 0.06
        assert not model.detect(data, alert_rate=1e-6)["anomaly"].any()


def test_pretrained_model_scores_all_but_the_first_horizon() -> None:
    data, _ = _planted(120)
    found = LeapTS.pretrained(10).detect(data)
    assert len(found) == 110
    first = found.iloc[0]
    assert (first["p_value"], first["p_value_ahead"], first["p_value_leap"]) == (1, 1, 1)
    assert type(LeapTS.pretrained(10, fill="ffill").fit(data).detect(data)) is pd.DataFrame


def test_held_out_windows_are_the_first_reference(fitted: LeapTS) -> None:
    calibration = fitted.predictor_.calibration
    assert calibration is not None
    assert calibration.scores is not None
    first = fitted.detect(make_frame()).groupby("unique_id").head(1)
    steps = (first["p_value"] * (len(calibration.scores) + 1)).to_numpy()
    np.testing.assert_allclose(steps, steps.round())


def test_what_cannot_be_scored_is_refused(fitted: LeapTS) -> None:
    with pytest.raises(ConfigError, match=r"alert_rate=1\.5"):
        fitted.detect(make_frame(), alert_rate=1.5)
    with pytest.raises(ConfigError, match=r"fdr=0"):
        fitted.detect(make_frame(), fdr=0)
    with pytest.raises(DataError, match="no series has 6 values"):
        fitted.detect(make_frame({"a": 120, "b": 120, "c": 120}))
    point = make_forecaster(loss="huber", val_size=0, input_size=LOOKBACK).fit(make_frame()[:120], progress=None)
    with pytest.raises(ConfigError, match="val_size"):
        point.detect(make_frame())


def test_a_leap_over_a_score_that_was_cut_off_ranks_above_all_others() -> None:
    reference = np.ones((9, 3))
    reference[0, 1] = np.inf  # a held-out score beyond the limit
    starts = np.array([[True, False, True]])
    found = leap_p_values(np.array([[3.0, 3.0, 3.0]]), starts, reference)
    np.testing.assert_allclose(found, [[2 / 10, 2 / 10, 1 / 10]])
