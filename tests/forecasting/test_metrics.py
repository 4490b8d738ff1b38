import math
from collections.abc import Callable
from datetime import date, datetime
from typing import Any, cast

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from utilsforecast import losses

from leapts.errors import ConfigError, DataError
from leapts.forecasting.evaluation import MetricName, evaluate
from leapts.forecasting.metrics import (
    coverage,
    mae,
    mape,
    mase,
    mse,
    naive_scale,
    owa,
    pinball,
    rmse,
    scaled_quantile_loss,
    smape,
    weighted_quantile_loss,
    width,
)

ORACLES = {"mse": (losses.mse, 1), "mae": (losses.mae, 1), "rmse": (losses.rmse, 1), "smape": (losses.smape, 200)}
numbers = st.floats(-1e3, 1e3, allow_subnormal=False).map(lambda number: round(number, 3))
factors = st.floats(1e-3, 1e3)
KINDS = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}


def pairs(size: int = 6) -> st.SearchStrategy[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]]:
    values = st.lists(numbers, min_size=size, max_size=size).map(np.array)
    return st.tuples(values, values)


def rows(frame: Any) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """A result as (names, metric) -> figures."""
    wrapped = nw.from_native(frame, eager_only=True)
    keys = [name for name in wrapped.columns if name in ("unique_id", "store", "metric")]
    rest = [name for name in wrapped.columns if name not in keys]
    keyed, figures = wrapped.select(keys).rows(), wrapped.select(rest).rows()
    return dict(zip(keyed, figures, strict=True))


def history_and_future(seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Three ragged series with two models' forecasts of their last steps."""
    rng = np.random.default_rng(seed)
    past, future = [], []
    for name, length in {"b": 9, "a": 14, "c": 6}.items():
        steps = pd.date_range("2024-01-01", periods=length + 3, freq="D")
        frame = pd.DataFrame({"unique_id": name, "ds": steps, "y": rng.normal(10, 3, length + 3)})
        past.append(frame.iloc[:length])
        future.append(frame.iloc[length:])
    scored = pd.concat(future, ignore_index=True)
    for model in ("one", "two"):
        scored[model] = scored["y"] + rng.normal(size=len(scored))
    return pd.concat(past, ignore_index=True), scored


# Cases by hand


def test_metrics_by_hand() -> None:
    actual, forecast = [2.0, 4.0, -1.0, 5.0], [3.0, 4.0, 1.0, 1.0]
    assert mse(actual, forecast) == pytest.approx((1 + 0 + 4 + 16) / 4)
    assert mae(actual, forecast) == pytest.approx((1 + 0 + 2 + 4) / 4)
    assert rmse(actual, forecast) == pytest.approx(math.sqrt(21 / 4))
    assert smape(actual, forecast) == pytest.approx(200 / 4 * (1 / 5 + 0 + 2 / 2 + 4 / 6))
    assert mape(actual, forecast) == pytest.approx(100 / 4 * (1 / 2 + 0 + 2 + 4 / 5))


def test_mase_by_hand() -> None:
    scale = naive_scale([1.0, 3.0, 2.0, 7.0, 0.0, 10.0, 20.0, 40.0], [0, 5, 8], season=2)
    assert scale.tolist() == [(1 + 4 + 2) / 3, 30.0]
    assert mase([[1.0, 2.0], [5.0, 5.0]], [[2.0, 4.0], [5.0, 35.0]], scale) == pytest.approx((1.5 / (7 / 3) + 0.5) / 2)
    assert mase([1.0, 2.0], [2.0, 4.0], 3.0) == pytest.approx(0.5)


def test_owa_by_hand() -> None:
    assert owa(10.0, 1.5, 20.0, 1.0) == pytest.approx((0.5 + 1.5) / 2)
    assert owa(13.564, 1.912, 13.564, 1.912) == 1.0


@pytest.mark.parametrize("metric", [mse, mae, rmse, smape, mape])
def test_an_exact_forecast_scores_zero(metric: Any) -> None:
    assert metric([1.0, -2.0, 0.0], [1.0, -2.0, 0.0]) == 0


# Laws


@given(pairs())
def test_metrics_take_arrays_tensors_and_lists_alike(pair: tuple[Any, Any]) -> None:
    actual, forecast = pair
    for metric in (mse, mae, rmse, smape, mape):
        expected = metric(actual, forecast)
        assert metric(torch.tensor(actual), forecast.tolist()) == expected
        assert metric(actual.reshape(2, 3), torch.tensor(forecast).view(2, 3)) == pytest.approx(expected)


@given(pairs(), factors)
def test_percentages_and_scaled_errors_do_not_depend_on_units(pair: tuple[Any, Any], factor: float) -> None:
    actual, forecast = pair
    insample = np.array([1.0, 4.0, 2.0, 9.0])
    assert smape(actual * factor, forecast * factor) == pytest.approx(smape(actual, forecast))
    assert mape(actual * factor, forecast * factor) == pytest.approx(mape(actual, forecast))
    scale, scaled = (naive_scale(values, [0, 4], 1)[0] for values in (insample, insample * factor))
    assert mase(actual * factor, forecast * factor, scaled) == pytest.approx(mase(actual, forecast, scale))


@given(pairs(), factors, numbers)
def test_errors_grow_with_units_and_ignore_shifts(pair: tuple[Any, Any], factor: float, shift: float) -> None:
    actual, forecast = pair
    assert mae(actual * factor, forecast * factor) == pytest.approx(factor * mae(actual, forecast))
    assert mse(actual * factor, forecast * factor) == pytest.approx(factor**2 * mse(actual, forecast))
    assert rmse(actual + shift, forecast + shift) == pytest.approx(rmse(actual, forecast), abs=1e-9)
    assert mae(actual, forecast) <= rmse(actual, forecast) * (1 + 1e-12)


@given(pairs())
def test_smape_is_symmetric_and_bounded(pair: tuple[Any, Any]) -> None:
    actual, forecast = pair
    assert smape(actual, forecast) == smape(forecast, actual)
    assert 0 <= smape(actual, forecast) <= 200 + 1e-9


@given(st.lists(st.lists(numbers, max_size=8), min_size=1, max_size=6), st.integers(1, 5))
def test_scales_of_ragged_series_equal_a_naive_loop(series: list[list[float]], season: int) -> None:
    offsets = np.cumsum([0, *map(len, series)])
    values = np.array([value for one in series for value in one])
    expected = []
    for one in series:
        steps = [abs(late - early) for early, late in zip(one, one[season:], strict=False)]
        expected.append(sum(steps) / len(steps) if steps else 0.0)
    assert naive_scale(values, offsets, season) == pytest.approx(expected)
    assert naive_scale(torch.tensor(values), torch.tensor(offsets), season) == pytest.approx(expected)


@given(st.lists(st.lists(numbers, min_size=3, max_size=8), min_size=1, max_size=5))
def test_a_seasonal_naive_forecast_of_the_last_season_has_the_scale_as_error(series: list[list[float]]) -> None:
    for one in series:
        scale = naive_scale(one, [0, len(one)], 2)[0]
        assume(scale > 1e-3)
        assert mase(one[2:], one[:-2], scale) == pytest.approx(1)


# Where a denominator is zero


def test_smape_counts_zero_over_zero_as_exact() -> None:
    assert smape([0.0, 1.0], [0.0, 3.0]) == pytest.approx(200 * (0 + 2 / 4) / 2)
    assert smape([0.0], [5.0]) == 200


def test_mape_leaves_actual_zeros_out() -> None:
    assert mape([0.0, 2.0], [7.0, 3.0]) == pytest.approx(50)
    assert mape([0.0, 0.0], [1.0, 2.0]) == math.inf


@pytest.mark.parametrize("factor", [1e-300, 1.0, 1e300])
def test_rounding_is_no_scale(factor: float) -> None:
    noise, real = np.array([0.1 + 0.2, 0.3, 0.1 + 0.2]) * factor, np.array([1.0, 1.0 + 1e-9, 1.0]) * factor
    scale = naive_scale(np.concatenate([noise, real]), [0, 3, 6], 1)
    assert (scale > 0).tolist() == [False, True]


def test_a_series_without_scale_scores_infinity_unless_forecast_exactly() -> None:
    scale = naive_scale([5.0, 5.0, 5.0, 1.0], [0, 3, 4], 1)
    assert scale.tolist() == [0, 0]
    assert mase([[5.0], [1.0]], [[5.0], [1.0]], scale) == 0
    assert mase([[5.0], [1.0]], [[5.0], [2.0]], scale) == math.inf


# What is refused


@pytest.mark.parametrize("metric", [mse, mae, rmse, smape, mape])
def test_shapes_that_merely_broadcast_are_refused(metric: Any) -> None:
    with pytest.raises(DataError, match=r"actuals of shape \[3, 1\] and forecasts of shape \[3\]"):
        metric(np.ones((3, 1)), np.ones(3))
    with pytest.raises(DataError, match="nothing to score"):
        metric([], [])


def test_what_cannot_be_scaled_is_refused() -> None:
    with pytest.raises(DataError, match="one scale for each row"):
        mase(np.ones((3, 2)), np.ones((3, 2)), np.ones(2))
    with pytest.raises(DataError, match="negative or not a number"):
        mase(np.ones((2, 2)), np.ones((2, 2)), [1.0, np.nan])
    with pytest.raises(ConfigError, match="season=0"):
        naive_scale([1.0, 2.0], [0, 2], 0)
    with pytest.raises(DataError, match="do not cut 2 values"):
        naive_scale([1.0, 2.0], [0, 3], 1)
    for smape_of_naive2, mase_of_naive2 in ((0.0, 1.0), (1.0, 0.0), (1.0, np.inf), (np.nan, 1.0)):
        with pytest.raises(DataError, match="nothing is relative to that"):
            owa(1.0, 1.0, smape_of_naive2, mase_of_naive2)


@pytest.mark.parametrize("metric", [mse, mae, rmse, smape, mape, lambda y, f: mase(y, f, [1.0, 0.0])])
@pytest.mark.parametrize("unknown", [np.nan, np.inf])
def test_what_is_unknown_is_not_scored(metric: Callable[..., float], unknown: float) -> None:
    known, holed = np.ones((2, 2)), np.array([[1.0, 2.0], [unknown, 4.0]])
    with pytest.raises(DataError, match=r"an actual is missing or infinite, at \[1, 0\]"):
        metric(holed, known)
    with pytest.raises(DataError, match=r"a forecast is missing or infinite, at \[1, 0\]"):
        metric(known, holed)


# Frames


@pytest.mark.parametrize("kind", KINDS)
def test_frames_score_as_utilsforecast_does(kind: str) -> None:
    _, future = history_and_future()
    convert = KINDS[kind]
    columns = {name: future[name].to_numpy() for name in future.columns if name != "unique_id"}
    frame = convert({"unique_id": future["unique_id"].tolist(), **columns})
    result = evaluate(frame, ["one", "two"], metrics=["mse", "mae", "rmse", "smape", "mape"])
    assert type(result.series) is type(frame)
    assert type(result.overall) is type(frame)
    found = rows(result.series)
    assert [key[0] for key in found][:3] == ["b", "a", "c"]
    for name, (oracle, factor) in {**ORACLES, "mape": (losses.mape, 100)}.items():
        expected = oracle(future, ["one", "two"]).set_index("unique_id")
        for series in "abc":
            assert found[series, name] == pytest.approx(tuple(expected.loc[series] * factor))
        assert rows(result.overall)[name,] == pytest.approx((*(expected.mean() * factor), 0))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("whole", [False, True], ids=["history", "everything"])
def test_mase_on_frames_equals_utilsforecast_and_ignores_the_scored_rows(kind: str, whole: bool) -> None:
    past, future = history_and_future()
    expected = losses.mase(future, ["one"], 2, past).set_index("unique_id")["one"]
    if whole:
        past = pd.concat([future[past.columns].assign(y=np.nan), past])  # what is not looked at may be unknown
    past = past.sample(frac=1, random_state=1)
    convert = KINDS[kind]
    train, frame = (
        convert({name: part[name].tolist() if name == "unique_id" else part[name].to_numpy() for name in part.columns})
        for part in (past, future)
    )
    result = evaluate(frame, ["one"], metrics=["mase"], train=train, season=2)
    found = rows(result.series)
    for series in "abc":
        assert found[series, "mase"] == pytest.approx((expected[series],))


@given(pairs(12))
def test_frames_and_arrays_agree(pair: tuple[Any, Any]) -> None:
    actual, forecast = pair
    frame = pl.DataFrame({"unique_id": np.repeat(["x", "y", "z"], 4), "y": actual, "model": forecast})
    overall = rows(evaluate(frame, ["model"], metrics=["mse", "mae", "smape"]).overall)
    for name, metric in {"mse": mse, "mae": mae, "smape": smape}.items():
        assert overall[name,][0] == pytest.approx(metric(actual, forecast))


def test_every_series_weighs_the_same() -> None:
    frame = pd.DataFrame({"unique_id": ["x"] * 4 + ["y"], "y": [0.0] * 5, "model": [1.0] * 4 + [3.0]})
    overall = rows(evaluate(frame, ["model"], metrics=["mae", "rmse"]).overall)
    assert overall["mae",] == (2.0, 0)
    assert overall["rmse",] == (2.0, 0)


def test_series_without_scale_are_left_out_for_all_models_alike_and_counted() -> None:
    train = pd.DataFrame({"unique_id": ["x"] * 3 + ["flat"] * 3 + ["short"], "ds": [1, 2, 3, 1, 2, 3, 3],
                          "y": [1.0, 2.0, 4.0, 5.0, 5.0, 5.0, 8.0]})  # fmt: skip
    frame = pd.DataFrame({"unique_id": ["x", "flat", "short"], "ds": 4, "y": [4.0, 0.0, 0.0],
                          "exact": [4.0, 0.0, 0.0], "off": [7.0, 3.0, 3.0]})  # fmt: skip
    metrics: list[MetricName] = ["mase", "mape", "mae", "owa"]
    result = evaluate(frame, ["exact", "off"], metrics=metrics, train=train, season=1, baseline="off")
    overall, series = rows(result.overall), rows(result.series)
    assert overall["mase",] == (0.0, 2.0, 2)
    assert overall["mape",] == (0.0, 75.0, 2)
    assert overall["mae",] == (0.0, 3.0, 0)
    assert overall["owa",] == (0.0, 1.0, 2)
    assert series["flat", "mase"] == (0.0, math.inf)
    assert series["short", "mape"] == (math.inf, math.inf)


def test_nothing_to_measure_by_at_all_is_infinite_not_missing() -> None:
    frame = pd.DataFrame({"unique_id": ["x"], "ds": [2], "y": [0.0], "model": [1.0]})
    train = pd.DataFrame({"unique_id": ["x"], "ds": [1], "y": [1.0]})
    overall = rows(evaluate(frame, ["model"], metrics=["mape", "mase"], train=train, season=1).overall)
    assert overall == {("mape",): (math.inf, 1), ("mase",): (math.inf, 1)}


def test_owa_compares_overall_figures_with_the_baseline() -> None:
    past, future = history_and_future()
    result = evaluate(future, ["one", "two"], metrics=["owa", "smape", "mase"], train=past, season=1, baseline="two")
    overall = rows(result.overall)
    smapes, mases = overall["smape",], overall["mase",]
    assert overall["owa",] == pytest.approx((owa(smapes[0], mases[0], smapes[1], mases[1]), 1.0, 0))
    assert {metric for _, metric in rows(result.series)} == {"smape", "mase"}
    alone = evaluate(future, ["one"], metrics=["owa"], train=past, season=1, baseline="two")
    assert rows(alone.overall)["owa",][0] == overall["owa",][0]
    assert len(alone.series) == 0


def test_columns_may_have_other_names_and_types() -> None:
    third, fourth = date(2024, 1, 3), date(2024, 1, 4)
    frame = pd.DataFrame(
        {
            "store": pd.Categorical([7, 7, 9]),
            "day": [third, fourth, third],
            "sales": [1, 2, 3],
            "model": np.array([1, 3, 3], dtype=np.float32),
        }
    )
    days = pd.to_datetime(["2024-01-01", "2024-01-02", "2024-01-01", "2024-01-02"])
    train = pd.DataFrame({"store": [9, 7, 7, 9], "day": days, "sales": [1, 5, 1, 2]})
    result = evaluate(
        frame, ["model"], metrics=["mase"], train=train, season=1, id_col="store", time_col="day", target_col="sales"
    )
    assert rows(result.series) == {(7, "mase"): (0.125,), (9, "mase"): (0.0,)}


def test_all_windows_of_a_cross_validation_count_together() -> None:
    past, future = history_and_future()
    twice = pd.concat([future.assign(cutoff=1), future.assign(cutoff=2, one=future["y"] + 1)])
    found = rows(evaluate(twice, ["one"], metrics=["mae"], train=past, season=1).series)
    for series, part in future.groupby("unique_id"):
        assert found[series, "mae"][0] == pytest.approx((mae(part["y"], part["one"]) + 1) / 2)


FRAME = {"unique_id": ["x", "x"], "ds": [3, 4], "y": [1.0, 2.0], "model": [1.0, 1.0]}
TRAIN = {"unique_id": ["x", "x"], "ds": [1, 2], "y": [1.0, 2.0]}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metrics": ["mse", "crps"]}, "no metric 'crps'; there are mse, mae"),
        ({"metrics": []}, "metrics is empty"),
        ({"metrics": "mse"}, r"pass a list: metrics=\['mse'\]"),
        ({"metrics": ["mse", "mse"]}, "names 'mse' twice"),
        ({"metrics": ["mase"], "train": TRAIN}, "pass train= and season="),
        ({"metrics": ["mase"], "season": 1}, "pass train= and season="),
        ({"metrics": ["owa"], "train": TRAIN, "season": 1}, "pass baseline="),
        ({"metrics": ["mase"], "train": TRAIN, "season": 0}, "season=0"),
    ],
)
def test_options_that_cannot_work_are_named(options: dict[str, Any], message: str) -> None:
    options = {name: pd.DataFrame(value) if name == "train" else value for name, value in options.items()}
    with pytest.raises(ConfigError, match=message):
        evaluate(pd.DataFrame(FRAME), ["model"], **options)


@pytest.mark.parametrize(
    ("frame", "train", "message"),
    [
        ({"model": [1.0, None]}, {}, "column 'model' has 1 missing or infinite"),
        ({"y": [math.inf, 2.0]}, {}, "column 'y' has 1 missing or infinite"),
        ({"model": ["1", "2"]}, {}, "column 'model' holds .*, not numbers"),
        ({"unique_id": ["x", None]}, {}, "column 'unique_id' has 1 missing"),
        ({}, {"y": [1.0, None]}, "the training frame: column 'y' has 1 missing"),
        ({}, {"ds": [3, 4]}, "no row of 1 of 1 series, such as 'x', from before its first scored ds"),
        ({}, {"unique_id": ["z", "z"]}, "no row of 1 of 1 series, such as 'x'"),
        ({}, {"ds": [1, 1]}, "repeats 1 rows, such as one of series 'x'"),
        (
            {},
            {"ds": [datetime(2024, 1, 1), datetime(2024, 1, 2)]},
            "column 'ds'.* make both",
        ),
        ({"unique_id": [1, 1]}, {}, "no row of 1 of 1 series, such as 1"),
    ],
)
def test_data_that_cannot_be_scored_are_named(frame: dict[str, Any], train: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        evaluate(pl.DataFrame(FRAME | frame), ["model"], metrics=["mase"], train=pl.DataFrame(TRAIN | train), season=1)


def test_timestamps_with_and_without_a_timezone_do_not_compare() -> None:
    past, future = history_and_future()
    aware = future.assign(ds=future["ds"].dt.tz_localize("UTC"))
    with pytest.raises(DataError, match="both with a timezone, or none"):
        evaluate(aware, ["one"], metrics=["mase"], train=past, season=1)
    elsewhere = past.assign(ds=past["ds"].dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo"))
    one, other = (
        evaluate(frame, ["one"], metrics=["mase"], train=train, season=1).series
        for frame, train in ((aware, elsewhere), (future, past))
    )
    assert rows(one) == rows(other)


def test_missing_columns_reserved_names_empty_frames_and_lazy_frames_are_named() -> None:
    with pytest.raises(DataError, match="no column 'other'; it has 'unique_id', 'ds', 'y', 'model'"):
        evaluate(pd.DataFrame(FRAME), ["other"])
    with pytest.raises(ConfigError, match="a model cannot be called 'left_out'"):
        evaluate(pd.DataFrame(FRAME), ["left_out"])
    with pytest.raises(DataError, match="has no rows"):
        evaluate(pd.DataFrame(FRAME).head(0), ["model"])
    with pytest.raises(DataError, match="'LazyFrame'; pass a pandas, polars or pyarrow frame"):
        evaluate(cast("Any", pl.DataFrame(FRAME).lazy()), ["model"])


# Quantiles and intervals

LEVELS = (0.1, 0.3, 0.5, 0.9)


def quantile_frame(series: int = 3, h: int = 5) -> tuple[pd.DataFrame, np.ndarray[Any, Any], dict[float, Any]]:
    rng = np.random.default_rng(0)
    actual = rng.normal(size=(series, h)) * 3 + 5
    forecasts = {level: rng.normal(size=(series, h)) * 2 + 4 + 3 * level for level in LEVELS}
    frame = pd.DataFrame({"unique_id": np.repeat(np.arange(series), h), "ds": np.tile(np.arange(h), series) + 100})
    frame["y"] = actual.ravel()
    return frame.assign(**{f"q{level}": values.ravel() for level, values in forecasts.items()}), actual, forecasts


def test_pinball_and_its_means_are_those_of_utilsforecast() -> None:
    frame, actual, forecasts = quantile_frame()
    columns = {"model": [f"q{level}" for level in LEVELS]}
    for level, values in forecasts.items():
        theirs = losses.quantile_loss(frame, {"model": f"q{level}"}, level)["model"].mean()
        assert pinball(actual, values, level) == pytest.approx(theirs)
    crps = losses.scaled_crps(frame, columns, np.array(LEVELS))["model"]
    ours = [weighted_quantile_loss(actual[row], {q: v[row] for q, v in forecasts.items()}) for row in range(3)]
    assert ours == pytest.approx(crps.tolist())
    train = pd.DataFrame({"unique_id": np.repeat(np.arange(3), 9), "ds": np.tile(np.arange(9), 3)})
    train["y"] = np.random.default_rng(1).normal(size=27)
    scale = naive_scale(train["y"].to_numpy(), [0, 9, 18, 27], 2)
    theirs = losses.scaled_mqloss(frame, columns, np.array(LEVELS), 2, train)["model"].mean()
    assert scaled_quantile_loss(actual, forecasts, scale) == pytest.approx(theirs)


def test_weighted_quantile_loss_is_that_of_gluonts() -> None:
    """Its mean weighted sum quantile loss: 2 sum |(y - f) (1[y <= f] - q)| / sum |y|, averaged over quantiles."""
    _, actual, forecasts = quantile_frame()
    by_quantile = [
        2 * np.abs((actual - values) * ((actual <= values) - level)).sum() / np.abs(actual).sum()
        for level, values in forecasts.items()
    ]
    assert weighted_quantile_loss(actual, forecasts) == pytest.approx(np.mean(by_quantile))


def test_coverage_is_that_of_utilsforecast_and_width_the_mean_difference() -> None:
    frame, actual, _ = quantile_frame()
    lower, upper = actual - [[0, 1, -1, 2, 3]], actual + 0.5
    frame = frame.assign(**{"m-lo-80": lower.ravel(), "m-hi-80": upper.ravel()})
    assert coverage(actual, lower, upper) == pytest.approx(losses.coverage(frame, ["m"], 80)["m"].mean())
    assert coverage(actual, lower, upper) == pytest.approx(0.8)
    assert width(lower, upper) == pytest.approx(1.5)


def test_impossible_quantiles_are_refused() -> None:
    for level in (0.0, 1.0, 80.0):
        with pytest.raises(ConfigError, match="is not between 0 and 1"):
            pinball([1.0], [1.0], level)
    assert weighted_quantile_loss([0.0], {0.5: [0.0]}) == 0
    assert weighted_quantile_loss([0.0], {0.5: [1.0]}) == np.inf
