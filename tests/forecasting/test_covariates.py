"""Laws of covariates: what they do to a forecast, and what they must not change."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from leapts import LeapTS
from leapts.errors import ConfigError, DataError

H, STEPS = 7, 250
PROMOTION, NORTH = 12.0, 5.0


def make_frame(*, series: int = 4, seed: int = 0) -> pd.DataFrame:
    """A week, promotions of known effect, a curve of temperature, and a group effect; the last week has no target."""
    rng, frames = np.random.default_rng(seed), []
    for number in range(series):
        step = np.arange(STEPS + H)
        promotion = (rng.random(len(step)) < 0.2).astype(float)
        temperature = 15 + 8 * np.sin(2 * np.pi * step / 90) + rng.normal(0, 3, len(step))
        region = "north" if number % 2 else "south"
        y = 40 + 5 * np.sin(2 * np.pi * step / 7) + PROMOTION * promotion - 0.05 * (temperature - 18) ** 2
        y = y + (NORTH if region == "north" else 0) + rng.normal(0, 0.5, len(step))
        y[-H:] = np.nan
        columns = {"unique_id": f"s{number}", "ds": pd.date_range("2024-01-01", periods=len(step)), "y": y}
        frames.append(pd.DataFrame({**columns, "promotion": promotion, "temperature": temperature, "region": region}))
    return pd.concat(frames, ignore_index=True)


FRAME = make_frame()
KNOWN = FRAME.dropna(subset="y")
FUTURE = FRAME[FRAME["y"].isna()].drop(columns="y")


def make_model(**options: Any) -> LeapTS:
    return LeapTS(H, **{"max_steps": 200, "stat_exog_list": ["region"], "model": {"hidden_size": 16}, **options})


@pytest.fixture(scope="module")
def fitted() -> LeapTS:
    return make_model().fit(FRAME, progress=None)


def values(forecast: pd.DataFrame) -> "np.ndarray[Any, Any]":
    found: np.ndarray[Any, Any] = forecast["LeapTS"].to_numpy()
    return found


def test_columns_that_continue_are_known_in_advance(fitted: LeapTS) -> None:
    (found,) = (one for one in fitted.auto_config_ if one.option == "futr_exog_list")
    assert found.value == "promotion, temperature"
    assert "continue" in found.reason


def test_effects_of_known_covariates_are_recovered(fitted: LeapTS) -> None:
    lift = values(fitted.predict(futr_df=FUTURE.assign(promotion=1.0)))
    lift = lift - values(fitted.predict(futr_df=FUTURE.assign(promotion=0.0)))
    assert lift.mean() == pytest.approx(PROMOTION, rel=0.1)
    at = {t: values(fitted.predict(futr_df=FUTURE.assign(temperature=float(t)))).mean() for t in (8, 18, 23)}
    assert at[18] - at[8] == pytest.approx(0.05 * 100, rel=0.25)
    assert at[18] > at[23]


def test_a_promotion_lifts_the_steps_that_have_it_and_no_others(fitted: LeapTS) -> None:
    one_day = np.tile(np.arange(H) == 3, 4).astype(float)
    lift = values(fitted.predict(futr_df=FUTURE.assign(promotion=one_day)))
    lift = (lift - values(fitted.predict(futr_df=FUTURE.assign(promotion=0.0)))).reshape(4, H)
    assert lift[:, 3].mean() == pytest.approx(PROMOTION, rel=0.15)
    assert np.abs(np.delete(lift, 3, axis=1)).mean() < 0.1 * PROMOTION


def test_rows_without_a_target_equal_a_table_of_future_rows(fitted: LeapTS) -> None:
    from_rows = values(fitted.predict(FRAME))
    np.testing.assert_array_equal(values(fitted.predict()), from_rows)
    shuffled = FUTURE.sample(frac=1, random_state=0)
    np.testing.assert_array_equal(values(fitted.predict(KNOWN, futr_df=shuffled)), from_rows)


def test_the_order_and_units_of_columns_change_nothing() -> None:
    options: dict[str, Any] = {"max_steps": 20, "futr_exog_list": ["temperature", "promotion"]}
    expected = values(make_model(**options).fit(FRAME, progress=None).predict())
    columns = ["region", "temperature", "ds", "promotion", "unique_id", "y"]
    other = FRAME[columns].assign(temperature=FRAME["temperature"] * 1.8 + 32)
    options["futr_exog_list"] = ["promotion", "temperature"]
    found = values(make_model(**options).fit(other, progress=None).predict())
    np.testing.assert_allclose(found, expected, rtol=1e-3)


def test_categories_count_by_their_names() -> None:
    weather = np.where(FRAME["promotion"] > 0, "wet", "dry")
    frame = FRAME.drop(columns=["promotion", "temperature"]).assign(weather=weather)
    coded = frame.assign(weather=pd.Categorical(weather, categories=["unused", "wet", "dry"]))
    one, other = (make_model(max_steps=20).fit(some, progress=None).predict() for some in (frame, coded))
    pd.testing.assert_frame_equal(one, other)


def test_a_constant_covariate_changes_nothing() -> None:
    plain = KNOWN[["unique_id", "ds", "y"]]
    options: dict[str, Any] = {"max_steps": 20, "stat_exog_list": []}
    expected = make_model(**options).fit(plain, progress=None)
    model = make_model(**options, hist_exog_list=["one"]).fit(plain.assign(one=1.0), progress=None)
    pd.testing.assert_frame_equal(model.predict(), expected.predict())
    assert "covariates left out" in [one.option for one in model.auto_config_]


def test_an_unseen_category_is_forecast(fitted: LeapTS) -> None:
    elsewhere = pd.DataFrame({"unique_id": ["s0", "s1", "s2", "s3"], "region": ["east", "north", "south", "north"]})
    forecast = fitted.predict(static_df=elsewhere)
    assert np.isfinite(values(forecast)).all()
    np.testing.assert_array_equal(values(forecast)[H:], values(fitted.predict())[H:])


def test_static_covariates_from_a_table_of_their_own_equal_those_of_the_data() -> None:
    static = FRAME.groupby("unique_id", as_index=False)["region"].first()
    one = make_model(max_steps=20).fit(FRAME, progress=None)
    other = make_model(max_steps=20, stat_exog_list=[])
    other.fit(FRAME.drop(columns="region"), static_df=static, progress=None)
    pd.testing.assert_frame_equal(one.predict(), other.predict())
    # Fitted series keep theirs.
    pd.testing.assert_frame_equal(other.predict(FRAME.drop(columns="region")), other.predict())


def test_past_covariates_after_the_cutoff_are_not_seen() -> None:
    noise = np.random.default_rng(1).normal(size=len(FRAME))
    frame = FRAME.drop(columns=["promotion", "temperature"]).assign(sensor=noise)
    model = make_model(max_steps=20, hist_exog_list=["sensor"], futr_exog_list=[]).fit(frame.dropna(), progress=None)
    ahead = frame.assign(sensor=np.where(frame["y"].isna(), 1e6, noise))
    two = make_model(max_steps=20, hist_exog_list=["sensor"], futr_exog_list=["other"])
    two.fit(ahead.assign(other=np.arange(len(frame)) % 3), progress=None)
    before = values(two.predict())
    changed = ahead.assign(sensor=noise, other=np.arange(len(frame)) % 3)
    np.testing.assert_array_equal(values(two.predict(changed)), before)
    assert np.isfinite(values(model.predict())).all()


def test_save_and_load_keep_the_forecast(fitted: LeapTS, tmp_path: Path) -> None:
    fitted.save(tmp_path / "model")
    loaded = LeapTS.load(tmp_path / "model")
    asked: list[dict[str, Any]] = [{}, {"df": KNOWN, "futr_df": FUTURE}, {"futr_df": FUTURE.assign(promotion=1.0)}]
    for arguments in asked:
        pd.testing.assert_frame_equal(loaded.predict(**arguments, level=[80]), fitted.predict(**arguments, level=[80]))
    loaded.save(tmp_path / "again")
    first, second = (tmp_path / name / "model.safetensors" for name in ("model", "again"))
    assert first.read_bytes() == second.read_bytes()


def test_a_backtest_uses_the_covariates_of_its_windows() -> None:
    model = make_model(futr_exog_list=["promotion", "temperature"])
    frame = model.cross_validation(KNOWN, 2, progress=None)
    blind = make_model(futr_exog_list=[], stat_exog_list=[]).cross_validation(
        KNOWN[["unique_id", "ds", "y"]], 2, progress=None
    )
    error, blind_error = ((one["LeapTS"] - one["y"]).abs().mean() for one in (frame, blind))
    assert error < 0.5 * blind_error


def test_the_trace_says_what_each_leap_knew(fitted: LeapTS) -> None:
    _, trace = fitted.predict(return_trace=True)
    for row in trace.to_frame().to_dict("records"):
        own = FUTURE[FUTURE["unique_id"] == row["unique_id"]].iloc[row["start"] : row["end"]]
        assert row["known_promotion"] == pytest.approx(own["promotion"].mean())
        assert row["known_temperature"] == pytest.approx(own["temperature"].mean())


def test_an_update_and_a_resumed_fit_keep_the_covariates(tmp_path: Path) -> None:
    options: dict[str, Any] = {"max_steps": 40, "training": {"val_check_steps": 10}}
    whole = make_model(**options).fit(FRAME, progress=None)

    def stop(step: Any) -> None:
        if step.step == 25:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make_model(**options).fit(FRAME, progress=stop, checkpoint_dir=tmp_path)
    resumed = make_model(**options).fit(FRAME, progress=None, checkpoint_dir=tmp_path, resume=True)
    pd.testing.assert_frame_equal(resumed.predict(), whole.predict())
    updated = whole.update(FRAME, max_steps=5, progress=None).predict(futr_df=FUTURE)
    assert len(updated) == 4 * H


def test_polars_and_arrow_frames_give_the_same_forecast(fitted: LeapTS) -> None:
    pl = pytest.importorskip("polars")
    found = fitted.predict(pl.from_pandas(KNOWN), futr_df=pl.from_pandas(FUTURE))
    np.testing.assert_array_equal(found["LeapTS"].to_numpy(), values(fitted.predict()))


@pytest.mark.parametrize(
    ("future", "message"),
    [
        (FUTURE.iloc[:-1], "no row for series 's3' at 2024-09-13"),
        (FUTURE.drop(columns="promotion"), "has no column 'promotion'"),
        (FUTURE.assign(promotion="yes"), "holds text, unlike in the data"),
        (FUTURE.assign(promotion=np.nan), "no value of 'promotion'"),
        (FUTURE.assign(ds=np.arange(len(FUTURE))), "other timestamps"),
    ],
)
def test_future_rows_that_are_not_complete_are_refused(fitted: LeapTS, future: pd.DataFrame, message: str) -> None:
    with pytest.raises(DataError, match=message):
        fitted.predict(futr_df=future)


def test_missing_future_rows_are_named_with_the_cure(fitted: LeapTS) -> None:
    with pytest.raises(DataError, match=r"series 's0' has no row for 2024-09-07.*futr_df="):
        fitted.predict(KNOWN)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"futr_exog_list": ["promotions"]}, "did you mean 'promotion'"),
        ({"futr_exog_list": ["promotion"], "hist_exog_list": ["promotion"]}, "two lists"),
        ({"stat_exog_list": ["promotion"]}, "changes within a series"),
        ({"hist_exog_list": ["y"]}, "is read already"),
    ],
)
def test_wrong_names_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        make_model(**options).fit(KNOWN, progress=None)


def test_numbers_with_a_slip_are_refused_with_their_place() -> None:
    text = KNOWN["promotion"].astype(str).to_numpy(dtype=object)
    text[3] = "1,5"
    with pytest.raises(DataError, match=r"'promotion' has no number at row 3.*'1,5'"):
        make_model(futr_exog_list=["promotion"]).fit(KNOWN.assign(promotion=text), progress=None)


def test_a_series_without_static_row_is_refused() -> None:
    static = pd.DataFrame({"unique_id": ["s0", "s1"], "region": ["south", "north"]})
    with pytest.raises(DataError, match="no row for series 's2'"):
        make_model(stat_exog_list=[]).fit(FRAME.drop(columns="region"), static_df=static, progress=None)


def test_columns_that_are_not_named_are_not_used() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = make_model(max_steps=10, stat_exog_list=[]).fit(KNOWN, progress=None)
    assert "columns not used: 'promotion', 'temperature', 'region'" in [str(one.message) for one in caught]
    assert model.predictor_.covariates is None


def test_missing_values_of_a_covariate_are_known_as_such() -> None:
    rng = np.random.default_rng(2)
    known = FRAME["promotion"].where(rng.random(len(FRAME)) < 0.8)
    model = make_model(max_steps=20).fit(FRAME.assign(promotion=known), progress=None)
    assert np.isfinite(values(model.predict())).all()
    covariates = model.predictor_.tail.covariates
    assert covariates is not None
    assert bool(torch.isnan(covariates.values).any())


def test_a_wide_table_has_no_covariates() -> None:
    wide = KNOWN.pivot(index="ds", columns="unique_id", values="y").reset_index()
    with pytest.raises(DataError, match="long layout"):
        make_model(stat_exog_list=[], futr_exog_list=["s0"]).fit(wide, progress=None)


def test_the_option_of_other_libraries_is_explained() -> None:
    with pytest.raises(ConfigError, match="futr_df"):
        LeapTS(H).predict(X=FUTURE)  # type: ignore[call-overload]
