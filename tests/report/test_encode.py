import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leapts import LeapTS
from leapts.data.scaling import FLAT
from leapts.report import collect
from leapts.report.encode import _MIN_SPREAD, _clock, _Grid, encoded, to_script_json
from tests.forecasting.frames import UNIVARIATE, make_forecaster, make_frame


@given(st.recursive(st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8))
def test_embedded_json_has_no_markup_and_can_be_parsed(value: object) -> None:
    text = to_script_json(value)
    assert not set(text) & set("<>&\u2028\u2029")
    assert json.loads(text) == value


def _decoded(grid: _Grid, row: str) -> np.ndarray:
    return (np.array(row.split(), dtype=float) + grid.middle) / 10.0**grid.digits


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=40),
    st.sampled_from([0.0, 1e9, -3e4]),
    st.sampled_from([1e-6, 1.0, 1e4]),
)
def test_values_are_exact_to_a_thousandth_of_the_spread(values: list[float], level: float, size: float) -> None:
    array = np.array(values) * size + level
    grid = _Grid(array, 1e300)
    middle = abs(array.mean())
    spread = array.std() if array.std() > FLAT * middle else middle or 1.0
    error = np.abs(_decoded(grid, grid.row(array)) - array).max()
    assert error <= 0.51 * max(spread, _MIN_SPREAD) / 1000 + 1e-9 * np.abs(array).max()


@pytest.mark.parametrize(
    ("value", "deviation", "size"),
    [(0.1, 1.0, 0.1), (-3e7, 1e9, 3e7), (0.0, 1.0, 1.0), (1000.0, 0.6, 0.6), (0.0, 4e-5, 4e-5)],
)
def test_a_constant_history_has_a_unit_for_its_forecast(value: float, deviation: float, size: float) -> None:
    grid = _Grid(np.full(28, value), deviation)
    ahead = value + np.array([0.224, 0.004, 0.312, 0.630]) * size
    assert _decoded(grid, grid.row(ahead)) == pytest.approx(ahead, abs=1e-3 * size)


@given(st.lists(st.integers(1, 5), min_size=0, max_size=30), st.integers(-(10**12), 10**12))
def test_timestamps_can_be_decoded_from_runs(gaps: list[int], first: int) -> None:
    timestamps = first + np.concatenate([[0], np.cumsum(gaps, dtype=np.int64)]).astype(np.int64)
    start, *runs = _clock(timestamps)
    back = [start]
    for gap, count in zip(runs[::2], runs[1::2], strict=True):
        back += [back[-1] + gap * (n + 1) for n in range(count)]
    assert back == timestamps.tolist()


def test_timestamps_are_in_local_time() -> None:
    timestamps = pd.date_range("2024-03-30", periods=200, freq="h", tz="Europe/Berlin")
    frame = pd.DataFrame({"unique_id": "a", "ds": timestamps, "y": np.sin(np.arange(200.0))})
    model = make_forecaster(**UNIVARIATE, val_size=0).fit(frame)
    [clock] = encoded(collect(model, frame, cutoffs=1))["clocks"]
    last = pd.Timestamp(clock[0] + sum(gap * n for gap, n in zip(clock[1::2], clock[2::2], strict=True)), unit="ms")
    assert last == (timestamps[-1] + pd.Timedelta(hours=6)).tz_localize(None)


def test_leaps_equal_those_of_the_trace(model: LeapTS, data: pd.DataFrame) -> None:
    page = encoded(collect(model, data, cutoffs=1))
    _, trace = model.predict(data, return_trace=True)
    for series in page["series"]:
        rows = trace[trace["unique_id"] == series["name"]]
        leaps = [leap.split() for leap in series["leaps"][0].split(";")]
        assert [int(leap[0]) for leap in leaps] == rows["length"].tolist()
        assert [page["scales"][int(leap[1])] for leap in leaps] == rows["scale"].tolist()
        for place, name in enumerate(["p_short", "p_mid", "p_long"], start=2):
            np.testing.assert_allclose([int(leap[place]) / 1000 for leap in leaps], rows[name], atol=0.0006)
        np.testing.assert_allclose([float(leap[5]) for leap in leaps], rows["control"], rtol=1e-3)
        np.testing.assert_allclose([float(leap[6]) for leap in leaps], rows["temporal"], rtol=1e-3)


def test_a_model_without_leaps_is_encoded_too(data: pd.DataFrame) -> None:
    model = make_forecaster(model={"scheduling": {"kind": "none"}, "mixing": {"kind": "none"}}).fit(data)
    page = encoded(collect(model, data, cutoffs=2))
    assert page["gate"] is None
    assert page["model"]["schedules"] is None
    assert page["series"][0]["leaps"] == [None, None]
    json.loads(to_script_json(page))


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_nan_and_infinity_are_refused(value: float) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        to_script_json({"x": value})


def test_intervals_of_an_unseen_series_equal_those_of_predict_at_every_cutoff(model: LeapTS) -> None:
    """Its scale comes from its history, which differs at each cutoff."""
    growing = make_frame({"unseen": 120})
    growing["y"] *= np.linspace(1, 100, 120)
    contents = collect(model, growing, cutoffs=4)
    page = encoded(contents)
    [series] = page["series"]
    unit = 10.0 ** (1 - series["digits"])
    columns = [*(f"LeapTS-lo-{level}" for level in (95, 80, 50)), *(f"LeapTS-hi-{level}" for level in (50, 80, 95))]
    for number, cutoff in enumerate(contents.cutoffs):
        forecast = model.predict(growing.head(120 - cutoff.after), level=page["levels"])
        rows = np.array([[int(value) for value in row.split()] for row in series["bands"][number]])
        ends = (rows.cumsum(0) + series["middle"] // 10) * unit
        np.testing.assert_allclose(ends.T, forecast[columns], atol=unit / 2)
