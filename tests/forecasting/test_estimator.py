"""The forecaster as people use it."""

from itertools import accumulate
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch

from leapts import ConfigError, DataError, LeapTS, NotFittedError, TrainingError
from leapts.forecasting import held_out
from leapts.training.distillation import STUDENT_LENGTH
from leapts.training.loop import TrainingStep
from tests.forecasting.frames import LOOKBACK, MULTIVARIATE, UNIVARIATE, H, make_forecaster, make_frame

BOTH = pytest.mark.parametrize("kind", [MULTIVARIATE, UNIVARIATE], ids=["multivariate", "univariate"])


@pytest.fixture(scope="module", params=[MULTIVARIATE, UNIVARIATE], ids=["multivariate", "univariate"])
def fitted(request: pytest.FixtureRequest) -> LeapTS:
    return make_forecaster(**request.param).fit(make_frame())


@pytest.fixture(scope="module")
def univariate() -> LeapTS:
    return make_forecaster(**UNIVARIATE).fit(make_frame())


def test_a_forecast_has_a_row_for_each_series_and_step(fitted: LeapTS) -> None:
    forecast = fitted.predict()
    assert list(forecast.columns) == ["unique_id", "ds", "LeapTS"]
    assert forecast.groupby("unique_id", sort=False).size().to_dict() == {"a": H, "b": H, "c": H}
    expected = pd.date_range("2024-06-09", periods=H)
    assert (forecast["ds"].to_numpy().reshape(3, H) == expected.to_numpy()).all()
    assert np.isfinite(forecast["LeapTS"]).all()


def test_forecasts_are_in_the_units_of_the_data(fitted: LeapTS) -> None:
    means = fitted.predict().groupby("unique_id")["LeapTS"].mean()
    np.testing.assert_allclose(means[["a", "b", "c"]], [10, 20, 30], rtol=0.2)


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_a_frame_of_the_kind_that_came_in_comes_out(kind: str) -> None:
    convert: dict[str, Any] = {"pandas": lambda x: x, "polars": pl.from_pandas, "pyarrow": pa.Table.from_pandas}
    frame = convert[kind](make_frame())
    model = make_forecaster(**UNIVARIATE).fit(frame)
    forecast, trace = model.predict(level=[80], return_trace=True)
    cv = model.cross_validation(frame)
    assert type(forecast) is type(trace.to_frame()) is type(cv) is type(frame)


def test_a_path_and_a_wide_frame_give_the_forecast_of_the_long_frame(tmp_path: Path) -> None:
    long = make_frame()
    wide = long.pivot(index="ds", columns="unique_id", values="y").reset_index()
    wide.to_csv(tmp_path / "wide.csv", index=False)
    expected = make_forecaster(**MULTIVARIATE).fit(long).predict()
    from_file = make_forecaster(**MULTIVARIATE).fit(tmp_path / "wide.csv").predict()
    np.testing.assert_array_equal(from_file["LeapTS"], expected["LeapTS"])
    assert list(from_file["unique_id"]) == list(expected["unique_id"])


def test_shuffled_rows_give_the_same_bits() -> None:
    frame = make_frame()
    shuffled = frame.sample(frac=1, random_state=0)
    ours, theirs = (make_forecaster(**UNIVARIATE).fit(data).predict(level=[80]) for data in (shuffled, frame))
    pd.testing.assert_frame_equal(ours, theirs)


def test_fit_starts_fresh_every_time(fitted: LeapTS) -> None:
    model = LeapTS(**fitted.get_params())
    first = model.fit(make_frame()).predict()
    again = model.fit(make_frame()).predict()
    pd.testing.assert_frame_equal(first, again)


def test_predict_changes_nothing(fitted: LeapTS) -> None:
    before = fitted.predict(level=[80])
    fitted.predict(make_frame(seed=9))
    fitted.cross_validation(make_frame())
    pd.testing.assert_frame_equal(fitted.predict(level=[80]), before)


def test_new_history_is_forecast_without_refitting(fitted: LeapTS) -> None:
    longer = make_frame({"a": 170, "b": 170, "c": 170})
    forecast = fitted.predict(longer)
    assert forecast["ds"].min() == pd.Timestamp("2024-01-01") + pd.Timedelta(days=170)
    np.testing.assert_array_equal(fitted.predict(make_frame())["LeapTS"], fitted.predict()["LeapTS"])


def test_only_the_look_back_matters(fitted: LeapTS) -> None:
    frame = make_frame()
    tail = frame.groupby("unique_id").tail(LOOKBACK)
    np.testing.assert_array_equal(fitted.predict(tail)["LeapTS"], fitted.predict()["LeapTS"])


def test_unseen_series_are_forecast_by_a_model_that_keeps_series_apart(univariate: LeapTS) -> None:
    new = make_frame({"x": 40, "a": 40})
    forecast = univariate.predict(new).set_index("unique_id")["LeapTS"]
    assert 5 < forecast["x"].mean() < 15


@pytest.mark.parametrize("kind", [MULTIVARIATE, {"model": {**UNIVARIATE["model"], "normalization": "none"}}])
def test_a_number_and_the_text_that_spells_it_name_one_series(kind: dict[str, Any], tmp_path: Path) -> None:
    texts = make_frame({"10": 160, "2": 160, "1": 160})
    numbers = texts.assign(unique_id=texts["unique_id"].astype(int))
    texts.to_csv(tmp_path / "texts.csv", index=False)
    for known, given in ((tmp_path / "texts.csv", numbers), (numbers, tmp_path / "texts.csv")):
        model = make_forecaster(**kind, val_size=60).fit(known)
        expected = model.predict(known, level=[80])
        forecast = model.predict(given, level=[80])
        assert forecast["unique_id"].dtype != expected["unique_id"].dtype  # names come back as they were given
        pd.testing.assert_frame_equal(forecast.drop(columns="unique_id"), expected.drop(columns="unique_id"))
        calibrated = model.calibrate(known).predict(level=[80])
        pd.testing.assert_frame_equal(model.calibrate(given).predict(level=[80]), calibrated)


def test_a_model_that_mixes_series_names_the_ones_it_misses() -> None:
    model = make_forecaster(**MULTIVARIATE).fit(make_frame())
    with pytest.raises(DataError, match=r"forecasts 3 series together, and this data lacks 'b', 'c'"):
        model.predict(make_frame({"a": 40}))
    with pytest.raises(DataError, match="fitted without the series 'x'"):
        model.predict(make_frame({"a": 40, "b": 40, "c": 40, "x": 40}))


def test_a_model_that_mixes_series_puts_them_in_its_own_order() -> None:
    model = make_forecaster(**MULTIVARIATE).fit(make_frame())
    frame = make_frame()
    backwards = pd.concat([frame[frame["unique_id"] == name] for name in "cba"])
    np.testing.assert_array_equal(model.predict(backwards)["LeapTS"], model.predict()["LeapTS"])


def test_ragged_series_are_fitted_and_forecast_each_from_its_own_end() -> None:
    model = make_forecaster().fit(make_frame({"a": 90, "b": 160, "c": 120}))
    assert model.predictor_.config.mixing.kind == "none"
    starts = model.predict().groupby("unique_id")["ds"].min()
    assert starts["a"] == pd.Timestamp("2024-01-01") + pd.Timedelta(days=90)
    assert starts["b"] == pd.Timestamp("2024-01-01") + pd.Timedelta(days=160)


def test_a_constant_series_is_forecast_as_its_constant() -> None:
    frame = make_frame()
    frame.loc[frame["unique_id"] == "b", "y"] = 7.0
    forecast = make_forecaster(**UNIVARIATE).fit(frame).predict().set_index("unique_id")["LeapTS"]
    np.testing.assert_allclose(forecast["b"], 7.0, atol=0.05)


def test_a_short_series_is_padded_by_a_mask_or_refused_by_name_when_asked() -> None:
    frame = make_frame({"a": 160, "tiny": 9})
    with pytest.raises(DataError, match=r"series 'tiny' has 9 values, but one window \(12 \+ 6 steps.*needs"):
        make_forecaster(pad_short=False).fit(frame)
    model = make_forecaster().fit(frame)
    assert model.predictor_.config.mask
    assert np.isfinite(model.predict()["LeapTS"]).all()
    assert not make_forecaster().fit(make_frame({"a": 160, "b": 160})).predictor_.config.mask


def test_a_padded_series_is_forecast_from_its_own_values_alone() -> None:
    model = make_forecaster().fit(make_frame({"a": 160, "tiny": 9}))
    history = np.sin(np.arange(5.0))
    levels = [model.predictor_.predict(model.predictor_.windows_from_arrays(["x"], [history + up])) for up in (0, 1e6)]
    np.testing.assert_allclose(levels[0].values, levels[1].values - 1e6, atol=1e-3)


def test_intervals_nest_around_the_forecast(fitted: LeapTS) -> None:
    forecast = fitted.predict(level=[95, 80])
    assert list(forecast.columns[3:]) == ["LeapTS-lo-95", "LeapTS-lo-80", "LeapTS-hi-80", "LeapTS-hi-95"]
    ordered = forecast[["LeapTS-lo-95", "LeapTS-lo-80", "LeapTS", "LeapTS-hi-80", "LeapTS-hi-95"]].to_numpy()
    assert (np.diff(ordered, axis=1) >= 0).all()


def test_series_with_windows_enough_have_intervals_of_their_own() -> None:
    frame = make_frame({"a": 400, "b": 400})
    noise = np.random.default_rng(0).normal(size=len(frame)) * np.where(frame["unique_id"] == "b", 3.0, 0.0)
    frame["y"] = frame["y"] + noise * (frame.groupby("unique_id").cumcount() >= 360)  # wild when it is held out
    model = make_forecaster(val_size=60, **UNIVARIATE).fit(frame)
    assert model.predictor_.calibration is not None
    assert len(model.predictor_.calibration.windows) == 3  # a, b, and all of them for unseen
    forecast = model.predict(level=[80])
    widths = (forecast["LeapTS-hi-80"] - forecast["LeapTS-lo-80"]).groupby(forecast["unique_id"]).mean()
    assert widths["b"] > 2 * widths["a"]
    stranger = model.predict(make_frame({"x": 60}), level=[80])
    assert (stranger["LeapTS-hi-80"] > stranger["LeapTS"]).all()


def test_quantiles_are_the_bounds_of_intervals(fitted: LeapTS) -> None:
    by_level, by_quantile = fitted.predict(level=[80]), fitted.predict(quantiles=[0.1, 0.9])
    np.testing.assert_array_equal(by_quantile["LeapTS-lo-80"], by_level["LeapTS-lo-80"])
    np.testing.assert_array_equal(by_quantile["LeapTS-hi-80"], by_level["LeapTS-hi-80"])
    with pytest.raises(ConfigError, match="level or quantiles, not both"):
        fitted.predict(level=[80], quantiles=[0.1])


def test_intervals_of_a_point_forecast_need_windows_held_out() -> None:
    model = make_forecaster(val_size=0, loss="huber", **UNIVARIATE).fit(make_frame())
    with pytest.raises(ConfigError, match=r"no windows were held out.*calibrate\(df\)"):
        model.predict(level=[80])
    model.calibrate(make_frame(seed=5))
    assert model.predict(level=[80])["LeapTS-hi-80"].notna().all()


def test_learned_quantiles_need_no_windows_held_out() -> None:
    forecast = make_forecaster(val_size=0, **UNIVARIATE).fit(make_frame()).predict(level=[80])
    assert (forecast["LeapTS-lo-80"] < forecast["LeapTS"]).all()
    assert (forecast["LeapTS"] < forecast["LeapTS-hi-80"]).all()


def test_calibrating_on_wilder_data_widens_the_intervals_of_point_forecasts(fitted: LeapTS) -> None:
    wild = make_frame(seed=3)
    wild["y"] += np.random.default_rng(0).normal(size=len(wild)) * 10
    model = LeapTS(**fitted.get_params()).set_params(loss="huber").fit(make_frame())
    before = model.predict(level=[80])
    after = model.calibrate(wild).predict(level=[80])
    np.testing.assert_array_equal(after["LeapTS"], before["LeapTS"])
    assert (after["LeapTS-hi-80"] > before["LeapTS-hi-80"]).all()


def test_calibrated_quantiles_cover_later_data_of_the_same_kind(fitted: LeapTS) -> None:
    """Learned quantiles widen with the history; calibrated on wild data, they cover wild data."""
    wild = make_frame({"a": 460, "b": 460, "c": 460}, seed=3)
    wild["y"] += np.random.default_rng(0).normal(size=len(wild)) * 10
    model = LeapTS(**fitted.get_params()).fit(make_frame())
    before = model.predict()
    model.calibrate(wild.groupby("unique_id").head(300))
    np.testing.assert_array_equal(model.predict()["LeapTS"], before["LeapTS"])
    inside = []
    for end in range(330, 460, H):
        known, ahead = wild.groupby("unique_id").head(end), wild.groupby("unique_id").head(end + H)
        forecast = model.predict(known, level=[80]).merge(ahead, on=["unique_id", "ds"])
        inside += forecast["y"].between(forecast["LeapTS-lo-80"], forecast["LeapTS-hi-80"]).tolist()
    assert np.mean(inside) == pytest.approx(0.8, abs=0.08)


def test_the_trace_has_a_row_for_each_leap_and_they_tile_the_horizon(fitted: LeapTS) -> None:
    forecast, trace = fitted.predict(return_trace=True)
    assert list(trace.columns) == [
        *("unique_id", "cutoff", "leap", "start", "end", "scale", "length"),
        *("p_short", "p_mid", "p_long", "control", "temporal"),
    ]
    np.testing.assert_array_equal(forecast["LeapTS"], fitted.predict()["LeapTS"])
    for _, leaps in trace.groupby("unique_id"):
        steps = [step for start, end in zip(leaps["start"], leaps["end"], strict=True) for step in range(start, end)]
        assert steps == list(range(H))
        assert list(leaps["leap"]) == list(range(len(leaps)))
    assert (trace["cutoff"] == pd.Timestamp("2024-06-08")).all()
    assert set(trace["scale"]) <= {"short", "mid", "long"}
    np.testing.assert_allclose(trace[["p_short", "p_mid", "p_long"]].sum(axis=1), 1, rtol=1e-5)
    assert (trace[["control", "temporal"]] >= 0).all(axis=None)


def test_without_a_scheduling_branch_there_is_no_trace() -> None:
    model = make_forecaster(model={"scheduling": {"kind": "none"}}).fit(make_frame())
    assert np.isfinite(model.predict()["LeapTS"]).all()
    with pytest.raises(ConfigError, match="no scheduling branch"):
        model.predict(return_trace=True)


def test_cross_validation_forecasts_each_window_from_what_came_before(fitted: LeapTS) -> None:
    frame = make_frame()
    cv = fitted.cross_validation(frame, n_windows=3, step_size=4, level=[80])
    assert list(cv.columns) == ["unique_id", "ds", "cutoff", "y", "LeapTS", "LeapTS-lo-80", "LeapTS-hi-80"]
    assert len(cv) == 3 * 3 * H
    last = frame["ds"].max()
    cutoffs = sorted(cv["cutoff"].unique())
    assert cutoffs == [last - pd.Timedelta(days=H + 8), last - pd.Timedelta(days=H + 4), last - pd.Timedelta(days=H)]
    assert (cv["ds"] > cv["cutoff"]).all()
    merged = cv.merge(frame, on=["unique_id", "ds"], suffixes=("", "_true"))
    np.testing.assert_array_equal(merged["y"], merged["y_true"])


def test_cross_validation_reports_the_coverage_reached(fitted: LeapTS) -> None:
    cv, reached = fitted.cross_validation(make_frame(), n_windows=4, level=[80, 50], return_coverage=True)
    inside = (cv["LeapTS-lo-80"] <= cv["y"]) & (cv["y"] <= cv["LeapTS-hi-80"])
    assert list(reached) == [50, 80]
    assert reached[80] == pytest.approx(inside.mean())
    assert 0 < reached[50] <= reached[80] <= 1


def test_cross_validation_never_looks_ahead() -> None:
    frame = make_frame()
    model = make_forecaster(**UNIVARIATE)
    changed = frame.copy()
    tail = changed.groupby("unique_id").tail(H).index
    changed.loc[tail, "y"] = 1e6
    honest, blinded = (model.cross_validation(data)["LeapTS"] for data in (frame, changed))
    np.testing.assert_array_equal(honest, blinded)


def test_refitting_uses_the_windows_in_between() -> None:
    model, frame = make_forecaster(**UNIVARIATE), make_frame()
    once = model.cross_validation(frame, n_windows=2)
    anew = model.cross_validation(frame, n_windows=2, refit=True)
    first = once["cutoff"] == once["cutoff"].min()
    np.testing.assert_array_equal(once["LeapTS"][first], anew["LeapTS"][first])
    assert not np.array_equal(once["LeapTS"][~first], anew["LeapTS"][~first])


def test_a_distilled_model_is_one_model_fitted_after_its_teachers(tmp_path: Path) -> None:
    heard: list[int] = []
    distilled = make_forecaster(training={"distill_from": 2}, **UNIVARIATE)
    distilled.fit(make_frame(), progress=lambda step: heard.append(step.max_steps), checkpoint_dir=tmp_path / "state")
    plain = make_forecaster(**UNIVARIATE).fit(make_frame())
    steps = plain.predictor_.training.max_steps
    assert set(heard) == {(2 + STUDENT_LENGTH) * steps}
    assert sorted(path.parent.name for path in (tmp_path / "state" / "parts").rglob("*.safetensors")) == [
        "teacher-1",
        "teacher-2",
    ]
    forecast, trace = distilled.predict(return_trace=True)
    assert not forecast["LeapTS"].equals(plain.predict()["LeapTS"])
    assert len(trace) >= len(forecast["unique_id"].unique())
    again = make_forecaster(training={"distill_from": 2}, **UNIVARIATE)
    again.fit(make_frame(), checkpoint_dir=tmp_path / "state", resume=True)
    assert again.predict().equals(forecast)
    distilled.save(tmp_path / "model")
    assert LeapTS.load(tmp_path / "model").predict().equals(forecast)


def test_update_goes_on_from_the_present_weights() -> None:
    model = make_forecaster(**UNIVARIATE).fit(make_frame())
    longer = make_frame({"a": 200, "b": 200, "c": 200})
    before = model.predict(longer)
    weights = model.predictor_.model.head.weight.detach().clone()
    model.update(longer, max_steps=20)
    moved = float((model.predictor_.model.head.weight.detach() - weights).abs().max())
    assert 0 < moved < 0.1
    assert model.predict()["ds"].min() == before["ds"].min()


def test_diverged_training_leaves_a_model_that_forecasts() -> None:
    model = make_forecaster(learning_rate=1e30, training={"gradient_clip": 1e30}, **UNIVARIATE)
    with pytest.raises(TrainingError, match="try a learning_rate below"):
        model.fit(make_frame())
    assert np.isfinite(model.predict()["LeapTS"]).all()


def test_before_fitting_there_is_nothing_to_ask_for() -> None:
    with pytest.raises(NotFittedError, match="call fit first"):
        LeapTS(3).predict()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: LeapTS(0).fit(make_frame()), "h=0: must be at least 1"),
        (
            lambda: make_forecaster(model={"hidden": 3}).fit(make_frame()),
            "hidden: there is no such option; did you mean hidden_size?",
        ),
        (lambda: make_forecaster(learning_rate=-1).fit(make_frame()), "learning_rate=-1: must be greater than 0"),
        (lambda: make_forecaster().fit(make_frame(), resume=True), "resume=True needs checkpoint_dir"),
        (lambda: make_forecaster().cross_validation(make_frame(), n_windows=0), "n_windows=0"),
        (
            lambda: make_forecaster().cross_validation(make_frame(), n_windows=cast("int", "2")),
            "n_windows='2' is not a",
        ),
        (
            lambda: make_forecaster().cross_validation(make_frame(), step_size=cast("int", 1.5)),
            "step_size=1.5 is not a",
        ),
        (lambda: LeapTS(3).set_params(hh=4), "no option 'hh'"),
    ],
)
def test_wrong_options_are_refused_by_name(call: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        call()


def test_only_the_horizon_is_needed_and_auto_config_is_listed() -> None:
    model = LeapTS(h=H, max_steps=20).fit(make_frame())
    chosen = {one.option: one for one in model.auto_config_}
    from_data = {"seasons", "val_size", "input_size", "hidden_size", "normalization", "mixing", "batch_size"}
    assert set(chosen) == from_data | {"linear_path", "combine", "support"}
    assert chosen["input_size"].value == model.predictor_.config.input_size == 28
    assert all(one.reason for one in model.auto_config_)


def test_options_can_be_read_changed_and_passed_on() -> None:
    model = make_forecaster(freq="D", **MULTIVARIATE)
    twin = LeapTS(**model.get_params())
    assert twin.get_params() == model.get_params()
    assert twin.set_params(h=9).h == 9
    assert "not fitted" in repr(twin)


def test_other_column_names_come_back() -> None:
    frame = make_frame().rename(columns={"unique_id": "shop", "ds": "day", "y": "sales"})
    model = make_forecaster(id_col="shop", time_col="day", target_col="sales", **UNIVARIATE).fit(frame)
    assert list(model.predict().columns) == ["shop", "day", "LeapTS"]
    assert list(model.cross_validation(frame).columns) == ["shop", "day", "cutoff", "sales", "LeapTS"]


def test_another_frequency_is_refused(fitted: LeapTS) -> None:
    hourly = make_frame()
    hourly["ds"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(hourly.groupby("unique_id").cumcount(), unit="h")
    with pytest.raises(DataError, match=r"freq='D' does not fit series 'a'.*this frequency") as refused:
        fitted.predict(hourly)
    assert "pass freq" not in str(refused.value)  # which a forecast cannot take
    weekly = make_frame()
    weekly["ds"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(weekly.groupby("unique_id").cumcount() * 7, unit="D")
    with pytest.raises(DataError, match=r"missing at freq='D'.*add them, .*this frequency"):
        fitted.predict(weekly)
    numbered = make_frame()
    numbered["ds"] = numbered.groupby("unique_id").cumcount()
    with pytest.raises(DataError, match=r"does not fit a time column of integer steps"):
        fitted.predict(numbered)
    other = LeapTS(**fitted.get_params()).read(hourly)
    with pytest.raises(DataError, match=r"fitted at freq='D', but this data has freq='h'"):
        fitted.predict(other)


def test_a_fitted_model_proposes_what_can_be_done_about_it(fitted: LeapTS) -> None:
    """It reads as it was fitted: a forecast takes neither `fill` nor `duplicates`."""
    frame = make_frame()
    broken = {
        "gap": frame.drop(index=50),
        "missing": frame.assign(y=frame["y"].where(frame.index != 50)),
        "repeated": pd.concat([frame, frame.iloc[50:51]]),
    }
    for data in broken.values():
        with pytest.raises(DataError, match="fit the model with") as refused:
            fitted.predict(data)
        assert "pass " not in str(refused.value)


def test_new_history_need_not_show_the_frequency_again() -> None:
    frame = make_frame()
    frame["ds"] = frame.groupby("unique_id").cumcount().map(dict(enumerate(pd.bdate_range("2024-01-01", periods=160))))
    model = make_forecaster(input_size=4, **UNIVARIATE).fit(frame)
    assert model.predictor_.tail.freq == "B"
    week = frame.groupby("unique_id").tail(4)
    np.testing.assert_array_equal(model.predict(week)["LeapTS"], model.predict()["LeapTS"])


@pytest.mark.parametrize("alias", ["y", "ds", "unique_id", "cutoff"])
def test_an_alias_cannot_take_another_columns_place(alias: str) -> None:
    wide = make_frame().pivot(index="ds", columns="unique_id", values="y").reset_index(names="date")
    with pytest.raises(ConfigError, match="alias='date' is the name of another column"):
        make_forecaster(alias="date").fit(wide)  # found by its usual name
    with pytest.raises(ConfigError, match="is the name of another column"):
        make_forecaster(alias=alias).fit(make_frame())


def test_changed_options_wait_for_the_next_fit(univariate: LeapTS) -> None:
    model = LeapTS(**univariate.get_params()).fit(make_frame())
    before = model.predict()
    pd.testing.assert_frame_equal(model.set_params(h=3).predict(), before)
    assert len(model.fit(make_frame()).predict()) == 9


def test_parts_of_the_model_may_be_given_by_kind_alone() -> None:
    model = make_forecaster(model={"mixing": "none", "state": "rnn", "scheduling": "flat"}).fit(make_frame())
    assert (model.predictor_.config.mixing.kind, model.predictor_.config.state.kind) == ("none", "rnn")
    with pytest.raises(ConfigError, match=r"input_size=12 and input_size=7 in model="):
        make_forecaster(model={"input_size": 7}).fit(make_frame())


@pytest.mark.parametrize("val_size", [-20, -1, 1, H - 1])
def test_held_out_steps_must_hold_a_window(val_size: int) -> None:
    with pytest.raises(ConfigError, match=rf"val_size={val_size}: must be at least"):
        make_forecaster(val_size=val_size, pad_short=True).fit(make_frame())


def test_a_back_test_does_not_interpolate_towards_what_it_hides() -> None:
    frame = make_frame()
    place = frame.groupby("unique_id").cumcount()
    frame.loc[(place >= 160 - H - 3) & (place < 160 - H), "y"] = np.nan
    changed = frame.copy()
    changed.loc[place >= 160 - H, "y"] = 1e6
    model = make_forecaster(fill="interpolate", **UNIVARIATE)
    honest, *blinded = (
        model.cross_validation(data)["LeapTS"] for data in (frame, changed, model.read(frame), model.read(changed))
    )
    for forecast in blinded:
        np.testing.assert_array_equal(honest, forecast)


def test_a_back_test_refuses_a_level_that_cannot_be_before_it_fits() -> None:
    with pytest.raises(ConfigError, match="level 120 is not between"):
        make_forecaster(**UNIVARIATE).cross_validation(
            make_frame(), level=[120], progress=lambda _: pytest.fail("fitted")
        )


def test_quantiles_that_were_reckoned_have_the_columns_of_those_that_were_written(fitted: LeapTS) -> None:
    written = fitted.predict(quantiles=[0.1, 0.2, 0.3, 0.5, 0.8])
    for kind in (np.float64, np.float32):
        reckoned = fitted.predict(quantiles=list(np.linspace(0.1, 0.9, 9).astype(kind)[[0, 1, 2, 4, 7]]))
        pd.testing.assert_frame_equal(reckoned, written)


def test_what_is_held_out_has_no_part_in_scaling_and_grouping() -> None:
    frame = make_frame()
    wild = frame.copy()
    wild.loc[wild.groupby("unique_id").cumcount() >= 150, "y"] *= 50
    options: dict[str, Any] = {"val_size": 10, "model": {"state": {"kind": "cde", "clusters": 2}, "hidden_size": 8}}
    calm, shaken = (make_forecaster(**options).fit(data).predictor_ for data in (frame, wild))
    assert torch.equal(calm.scaler.mean, shaken.scaler.mean)
    assert torch.equal(calm.scaler.std, shaken.scaler.std)
    assert calm.clusters == shaken.clusters


def test_intervals_are_measured_on_the_held_out_windows() -> None:
    model = make_forecaster(val_size=10, loss="huber", **UNIVARIATE).fit(make_frame())
    fitted = model.predictor_
    assert fitted.calibration is not None
    panel = model.read(make_frame())
    errors = []
    for back in range(5):  # the windows of 6 steps within the last 10
        known = panel.head(-(H + back))
        actual = panel.tail(H + back).head(H).values.view(3, H)
        error = (actual - fitted.predict(fitted.windows(known)).values) / fitted.scaler.std[:, None]
        errors += [(one, 0.25 ** (back / 4)) for one in error.flatten().tolist()]
    # The steps share 15 windows; the latest weighs 1, the oldest a quarter.
    needed = 0.9 * (sum(weight for _, weight in errors) + 1)
    for level in (0.1, 0.9):
        ordered = sorted(errors, reverse=level < 0.5)
        passed = accumulate(weight for _, weight in ordered)
        value = next(value for (value, _), weight in zip(ordered, passed, strict=True) if weight >= needed)
        offsets = fitted.calibration.offsets[0, :, fitted.calibration.levels.index(level)]
        assert offsets.tolist() == pytest.approx([value] * H, abs=1e-4)


def test_values_out_of_all_proportion_are_refused_by_name(univariate: LeapTS) -> None:
    frame = make_frame()
    frame.loc[frame["unique_id"] == "b", "y"] *= 1e25
    with pytest.raises(DataError, match=r"series 'b' holds .*e\+26, which is 1e\+15 standard deviations"):
        univariate.predict(frame)


def test_a_known_series_may_move_to_a_level_far_away(fitted: LeapTS) -> None:
    frame = make_frame()
    moved = frame.assign(y=frame["y"] + 1e8)
    np.testing.assert_allclose(fitted.predict(moved)["LeapTS"] - 1e8, fitted.predict(frame)["LeapTS"], atol=1e-5)


def test_intervals_are_as_wide_at_a_level_far_away(univariate: LeapTS) -> None:
    frame = make_frame()
    widths = []
    for level in (0.0, 1e8):
        model = LeapTS(**univariate.get_params())
        model._keep(univariate.predictor_)
        moved = frame.assign(y=frame["y"] + level)
        forecast = model.calibrate(moved).predict(moved, level=[80])
        widths.append(forecast["LeapTS-hi-80"] - forecast["LeapTS-lo-80"])
    np.testing.assert_allclose(widths[1], widths[0], rtol=1e-4)


def test_windows_to_calibrate_by_are_of_every_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every eighth window of hourly data would tell of three hours alone, and of the loud one never."""
    monkeypatch.setattr(held_out, "_MAX_CALIBRATION_ROWS", 60)
    timestamps = pd.date_range("2024-01-01", periods=700, freq="h")
    noise = np.random.default_rng(0).normal(size=700) * np.where(timestamps.hour == 3, 10.0, 0.1)
    model = make_forecaster(h=1, val_size=480, loss="huber", **UNIVARIATE).fit(
        pd.DataFrame({"unique_id": "a", "ds": timestamps, "y": noise})
    )
    calibration = model.predictor_.calibration
    assert calibration is not None
    quiet = calibration.offsets[..., calibration.levels.index(0.75)].abs().item()
    assert calibration.offsets.abs().max().item() > 5 * quiet


@pytest.mark.parametrize(
    "options",
    [
        {"max_steps": 3.0},
        {"batch_size": np.int64(8)},
        {"learning_rate": "0.001"},
        {"random_seed": 1.0},
        {"pad_short": 1},
        {"freq": np.str_("D")},
        {"model": {"hidden_size": np.int64(8), "mixing": "none"}},
    ],
)
def test_a_number_of_another_kind_is_that_number(options: dict[str, Any], tmp_path: Path) -> None:
    given = {"max_steps": 3, **UNIVARIATE, **options}
    model = make_forecaster(**given).fit(make_frame())
    model.save(tmp_path / "model")
    assert LeapTS.load(tmp_path / "model").predict().equals(model.predict())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"h": 7.5}, r"h=7\.5: must be a whole number"),
        ({"h": "x"}, "h='x': must be a whole number"),
        ({"model": 3}, "model=3: must be a table"),
        ({"model": {"mixing": True}}, "mixing=True: must be a table"),
        ({"input_size": -8}, "input_size=-8: must be at least 1"),
        ({"random_seed": 2**70}, f"random_seed={2**70}: must be less than"),
    ],
)
def test_an_option_that_cannot_be_is_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make_forecaster(**options).fit(make_frame())


@pytest.mark.parametrize(("length", "val_size"), [(160, 500), (12, 6)])
def test_too_much_held_out_is_said_to_be(length: int, val_size: int) -> None:
    with pytest.raises(DataError, match=rf"has {length} values, but val_size={val_size} .* hold out less"):
        make_forecaster(val_size=val_size, input_size=None).fit(make_frame({"a": length}))


def test_levels_come_as_a_list_of_any_kind(fitted: LeapTS) -> None:
    some: Any = np.array([50])
    single: Any = 50
    half: Any = 0.5
    pd.testing.assert_frame_equal(fitted.predict(level=some), fitted.predict(level=[50]))
    with pytest.raises(ConfigError, match=r"level=50 is a single number; give a list: level=\[50\]"):
        fitted.predict(level=single)
    with pytest.raises(ConfigError, match=r"quantiles=0.5 is a single number"):
        fitted.predict(quantiles=half)


@pytest.mark.parametrize(("option", "column"), [("id_col", "unique_id"), ("time_col", "ds"), ("target_col", "y")])
def test_a_column_named_as_the_cutoffs_is_refused_by_a_back_test(option: str, column: str) -> None:
    with pytest.raises(ConfigError, match="'cutoff'"):
        make_forecaster(**{option: "cutoff"}).cross_validation(make_frame().rename(columns={column: "cutoff"}))


@pytest.mark.parametrize("alias", ["series", "stamps"])
def test_a_back_test_has_no_other_names_of_its_own(alias: str) -> None:
    frame = make_forecaster(alias=alias, **UNIVARIATE).cross_validation(make_frame())
    assert list(frame.columns) == ["unique_id", "ds", "cutoff", "y", alias]


@BOTH
@pytest.mark.usefixtures("doubles")
def test_the_default_type_of_the_program_does_not_matter(kind: dict[str, Any]) -> None:
    model = make_forecaster(val_size=10, **kind).fit(make_frame())
    assert np.isfinite(model.predict(level=[50])["LeapTS-lo-50"]).all()


def test_updates_are_fifths_of_the_first_fit_and_never_for_the_worse() -> None:
    model = make_forecaster(max_steps=100, **UNIVARIATE).fit(make_frame())
    for _ in range(3):
        events: list[TrainingStep] = []
        model.update(make_frame(), progress=events.append)
        assert {event.max_steps for event in events} == {20}
    with pytest.raises(ConfigError, match="max_steps"):
        model.update(make_frame(), max_steps=0)
    validations = dict(model.report_.validations)
    best = model.report_.best_validation
    assert best is not None
    assert all(best <= score for score in validations.values())


@pytest.mark.parametrize("val_size", [None, 60])
def test_an_update_leaves_intervals_of_as_many_windows_as_a_fit(val_size: int | None) -> None:
    model = make_forecaster(val_size=val_size, **UNIVARIATE).fit(make_frame({"a": 400, "b": 400}))
    longer = make_frame({"a": 410, "b": 410})
    fresh = make_forecaster(val_size=val_size, **UNIVARIATE).fit(longer)
    model.update(longer, max_steps=1)
    assert model.predictor_.calibration is not None
    assert fresh.predictor_.calibration is not None
    assert model.predictor_.calibration.windows.tolist() == fresh.predictor_.calibration.windows.tolist()
    assert [one for one in model.auto_config_ if one.option == "val_size"] == [
        one for one in fresh.auto_config_ if one.option == "val_size"
    ]
    model.predict(level=[95])


@pytest.mark.parametrize(("room", "held_out"), [(H, H), (H - 1, 0), (20, 20), (60, 60)])
def test_an_update_holds_out_what_its_shortest_series_leaves_room_for(room: int, held_out: int) -> None:
    model = make_forecaster(val_size=60, pad_short=False, **UNIVARIATE).fit(make_frame({"a": 400, "b": 400}))
    model.update(make_frame({"a": 400, "b": LOOKBACK + H + room}), max_steps=1)
    chosen = {one.option: one.value for one in model.auto_config_}
    assert chosen.get("val_size", 60) == held_out
    assert (model.report_.best_validation is not None) == (held_out > 0)


def test_an_update_with_padding_needs_no_look_back_beside_what_it_holds_out() -> None:
    model = make_forecaster(val_size=20, pad_short=True, **UNIVARIATE).fit(make_frame({"a": 400, "b": 400}))
    model.update(make_frame({"a": 400, "b": H + 1 + 9}), max_steps=1)
    assert {one.option: one.value for one in model.auto_config_}["val_size"] == 9


def test_an_update_refuses_to_hold_out_less_than_a_window() -> None:
    model = make_forecaster(**UNIVARIATE).fit(make_frame()).set_params(val_size=H - 1)
    with pytest.raises(ConfigError, match=f"val_size={H - 1}: must be at least the horizon {H}"):
        model.update(make_frame(), max_steps=1)


@pytest.mark.parametrize("wide", [False, True])
def test_calibrating_does_not_depend_on_the_order_of_the_series(wide: bool) -> None:
    frame = make_frame({"calm": 300, "wild": 300})
    frame.loc[frame["unique_id"] == "wild", "y"] += np.random.default_rng(1).normal(size=300) * 5
    model = make_forecaster(**UNIVARIATE).fit(frame)
    columns = frame.pivot(index="ds", columns="unique_id", values="y").reset_index()
    other = columns[["ds", "wild", "calm"]] if wide else columns[["ds", "calm", "wild"]]
    expected = model.calibrate(frame).predict(level=[80])
    pd.testing.assert_frame_equal(model.calibrate(other).predict(level=[80]), expected)
    assert model.predictor_.calibration is not None
    assert len(model.predictor_.calibration.windows) == 3


def test_an_update_on_other_series_keeps_intervals_for_all_of_them_together() -> None:
    model = make_forecaster(val_size=60, **UNIVARIATE).fit(make_frame({"a": 400, "b": 400}))
    model.update(make_frame({"c": 19, "d": 19, "e": 19, "f": 19}), max_steps=1)
    forecast = model.predict(level=[80])
    assert (forecast["LeapTS-hi-80"] > forecast["LeapTS"]).all()
    assert model.predictor_.calibration is not None
    assert len(model.predictor_.calibration.windows) == 1


@pytest.mark.parametrize("options", [{"val_size": 0, "max_steps": 1}, {"training": {"val_check_steps": 1}}])
@pytest.mark.parametrize("schedule", ["hierarchical", "none"])
def test_divergence_is_caught_at_whatever_step_it_happens(options: dict[str, Any], schedule: str) -> None:
    given = {**options, "training": {"gradient_clip": 1e30, **options.get("training", {})}}
    model = make_forecaster(learning_rate=1e30, model={"mixing": "none", "scheduling": schedule}, **given)
    with pytest.raises(TrainingError, match="are kept; try a learning_rate below"):
        model.fit(make_frame())
    assert np.isfinite(model.predict()["LeapTS"]).all()


def test_numbers_of_numpy_are_numbers(tmp_path: Path) -> None:
    model = make_forecaster(h=np.int64(4), random_seed=np.int64(3), learning_rate=np.float64(1e-3), **UNIVARIATE)
    model.fit(make_frame()).save(tmp_path / "model")
    pd.testing.assert_frame_equal(LeapTS.load(tmp_path / "model").predict(), model.predict())


def test_clusters_are_found_from_the_training_series() -> None:
    model = make_forecaster(model={"state": {"kind": "cde", "clusters": 2}, "hidden_size": 8}).fit(make_frame())
    assert model.predictor_.clusters is not None
    assert set(model.predictor_.clusters) == {0, 1}
    assert np.isfinite(model.predict()["LeapTS"]).all()


def test_a_fitted_model_prints_what_was_chosen() -> None:
    model = make_forecaster(**UNIVARIATE)
    assert "not fitted" in repr(model)
    model.fit(make_frame())
    assert f"h={H}, input_size={LOOKBACK}, freq='D'" in repr(model)
    assert "3 series" in repr(model)
    report = model.report_
    assert report.naive_mae is not None
    assert f"validation MAE {report.best_validation:.3g} (scaled), seasonal naive {report.naive_mae:.3g}" in repr(model)
    for one in model.auto_config_:
        assert one.reason in str(model)
        assert one.option in model._repr_html_()


def test_the_naive_error_is_that_of_the_seasonal_naive_forecast_on_the_held_out_windows() -> None:
    frame = make_frame({"a": 160})
    model = make_forecaster(val_size=20, **UNIVARIATE).fit(frame)
    values = model.predictor_.scaler.transform(model.read(frame)).numpy()[-20 - LOOKBACK :]
    errors = []
    for start in range(len(values) - LOOKBACK - H + 1):
        history, target = values[start : start + LOOKBACK], values[start + LOOKBACK : start + LOOKBACK + H]
        errors.append(np.abs(history[-7:][np.arange(H) % 7] - target).mean())
    assert model.report_.naive_mae == pytest.approx(np.mean(errors), rel=1e-5)


def test_python_names_columns_that_are_not_used() -> None:
    frame = make_frame().assign(price=1.0, promotion="x")
    model = make_forecaster(**UNIVARIATE, max_steps=2)
    with pytest.warns(UserWarning, match="columns not used: 'price', 'promotion'"):
        model.fit(frame)
    with pytest.warns(UserWarning, match="columns not used"):
        model.predict(frame)
