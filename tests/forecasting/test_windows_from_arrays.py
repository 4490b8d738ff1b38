"""Forecasts from arrays equal those from frames, and refuse the same histories."""

import gc
import weakref
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd
import pytest

from leapts import ConfigError, DataError, LeapTS
from leapts.data.arrays import Floats, Name
from leapts.forecasting.forecast import Forecast, ForecastWindows
from tests.forecasting.frames import LOOKBACK, MULTIVARIATE, UNIVARIATE, H, make_forecaster, make_frame

LENGTHS = {"a": 160, "b": 160, "c": 160}


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return make_frame(LENGTHS)


@pytest.fixture(scope="module")
def multivariate(frame: pd.DataFrame) -> LeapTS:
    return make_forecaster(**MULTIVARIATE, val_size=60).fit(frame)


@pytest.fixture(scope="module")
def univariate(frame: pd.DataFrame) -> LeapTS:
    return make_forecaster(**UNIVARIATE, val_size=60, pad_short=False).fit(frame)


def _histories(frame: pd.DataFrame) -> dict[str, Floats]:
    return {str(name): rows["y"].to_numpy(np.float64) for name, rows in frame.groupby("unique_id", sort=False)}


def _windows(model: LeapTS, histories: Mapping[Any, Floats]) -> ForecastWindows:
    names: list[Name] = list(histories)
    return model.predictor_.windows_from_arrays(names, list(histories.values()), fill=model.fill)


def _forecast(model: LeapTS, histories: Mapping[Any, Floats], record: Any = "nothing") -> Forecast:
    return model.predictor_.predict(_windows(model, histories), record).select(list(histories))


@pytest.mark.parametrize("options", [MULTIVARIATE, UNIVARIATE])
@pytest.mark.parametrize("other", ["cafe\u0301", "caf\xe9\u200b"])
def test_names_that_look_the_same_name_one_series(options: dict[str, Any], other: str) -> None:
    model = make_forecaster(**options, val_size=60).fit(make_frame({"caf\xe9": 160, "tea": 160}))
    assert model.predictor_.places_of([other, "tea", "milk"]).tolist() == [0, 1, -1]
    histories = {other: np.arange(160.0), "tea": np.arange(160.0)}
    assert _windows(model, histories).panel.series == (other, "tea")
    with pytest.raises(DataError, match="given more than once"):
        _windows(model, {**histories, "caf\xe9": np.arange(160.0)})


@pytest.mark.parametrize("options", [MULTIVARIATE, UNIVARIATE])
def test_a_number_and_the_text_that_spells_it_name_one_series(options: dict[str, Any]) -> None:
    frame = make_frame({"1": 160, "2": 160})
    model = make_forecaster(**options, val_size=60).fit(frame)
    by_text = _histories(frame)
    by_number = {int(name): values for name, values in reversed(by_text.items())}
    found = [_forecast(model, histories).columns([80]) for histories in (by_text, by_number)]
    for column, values in found[0].items():
        np.testing.assert_allclose(found[1][column][::-1], values, rtol=1e-6)
    with pytest.raises(DataError, match="'1' is given more than once"):
        model.predictor_.windows_from_arrays(["1", 1], [by_text["1"], by_text["2"]])


def _by_arrays(model: LeapTS, histories: dict[str, Floats], **options: Any) -> pd.DataFrame:
    columns = _forecast(model, histories).columns(**options)
    names = np.repeat(list(histories), H)
    return pd.DataFrame({"unique_id": names, **{name: values.reshape(-1) for name, values in columns.items()}})


def _by_frames(model: LeapTS, frame: pd.DataFrame, order: list[str], **options: Any) -> pd.DataFrame:
    found = model.predict(frame, **options)
    in_order: pd.DataFrame = pd.concat([found[found["unique_id"] == name] for name in order], ignore_index=True)
    return in_order.drop(columns="ds")


@pytest.mark.parametrize("kind", ["multivariate", "univariate"])
@pytest.mark.parametrize("order", [["a", "b", "c"], ["c", "a", "b"]])
def test_arrays_and_frames_give_the_same_numbers(
    request: pytest.FixtureRequest, frame: pd.DataFrame, kind: str, order: list[str]
) -> None:
    model: LeapTS = request.getfixturevalue(kind)
    known = _histories(frame)
    found = _by_arrays(model, {name: known[name] for name in order}, level=[80, 95])
    expected = _by_frames(model, frame, order, level=[80, 95])
    pd.testing.assert_frame_equal(found, expected, check_dtype=False, rtol=1e-6)
    if order == ["a", "b", "c"]:
        assert np.array_equal(found["LeapTS"], expected["LeapTS"])


def test_quantiles_are_those_of_predict(univariate: LeapTS, frame: pd.DataFrame) -> None:
    found = _by_arrays(univariate, _histories(frame), quantiles=[0.1, 0.5, 0.9])
    expected = _by_frames(univariate, frame, ["a", "b", "c"], quantiles=[0.1, 0.5, 0.9])
    pd.testing.assert_frame_equal(found, expected, check_dtype=False, rtol=1e-9)


def test_an_unseen_series_is_scaled_by_its_own_history(univariate: LeapTS) -> None:
    unseen = make_frame({"b": 160, "new": 90}, seed=3)
    found = _by_arrays(univariate, _histories(unseen), level=[80])
    expected = _by_frames(univariate, unseen, ["b", "new"], level=[80])
    pd.testing.assert_frame_equal(found, expected, check_dtype=False, rtol=1e-9)


def test_requests_predicted_together_get_what_each_gets_alone(multivariate: LeapTS, univariate: LeapTS) -> None:
    for model in (multivariate, univariate):
        requests = [_windows(model, _histories(make_frame(LENGTHS, seed=seed))) for seed in range(5)]
        together = model.predictor_.predict_together(requests, "leaps")
        for request, shared in zip(requests, together, strict=True):
            alone = model.predictor_.predict(request, "leaps")
            np.testing.assert_allclose(shared.values, alone.values, rtol=1e-5)
            assert shared.trace is not None
            assert alone.trace is not None
            assert shared.trace.length.tolist() == alone.trace.length.tolist()


def test_the_trace_is_that_of_predict(multivariate: LeapTS, frame: pd.DataFrame) -> None:
    _, expected = multivariate.predict(frame, return_trace=True)
    histories = _histories(frame)
    order = ["c", "a", "b"]
    forecast = _forecast(multivariate, {name: histories[name] for name in order}, "leaps")
    assert forecast.trace is not None
    for row, name in enumerate(order):
        lengths = expected[expected["unique_id"] == name]["length"].tolist()
        assert forecast.trace.length[row][: len(lengths)].tolist() == lengths


def test_random_schedules_do_not_depend_on_other_requests(frame: pd.DataFrame) -> None:
    model = make_forecaster(model={"mixing": {"kind": "none"}, "scheduling": {"kind": "monte_carlo"}}).fit(frame)
    histories = _histories(frame)
    requests = [_windows(model, {name: histories[name]}) for name in ("a", "b")]
    together = model.predictor_.predict_together(requests)
    assert np.array_equal(together[1].values, model.predictor_.predict(requests[1]).values)


def test_short_histories_are_padded_where_the_model_pads(frame: pd.DataFrame) -> None:
    padding = make_forecaster(**UNIVARIATE, pad_short=True).fit(frame)
    short = make_frame({"a": 160, "new": LOOKBACK - 5})
    found = _by_arrays(padding, _histories(short))
    pd.testing.assert_frame_equal(found, _by_frames(padding, short, ["a", "new"]), check_dtype=False, rtol=1e-9)


def test_missing_values_are_filled_as_the_model_fills(frame: pd.DataFrame) -> None:
    for fill in ("ffill", "interpolate", 3.0):
        model = make_forecaster(**UNIVARIATE, fill=fill).fit(frame)
        holes = frame.copy()
        holes.loc[[0, 155, 159, 200], "y"] = np.nan
        found = _by_arrays(model, _histories(holes))
        pd.testing.assert_frame_equal(found, _by_frames(model, holes, ["a", "b", "c"]), check_dtype=False, rtol=1e-9)


Change = Callable[[dict[str, Floats]], dict[str, Floats]]


def _with(**series: list[float]) -> Change:
    return lambda known: {**known, **{name: np.array(values, dtype=np.float64) for name, values in series.items()}}


@pytest.mark.parametrize(
    ("kind", "change", "words"),
    [
        ("univariate", _with(a=[1.0] * 5), ["'a'", "5 values", "look-back of 12", "give a longer history"]),
        ("univariate", _with(a=[]), ["'a'", "no values"]),
        ("univariate", _with(b=[1.0] * 20 + [float("nan")]), ["'b'", "position 20", "fill"]),
        ("univariate", _with(b=[float("inf")] * 20), ["'b'", "position 0"]),
        ("univariate", _with(b=[1e300] * 20), ["'b'", "1e+300", "larger unit"]),
        ("univariate", _with(b=[1e29, 0.0] * 10), ["'b'", "1e+29", "deviations"]),
        ("univariate", _with(b=[*[0.0] * 19, 1e29]), ["'b'", "1e+29", "deviations"]),
        ("multivariate", lambda known: {"a": known["a"]}, ["3 series", "'b', 'c'"]),
        ("multivariate", _with(d=[1.0] * 20), ["'d'", "leave them out"]),
    ],
)
def test_what_cannot_be_used_is_refused_by_name(
    request: pytest.FixtureRequest, frame: pd.DataFrame, kind: str, change: Change, words: list[str]
) -> None:
    histories = change(_histories(frame))
    with pytest.raises(DataError) as error:
        _windows(request.getfixturevalue(kind), histories)
    for word in words:
        assert word in str(error.value)


def test_a_series_given_twice_is_refused(univariate: LeapTS) -> None:
    with pytest.raises(DataError, match="'a' is given more than once"):
        univariate.predictor_.windows_from_arrays(["a", "b", "a"], [np.ones(20)] * 3)


def test_point_forecasts_without_calibration_have_no_intervals(frame: pd.DataFrame) -> None:
    model = make_forecaster(**UNIVARIATE, val_size=0, loss="huber").fit(frame)
    with pytest.raises(ConfigError, match="calibrate"):
        _by_arrays(model, _histories(frame), level=[80])


def test_a_model_that_was_replaced_is_freed_with_its_inference_copy(frame: pd.DataFrame) -> None:
    model = make_forecaster(**UNIVARIATE).fit(frame)
    _forecast(model, _histories(frame))
    held = [weakref.ref(model.predictor_.model), weakref.ref(model.predictor_.inference_copy)]
    del model
    gc.collect()
    assert [one() for one in held] == [None, None]
