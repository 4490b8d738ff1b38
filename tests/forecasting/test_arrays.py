"""The door for arrays gives the numbers of `predict`, and refuses what it refuses."""

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from leapts import ConfigError, DataError, LeapTS
from leapts.forecasting.arrays import ArrayForecaster, Floats
from leapts.forecasting.intervals import interval_bounds, quantile_bounds
from tests.forecasting.frames import APART, JOINT, LOOKBACK, H, make_forecaster, make_frame

LENGTHS = {"a": 160, "b": 160, "c": 160}


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return make_frame(LENGTHS)


@pytest.fixture(scope="module")
def joint(frame: pd.DataFrame) -> LeapTS:
    return make_forecaster(**JOINT, val_size=60).fit(frame)


@pytest.fixture(scope="module")
def apart(frame: pd.DataFrame) -> LeapTS:
    return make_forecaster(**APART, val_size=60).fit(frame)


def _histories(frame: pd.DataFrame) -> dict[str, Floats]:
    return {str(name): rows["y"].to_numpy(np.float64) for name, rows in frame.groupby("unique_id", sort=False)}


def _door(model: LeapTS) -> ArrayForecaster:
    return ArrayForecaster(model.fitted_, fill=model.fill)


@pytest.mark.parametrize("options", [JOINT, APART])
def test_a_number_and_the_text_that_spells_it_name_one_series(options: dict[str, Any]) -> None:
    frame = make_frame({"1": 160, "2": 160})
    door = _door(make_forecaster(**options, val_size=60).fit(frame))
    by_text = _histories(frame)
    by_number = {int(name): values for name, values in reversed(by_text.items())}
    bounds = interval_bounds([80], "LeapTS")
    found = []
    for histories in (by_text, by_number):
        (forecast,) = door.forecast([door.read(list(histories), list(histories.values()))])
        found.append({"LeapTS": forecast.values, **door.bounds(forecast, bounds)})
    for column, values in found[0].items():
        np.testing.assert_allclose(found[1][column][::-1], values, rtol=1e-6)
    with pytest.raises(DataError, match="'1' is given more than once"):
        door.read(["1", 1], [by_text["1"], by_text["2"]])


def _by_arrays(model: LeapTS, histories: dict[str, Floats], **options: Any) -> pd.DataFrame:
    door = _door(model)
    (forecast,) = door.forecast([door.read(list(histories), list(histories.values()))])
    columns = {"LeapTS": forecast.values, **door.bounds(forecast, options.get("bounds", ()))}
    names = np.repeat(list(histories), H)
    return pd.DataFrame({"unique_id": names, **{name: values.reshape(-1) for name, values in columns.items()}})


def _by_frames(model: LeapTS, frame: pd.DataFrame, order: list[str], **options: Any) -> pd.DataFrame:
    found = model.predict(frame, **options)
    in_order: pd.DataFrame = pd.concat([found[found["unique_id"] == name] for name in order], ignore_index=True)
    return in_order.drop(columns="ds")


@pytest.mark.parametrize("kind", ["joint", "apart"])
@pytest.mark.parametrize("order", [["a", "b", "c"], ["c", "a", "b"]])
def test_arrays_and_frames_give_the_same_numbers(
    request: pytest.FixtureRequest, frame: pd.DataFrame, kind: str, order: list[str]
) -> None:
    model: LeapTS = request.getfixturevalue(kind)
    known = _histories(frame)
    bounds = interval_bounds([80, 95])
    found = _by_arrays(model, {name: known[name] for name in order}, bounds=bounds)
    expected = _by_frames(model, frame, order, level=[80, 95])
    pd.testing.assert_frame_equal(found, expected, check_dtype=False, rtol=1e-6)
    if order == ["a", "b", "c"]:
        assert np.array_equal(found["LeapTS"], expected["LeapTS"])


def test_quantiles_are_those_of_predict(apart: LeapTS, frame: pd.DataFrame) -> None:
    found = _by_arrays(apart, _histories(frame), bounds=quantile_bounds([0.1, 0.5, 0.9]))
    expected = _by_frames(apart, frame, ["a", "b", "c"], quantiles=[0.1, 0.5, 0.9])
    pd.testing.assert_frame_equal(found, expected, check_dtype=False, rtol=1e-9)


def test_a_stranger_is_scaled_by_its_own_history(apart: LeapTS) -> None:
    stranger = make_frame({"b": 160, "new": 90}, seed=3)
    found = _by_arrays(apart, _histories(stranger), bounds=interval_bounds([80]))
    expected = _by_frames(apart, stranger, ["b", "new"], level=[80])
    pd.testing.assert_frame_equal(found, expected, check_dtype=False, rtol=1e-9)


def test_callers_served_together_get_what_each_gets_alone(joint: LeapTS, apart: LeapTS) -> None:
    for model in (joint, apart):
        door = _door(model)
        callers = [_histories(make_frame(LENGTHS, seed=seed)) for seed in range(5)]
        read = [door.read(list(caller), list(caller.values())) for caller in callers]
        together = door.forecast(read, "leaps")
        for request, shared in zip(read, together, strict=True):
            (alone,) = door.forecast([request], "leaps")
            np.testing.assert_allclose(shared.values, alone.values, rtol=1e-5)
            assert shared.trace is not None
            assert alone.trace is not None
            assert shared.trace.length.tolist() == alone.trace.length.tolist()


def test_the_trace_is_that_of_predict(joint: LeapTS, frame: pd.DataFrame) -> None:
    _, expected = joint.predict(frame, return_trace=True)
    door, histories = _door(joint), _histories(frame)
    order = ["c", "a", "b"]
    (forecast,) = door.forecast([door.read(order, [histories[name] for name in order])], "leaps")
    assert forecast.trace is not None
    for row, name in enumerate(order):
        lengths = expected[expected["unique_id"] == name]["length"].tolist()
        assert forecast.trace.length[row][: len(lengths)].tolist() == lengths


def test_random_schedules_do_not_depend_on_who_else_asks(frame: pd.DataFrame) -> None:
    model = make_forecaster(model={"mixing": {"kind": "none"}, "scheduling": {"kind": "monte_carlo"}}).fit(frame)
    door, histories = _door(model), _histories(frame)
    read = [door.read([name], [histories[name]]) for name in ("a", "b")]
    together = [forecast.values for forecast in door.forecast(read)]
    assert np.array_equal(together[1], door.forecast(read[1:])[0].values)


def test_short_histories_are_padded_where_the_model_pads(frame: pd.DataFrame) -> None:
    padding = make_forecaster(**APART, pad_short=True).fit(frame)
    short = make_frame({"a": 160, "new": LOOKBACK - 5})
    found = _by_arrays(padding, _histories(short))
    pd.testing.assert_frame_equal(found, _by_frames(padding, short, ["a", "new"]), check_dtype=False, rtol=1e-9)


def test_missing_values_are_filled_as_the_model_fills(frame: pd.DataFrame) -> None:
    for fill in ("ffill", "interpolate", 3.0):
        model = make_forecaster(**APART, fill=fill).fit(frame)
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
        ("apart", _with(a=[1.0] * 5), ["'a'", "5 values", "look-back of 12", "give a longer history"]),
        ("apart", _with(a=[]), ["'a'", "no values"]),
        ("apart", _with(b=[1.0] * 20 + [float("nan")]), ["'b'", "position 20", "fill"]),
        ("apart", _with(b=[float("inf")] * 20), ["'b'", "position 0"]),
        ("apart", _with(b=[1e300] * 20), ["'b'", "1e+300", "larger unit"]),
        ("apart", _with(b=[1e29, 0.0] * 10), ["'b'", "1e+29", "deviations"]),
        ("apart", _with(b=[*[0.0] * 19, 1e29]), ["'b'", "1e+29", "deviations"]),
        ("joint", lambda known: {"a": known["a"]}, ["3 series", "'b', 'c'"]),
        ("joint", _with(d=[1.0] * 20), ["'d'", "leave them out"]),
    ],
)
def test_what_cannot_be_used_is_refused_by_name(
    request: pytest.FixtureRequest, frame: pd.DataFrame, kind: str, change: Change, words: list[str]
) -> None:
    histories = change(_histories(frame))
    with pytest.raises(DataError) as error:
        _door(request.getfixturevalue(kind)).read(list(histories), list(histories.values()))
    for word in words:
        assert word in str(error.value)


def test_a_series_given_twice_is_refused(apart: LeapTS) -> None:
    with pytest.raises(DataError, match="'a' is given more than once"):
        _door(apart).read(["a", "b", "a"], [np.ones(20)] * 3)


def test_without_scores_there_are_no_intervals(frame: pd.DataFrame) -> None:
    model = make_forecaster(**APART, val_size=0).fit(frame)
    with pytest.raises(ConfigError, match="calibrate"):
        _by_arrays(model, _histories(frame), bounds=interval_bounds([80]))


def test_a_door_is_let_go_as_soon_as_nobody_holds_it(apart: LeapTS) -> None:
    """A server exempts what it has at its start from the collection of garbage: nothing may wait for that."""
    door = _door(apart)
    door.require_levels(interval_bounds([80]))
    kept = weakref.ref(door)
    gc.disable()
    try:
        del door
        assert kept() is None
    finally:
        gc.enable()


def test_the_measured_cost_says_how_many_rows_are_quick(joint: LeapTS, apart: LeapTS) -> None:
    unmeasured = ArrayForecaster(apart.fitted_)
    assert (unmeasured.quick_rows, unmeasured.row_seconds) == (0, 0.0)
    for model, n_series in ((joint, 3), (apart, 1)):
        measured = ArrayForecaster(model.fitted_, measure=True)
        assert measured.row_seconds > 0
        assert n_series <= measured.quick_rows <= 512
        assert measured.quick_rows % n_series == 0


def test_a_model_that_was_replaced_is_freed_with_its_inference_copy(frame: pd.DataFrame) -> None:
    model = make_forecaster(**APART).fit(frame)
    arrays = ArrayForecaster(model.fitted_, measure=True)
    held = [weakref.ref(model.fitted_.model), weakref.ref(model.fitted_.inference_copy)]
    del model, arrays
    gc.collect()
    assert [one() for one in held] == [None, None]
