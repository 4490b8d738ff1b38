from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from leapts.config import ReadOptions
from leapts.data.frames import forecast_frame, long_frame, panel_frame
from leapts.data.validation import read_panel


def daily(**changes: Any) -> pd.DataFrame:
    timestamps = pd.date_range("2024-01-01", periods=3)
    frame = pd.DataFrame(
        {"unique_id": ["a"] * 3 + ["b"] * 3, "ds": [*timestamps, *timestamps], "y": [1.0, 2, 3, 4, 5, 6]}
    )
    return frame.assign(**changes)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("timezone", [None, "UTC", "Europe/Berlin"])
def test_a_pandas_frame_keeps_its_types(unit: Any, timezone: str | None) -> None:
    frame = daily()
    frame["ds"] = frame.ds.dt.tz_localize(timezone).dt.as_unit(unit)
    pd.testing.assert_frame_equal(panel_frame(read_panel(frame)), frame)


@pytest.mark.parametrize("timezone", [None, "Europe/Berlin"])
def test_a_polars_frame_keeps_its_types(timezone: str | None) -> None:
    timestamps = pl.col("ds").dt.replace_time_zone(timezone).dt.cast_time_unit("ms")
    frame = pl.from_pandas(daily()).with_columns(timestamps)
    assert panel_frame(read_panel(frame)).equals(frame)
    assert panel_frame(read_panel(frame)).schema == frame.schema


def test_dates_stay_dates() -> None:
    frame = pl.DataFrame({"unique_id": ["a", "a"], "ds": [date(2024, 1, 1), date(2024, 1, 2)], "y": [1.0, 2.0]})
    forecast = forecast_frame(read_panel(frame), {"LeapTS": np.array([[3.0]])}, h=1)
    assert forecast["ds"].to_list() == [date(2024, 1, 3)]


@pytest.mark.parametrize(("kind", "expected"), [("pandas", "timestamp[us]"), ("pyarrow", "date32[day]")])
def test_dates_of_a_text_file_are_timestamps_in_pandas_and_dates_in_arrow(
    kind: Any, expected: str, tmp_path: Path
) -> None:
    (tmp_path / "dates.csv").write_text("ds,y\n2024-01-01,1\n2024-01-02,2\n")
    panel = read_panel(tmp_path / "dates.csv").in_frames_of(kind)
    forecast = forecast_frame(panel, {"LeapTS": np.array([[3.0]])}, h=1)
    timestamps = pa.array(forecast["ds"]) if kind == "pandas" else forecast["ds"]
    assert str(timestamps.type) == expected
    assert str(timestamps[0].as_py())[:10] == "2024-01-03"


@pytest.mark.parametrize("kind", [np.int8, np.uint8])
def test_steps_that_outgrow_their_type_get_a_larger_one(kind: Any) -> None:
    last = np.iinfo(kind).max
    frame = pd.DataFrame({"ds": np.array([last - 1, last], dtype=kind), "y": 1.0})
    forecast = forecast_frame(read_panel(frame), {"LeapTS": np.ones((1, 2))}, h=2)
    assert forecast["ds"].tolist() == [int(last) + 1, int(last) + 2]


def test_series_names_can_be_64_bit_hashes() -> None:
    names = np.array([2**64 - 1, 7], dtype=np.uint64)
    frame = pd.DataFrame({"unique_id": names.repeat(2), "ds": [1, 2] * 2, "y": 1.0})
    forecast = forecast_frame(read_panel(frame), {"LeapTS": np.ones((2, 1))}, h=1)
    assert forecast["unique_id"].tolist() == [7, 2**64 - 1]


def test_an_arrow_table_keeps_its_types() -> None:
    table = pa.table({"unique_id": [7, 7], "ds": pa.array([1, 2], pa.int32()), "y": [1.0, 2.0]})
    assert panel_frame(read_panel(table)).equals(table)


def test_a_forecast_has_a_row_for_each_series_and_step() -> None:
    panel = read_panel(
        daily().rename(columns={"unique_id": "shop", "ds": "day"}),
        ReadOptions(id_col="shop", time_col="day"),
    )
    values = np.array([[10.0, 11], [20, 21]])
    forecast = forecast_frame(panel, {"LeapTS": values, "LeapTS-lo-80": values - 1}, h=2)
    expected = pd.DataFrame(
        {
            "shop": ["a", "a", "b", "b"],
            "day": pd.to_datetime(["2024-01-04", "2024-01-05"] * 2),
            "LeapTS": [10.0, 11, 20, 21],
            "LeapTS-lo-80": [9.0, 10, 19, 20],
        }
    )
    pd.testing.assert_frame_equal(forecast, expected)


def test_further_columns_of_timestamps_look_like_the_time_column() -> None:
    frame = daily()
    frame["ds"] = frame.ds.dt.tz_localize("Europe/Berlin")
    panel = read_panel(frame)
    out = long_frame(panel, np.array([1]), panel.future_timestamps(1)[1], {"cutoff": panel.last()[1:]})
    assert out.dtypes["cutoff"] == out.dtypes["ds"] == frame.dtypes["ds"]
    assert out.cutoff[0] == pd.Timestamp("2024-01-03", tz="Europe/Berlin")
