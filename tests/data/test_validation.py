from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from leapts.config import ReadOptions
from leapts.data.validation import read_panel, require_length
from leapts.errors import ConfigError, DataError


def long(**changes: Any) -> pd.DataFrame:
    """Two daily series of 4 and 3 values."""
    frame = pd.DataFrame(
        {
            "unique_id": ["a"] * 4 + ["b"] * 3,
            "ds": [*pd.date_range("2024-01-01", periods=4), *pd.date_range("2024-02-01", periods=3)],
            "y": [1.0, 2, 3, 4, 10, 20, 30],
        }
    )
    return frame.assign(**changes)


def csv(folder: Path, text: str) -> Path:
    path = folder / "sales.csv"
    path.write_text(text)
    return path


def test_a_long_frame_becomes_a_ragged_panel() -> None:
    panel = read_panel(long())
    assert panel.series == ("a", "b")
    assert panel.lengths.tolist() == [4, 3]
    assert panel.values.tolist() == [1, 2, 3, 4, 10, 20, 30]
    assert panel.values.dtype == torch.float64
    assert panel.freq == "D"
    assert not panel.is_aligned
    np.testing.assert_array_equal(panel.first, np.array(["2024-01-01", "2024-02-01"], dtype="datetime64[us]"))


def test_a_wide_frame_becomes_an_aligned_panel() -> None:
    frame = pd.DataFrame({"Date": pd.date_range("2024-01-01", periods=3, freq="h"), "a": [1, 2, 3], "b": [4.0, 5, 6]})
    panel = read_panel(frame)
    assert (panel.series, panel.freq, panel.is_aligned) == (("a", "b"), "h", True)
    assert panel.matrix().tolist() == [[1, 2, 3], [4, 5, 6]]
    assert panel.style.time_col == "Date"


def test_a_single_series_needs_no_names() -> None:
    panel = read_panel(pd.DataFrame({"ds": [1, 2, 3], "y": [5, 6, 7]}))
    assert (panel.series, panel.freq, panel.values.tolist()) == (("y",), 1, [5, 6, 7])


def test_the_layout_can_be_given() -> None:
    frame = pd.DataFrame({"ds": [1, 2], "y": [1.0, 2], "x": [3.0, 4]})
    assert read_panel(frame).series == ("y",)
    assert read_panel(frame, ReadOptions(layout="wide")).series == ("y", "x")


@given(st.permutations(range(7)))
def test_shuffled_rows_give_the_same_series(order: list[int]) -> None:
    panel, shuffled = read_panel(long()), read_panel(long().iloc[order])
    assert shuffled.series == panel.series
    assert torch.equal(shuffled.values, panel.values)
    np.testing.assert_array_equal(shuffled.first, panel.first)


def test_series_come_in_the_natural_order_of_their_names() -> None:
    names = ["shop10", "shop2", "shop", "2", "10", "shop02", "a1b2", "a1b10"]
    frame = pd.DataFrame({"unique_id": names, "ds": 1, "y": range(len(names))})
    panel = read_panel(frame, ReadOptions(freq=1))
    assert panel.series == ("2", "10", "a1b2", "a1b10", "shop", "shop02", "shop2", "shop10")
    assert panel.values.tolist() == [names.index(str(name)) for name in panel.series]
    endless = pd.DataFrame({"unique_id": ["x" + "9" * 5000, "x1"], "ds": 1, "y": 1.0})
    assert read_panel(endless, ReadOptions(freq=1)).series[0] == "x1"


ROW = st.tuples(st.sampled_from("xyz"), st.integers(0, 30), st.floats(-100, 100))


@given(st.lists(ROW, unique_by=lambda row: row[:2], min_size=2))
def test_filling_forward_equals_pandas(rows: list[tuple[str, int, float]]) -> None:
    frame = pd.DataFrame(rows, columns=["unique_id", "ds", "y"])
    panel = read_panel(frame, ReadOptions(freq=1, fill="ffill"))
    for index, name in enumerate(panel.series):
        series = frame[frame.unique_id == name].set_index("ds").y.sort_index()
        expected = series.reindex(range(series.index.min(), series.index.max() + 1)).ffill()
        np.testing.assert_array_equal(panel.values[panel.offsets[index] : panel.offsets[index + 1]], expected)


@given(st.lists(st.one_of(st.none(), st.floats(-100, 100)), min_size=3, max_size=30))
def test_interpolation_equals_pandas(values: list[float | None]) -> None:
    column = pd.Series(values, dtype=float)
    if column.isna().all():
        return
    panel = read_panel(pd.DataFrame({"ds": range(len(column)), "y": column}), ReadOptions(freq=1, fill="interpolate"))
    expected = column.interpolate().dropna()  # pandas too leaves leading gaps, and carries the last value on
    np.testing.assert_allclose(panel.values, expected, rtol=1e-12, atol=1e-12)
    assert panel.first.tolist() == [expected.index[0]]
    np.testing.assert_array_equal(panel.without_lookahead().values, column.ffill().dropna())
    end = column.last_valid_index()
    np.testing.assert_array_equal(panel.values[end - expected.index[0] :], column[end])  # to the bit


def test_a_number_fills_leading_gaps_too() -> None:
    frame = pd.DataFrame({"ds": [1, 2, 4], "y": [np.nan, 2.0, np.inf]})
    panel = read_panel(frame, ReadOptions(fill=0))
    assert panel.values.tolist() == [0, 2, 0, 0]
    assert panel.first.tolist() == [1]


def test_a_late_column_of_a_wide_frame_starts_late() -> None:
    frame = pd.DataFrame(
        {"date": pd.date_range("2024-01-01", periods=4), "a": [1.0, 2, 3, 4], "b": [np.nan, np.nan, 3, 4]}
    )
    panel = read_panel(frame, ReadOptions(fill="ffill"))
    assert panel.lengths.tolist() == [4, 2]
    assert str(panel.first[1])[:10] == "2024-01-03"


def test_trading_days_can_be_read_with_imputation() -> None:
    days = pd.bdate_range("2024-01-01", "2024-03-29").delete([0, 10, 35])
    frame = pd.DataFrame({"date": days, "close": np.arange(len(days), dtype=float)})
    with pytest.raises(DataError, match=r"no row for 2024-01-15 \(2 of 64 steps .*freq='B'.*fill='ffill'.*holidays"):
        read_panel(frame)
    panel = read_panel(frame, ReadOptions(fill="ffill"))
    assert panel.freq == "B"
    assert panel.lengths.tolist() == [64]


def test_irregular_calendars_can_be_read_by_row() -> None:
    frame = pd.DataFrame({"unique_id": ["a", "b", "a"], "ds": ["2024-01-01", "x", "2024-01-01"], "y": [1.0, 2, 3]})
    panel = read_panel(frame, ReadOptions(time="row"))
    assert (panel.freq, panel.first.tolist(), panel.values.tolist()) == (1, [1, 1], [1, 3, 2])


@pytest.mark.parametrize(("keep", "value"), [("first", 2.0), ("last", 9.0)])
def test_repeated_rows_can_be_reduced_to_the_first_or_last(keep: Any, value: float) -> None:
    frame = pd.DataFrame({"ds": [1, 2, 2, 3], "y": [1.0, 2.0, 9.0, 3.0]})
    assert read_panel(frame, ReadOptions(duplicates=keep)).values.tolist() == [1, value, 3]


@pytest.mark.parametrize(("start", "end"), [("2024-03-30", "2024-04-01"), ("2024-10-26", "2024-10-28")])
@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_hours_across_a_daylight_saving_jump_are_regular(start: str, end: str, kind: str) -> None:
    timestamps = pd.date_range(start, end, freq="h", tz="Europe/Berlin")
    frame = pd.DataFrame({"ds": timestamps, "y": np.arange(len(timestamps), dtype=float)})
    native = {"pandas": frame, "polars": pl.from_pandas(frame), "pyarrow": pa.Table.from_pandas(frame)}[kind]
    panel = read_panel(native)
    assert (panel.freq, panel.timezone, len(panel.values)) == ("h", "Europe/Berlin", len(timestamps))


def test_text_timestamps_with_offsets_are_read_across_the_jump(tmp_path: Path) -> None:
    path = csv(
        tmp_path,
        "ds,y\n2024-03-31T01:00:00+01:00,1\n2024-03-31T03:00:00+02:00,2\n2024-03-31T04:00:00+02:00,3\n",
    )
    panel = read_panel(path)
    assert (panel.freq, panel.timezone, str(panel.first[0])[:16]) == ("h", "UTC", "2024-03-31T00:00")


@pytest.mark.parametrize(
    ("timestamps", "first"),
    [
        (["13/01/2024", "14/01/2024"], "2024-01-13"),
        (["01/13/2024", "01/14/2024"], "2024-01-13"),
        (["2024-01-13 10:00", "2024-01-14 10:00"], "2024-01-13"),
        (["13 Jan 2024", "14 Jan 2024"], "2024-01-13"),
    ],
)
def test_text_timestamps_are_read_when_unambiguous(timestamps: list[str], first: str) -> None:
    panel = read_panel(pd.DataFrame({"ds": timestamps, "y": [1.0, 2]}))
    assert (str(panel.first[0])[:10], panel.freq) == (first, "D")


def test_numeric_types_of_each_kind_are_read() -> None:
    for dtype in ["int8", "uint16", "int64", "float32", "Int64", "Float64", "string", "category"]:
        panel = read_panel(
            pd.DataFrame({"ds": [1, 2], "y": pd.Series([1, 2]).astype(pd.api.types.pandas_dtype(dtype))})
        )
        assert panel.values.tolist() == [1, 2], dtype


def test_integer_and_categorical_names_are_names() -> None:
    assert read_panel(long(unique_id=[7] * 4 + [3] * 3)).series == (3, 7)
    categories = pd.Categorical(["b"] * 4 + ["a"] * 3, categories=["a", "unused", "b"])
    panel = read_panel(long(unique_id=categories))
    assert panel.series == ("a", "b")
    assert panel.values.tolist() == [10, 20, 30, 1, 2, 3, 4]
    np.testing.assert_array_equal(panel.first, read_panel(long()).first[::-1])
    assert read_panel(
        pl.DataFrame({"unique_id": ["b", "a"], "ds": [1, 1], "y": [1, 2]}), ReadOptions(freq=1)
    ).series == ("a", "b")


def test_a_panel_does_not_share_memory_with_its_frame() -> None:
    frame = pd.DataFrame({"ds": [1, 2], "y": [1.0, 2.0]})
    panel = read_panel(frame)
    frame.iloc[0, 1] = 99
    panel.values[1] = 77
    assert panel.values[0] == 1
    assert frame.iloc[1, 1] == 2


def test_a_constant_series_is_accepted() -> None:
    assert read_panel(long(y=5.0)).values.tolist() == [5.0] * 7


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"y": [1, 2, np.nan, 4, 10, 20, 30]},
            r"the frame: series 'a' has a missing value \(NaN\) at " r"2024-01-03 \(1 of its values\).*fill=",
        ),
        (
            {"y": [1, 2, 3, 4, 10, -np.inf, np.nan]},
            r"series 'b' has an infinite value \(-inf\) at 2024-02-02 \(2 " r"of its values\)",
        ),
        ({"y": [1, np.nan, 3, 4, 10, 20, np.nan]}, "and so does 1 other series"),
        (
            {"y": [1, 2, 3, 1e31, 10, 20, 30]},
            r"series 'a' holds 1e\+31, above the limit",
        ),
        (
            {"y": ["1", "2", "3,5", "4", "5", "6", "7"]},
            r"column 'y' has no number at row 2 \(counted from 0\): '3,5'; " r"write decimals with a point",
        ),
        ({"y": ["1", "2", "1,234,567", "4", "5", "6", "7"]}, "'1,234,567'; .* 1234.5"),
        ({"y": ["1", "2", "1,234", "4", "5", "6", "7"]}, "'1,234'; .* 1234.5"),
        ({"y": ["1", "2", "1.234,56", "4", "5", "6", "7"]}, "'1.234,56'; .* 1234.5"),
        ({"y": ["1", "2", "\x1b[31mred", "4", "5", "6", "7"]}, r"line|row.*'\\x1b\[31mred'"),
        ({"y": [1, "two", 3, 4, 5, 6, 7]}, "no number at row 1 .*: 'two'"),
        ({"y": [True] * 7}, "holds bool, not numbers"),
        ({"y": [str(1)] * 6 + ["x" * 500]}, r"'x{30,40}\.\.\.'"),
        (
            {"ds": pd.to_datetime(["2024-01-01"] * 2 + ["2024-01-03"] * 3 + ["2024-01-04", "2024-01-05"])},
            r"the frame: 2 rows repeat an earlier one, first \(a, "
            r"2024-01-01\); keep one of each, or pass duplicates='last'",
        ),
        (
            {
                "ds": [
                    *pd.to_datetime(["2024-01-01", "2024-01-02", "2024-01-05", "2024-01-06"]),
                    *pd.date_range("2024-02-01", periods=3),
                ]
            },
            r"series 'a' has no row for 2024-01-03 \(2 of 6 steps are "
            r"missing at freq='D'\); add them, pass fill=",
        ),
        (
            {
                "ds": [
                    "2024-01-01",
                    "2024-01-02",
                    "soon",
                    "2024-01-04",
                    "2024-01-05",
                    "2024-01-06",
                    "2024-01-07",
                ]
            },
            r"column 'ds' has no readable timestamp at row 2 \(counted "
            r"from 0\): 'soon'; write timestamps as",
        ),
        (
            {"ds": ["2024-01-01 00:00Z"] + ["2024-01-02 00:00"] * 6},
            r"mixes timestamps with and without a timezone: '2024-01-01 " r"00:00Z' at row 0",
        ),
        (
            {
                "ds": [
                    "01/02/2024",
                    "02/02/2024",
                    "03/02/2024",
                    "04/02/2024",
                    "05/02/2024",
                    "06/02/2024",
                    "07/02/2024",
                ]
            },
            r"day or the month first: '01/02/2024' at row 0",
        ),
        (
            {"ds": [pd.NaT, *pd.date_range("2024-01-01", periods=6)]},
            r"column 'ds' has no timestamp at row 0 .*\(1 missing in all\)",
        ),
        ({"ds": [0.5, 1, 2, 3, 4, 5, 6]}, "holds double, not timestamps"),
        ({"unique_id": ["a", None, *"aabbb"]}, "column 'unique_id' has no series name at row 1"),
        ({"unique_id": [1.5] * 7}, "holds double, not series names"),
    ],
)
def test_bad_data_are_refused_with_place_and_hint(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_panel(long(**changes))


@pytest.mark.parametrize(
    ("freq", "message"),
    [
        (
            "h",
            r"series 'a' has no row for 2024-01-01 01:00 .* and 1 other "
            r"series has gaps too.*pass freq='D'",
        ),
        (
            "2D",
            r"freq='2D' does not fit series 'a': 2024-01-02 at row 1 .* is "
            r"not a whole number of steps after 2024-01-01",
        ),
        ("W-SUN", "freq='W-SUN' does not fit series 'a': 2024-01-01 at row 0"),
        (1, "freq=1 does not fit a time column of dates; pass freq as a pandas alias"),
    ],
)
def test_a_frequency_that_does_not_fit_is_refused(freq: str | int, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_panel(long(), ReadOptions(freq=freq))


def test_a_calendar_frequency_does_not_fit_integers() -> None:
    with pytest.raises(DataError, match="does not fit a time column of integer steps; pass freq as an integer"):
        read_panel(pd.DataFrame({"ds": [1, 2], "y": [1, 2]}), ReadOptions(freq="D"))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            ["unique_id", "date", "y"],
            r"has no column 'ds', only 'unique_id', 'date', 'y'; did you " r"mean time_col='date'\?",
        ),
        (["unique_id", "ds", "Y"], r"has no column 'y', only .*; did you mean target_col='Y'\?"),
        (["unique_id", "ds", "sales"], "has no column 'y', only .*; pass target_col="),
        (["a", "b", "c"], "has no column 'ds', only 'a', 'b', 'c'; pass time_col="),
    ],
)
def test_missing_columns_are_named_with_the_columns_present(columns: list[str], message: str) -> None:
    frame = long().astype({"ds": str})
    frame.columns = pd.Index(columns)
    with pytest.raises(DataError, match=message):
        read_panel(frame)


def test_csv_errors_name_the_file_and_the_line(tmp_path: Path) -> None:
    path = csv(tmp_path, "unique_id,ds,y\na,2024-01-01,1\na,2024-01-02,one\n")
    with pytest.raises(DataError, match=r"^sales\.csv: column 'y' has no number at line 3: 'one'"):
        read_panel(path)


def test_a_text_column_in_a_wide_frame_is_refused() -> None:
    frame = pd.DataFrame({"date": pd.date_range("2024-01-01", periods=2), "t": [1, 2], "label": ["sun", "rain"]})
    with pytest.raises(DataError, match=r"column 'label' has no number at row 0 .*'sun'.*id_col='label'"):
        read_panel(frame)


def test_errors_in_a_shuffled_frame_name_the_original_row() -> None:
    frame = pd.DataFrame(
        {"ds": pd.to_datetime(["2024-01-02 05:00", "2024-01-03 00:00", "2024-01-01 00:00"]), "y": [1, 2, 3]}
    )
    with pytest.raises(DataError, match=r"2024-01-02 05:00 at row 0 \(counted from 0\)"):
        read_panel(frame, ReadOptions(freq="D"))


def test_imputation_across_a_wrong_timestamp_is_refused() -> None:
    frame = pd.DataFrame(
        {"ds": pd.to_datetime(["2024-01-01 00:00", "2024-01-01 00:01", "2204-01-01 00:00"]), "y": [1, 2, 3]}
    )
    with pytest.raises(DataError, match=r"would make [\d,]+ values of 3; check the timestamps"):
        read_panel(frame, ReadOptions(fill="ffill"))


def test_a_series_without_any_number_cannot_be_imputed() -> None:
    frame = long(y=[1, 2, 3, 4, np.nan, np.nan, np.nan])
    with pytest.raises(DataError, match=r"series 'b' has no number at all"):
        read_panel(frame, ReadOptions(fill="ffill"))


def test_a_short_series_is_named_with_the_length_needed() -> None:
    panel = read_panel(long())
    require_length(panel, 3)
    with pytest.raises(DataError, match=r"series 'b' has 3 values, but one window needs 4; shorten"):
        require_length(panel, 4)
    with pytest.raises(DataError, match=r"\(2 series of 2 too short\), but training needs 9"):
        require_length(panel, 9, "training")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"layout": "tall"}, "layout='tall': must be 'auto', 'long' or 'wide'"),
        ({"fill": "bfill"}, "fill='bfill': must be interpolate, ffill or a number"),
        ({"fill": float("nan")}, "fill=nan: must be a finite number"),
        ({"duplicates": "mean"}, "duplicates='mean': must be 'error', 'first' or 'last'"),
        ({"id_col": "y"}, "must be three different columns"),
    ],
)
def test_invalid_read_options_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ReadOptions(**changes)


@pytest.mark.parametrize(
    "form", ["%m/%d/%y", "%d.%m.%y", "%d-%m-%y", "%m/%d/%Y %I:%M:%S %p", "%d/%m/%Y %I:%M %p", "%m/%d/%y %H:%M"]
)
def test_days_and_months_are_read_in_the_order_that_fits_every_row(form: str, tmp_path: Path) -> None:
    days = pd.date_range("2024-01-05", periods=60)
    rows = "".join(f"{day.strftime(form)},{row}\n" for row, day in enumerate(days))
    panel = read_panel(csv(tmp_path, f"ds,y\n{rows}"))
    assert (str(panel.first[0])[:10], str(panel.last()[0])[:10]) == ("2024-01-05", "2024-03-04")
    with pytest.raises(DataError, match="can be read with the day or the month first"):
        read_panel(csv(tmp_path, "ds,y\n" + "".join(rows.splitlines(keepends=True)[:3])))


@pytest.mark.parametrize("rows", ["2024-01-01,1\n2024-01-02,2\n", "a,2024-01-01 00:00:00,1\na,2024-01-02 00:00:00,2\n"])
def test_a_file_without_names_of_columns_is_refused(rows: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"sales.csv: .*first line.*'2024-01-01"):
        read_panel(csv(tmp_path, rows))


@pytest.mark.parametrize("first", ["01-Jul", "Jan-10", "Jul 4"])
def test_timestamps_without_a_year_are_refused(first: str, tmp_path: Path) -> None:
    days = pd.date_range("2023-07-01", periods=365)
    spelled = {"01-Jul": "%d-%b", "Jan-10": "%b-%y", "Jul 4": "%b %d"}[first]
    rows = "".join(f"{day.strftime(spelled)},{row}\n" for row, day in enumerate(days))
    with pytest.raises(DataError, match="has no readable timestamp at line 2"):
        read_panel(csv(tmp_path, f"ds,y\n{rows}"))


@pytest.mark.parametrize(
    "spelled",
    [
        ["25/10/2024 00:00 +0200", "26/10/2024 00:00 +0200", "27/10/2024 00:00 +0200", "28/10/2024 00:00 +0100"],
        ["Fri, 25 Oct 2024 00:00:00 +0200", "Mon, 28 Oct 2024 00:00:00 +0100"],
        ["2024-M01", "2024-M02", "2024-M03"],
        ["2024-T1", "2024-T2", "2024-T3"],
        ["2024M01", "2024M02"],
    ],
)
def test_timestamps_that_pandas_misreads_are_refused(spelled: list[str], tmp_path: Path) -> None:
    """Offsets that change without ISO 8601; months by their number, which would be seconds."""
    rows = "".join(f'"{timestamp}",{row}\n' for row, timestamp in enumerate(spelled))
    with pytest.raises(DataError, match="has no readable timestamp at line 2"):
        read_panel(csv(tmp_path, f"ds,y\n{rows}"))


def test_quarters_are_read(tmp_path: Path) -> None:
    panel = read_panel(csv(tmp_path, "ds,y\n2024-Q1,1\n2024-Q2,2\n2024-Q3,3\n"))
    assert str(panel.freq).startswith("QS")


@pytest.mark.parametrize(
    ("form", "has_dates"),
    [("%Y-%m-%d", True), ("%d.%m.%Y", True), ("%m/%d/%Y", True), ("%d.%m.%Y %H:%M", False), ("%Y-%m-%d %H:%M", False)],
)
def test_dates_in_text_are_dates_in_every_format(form: str, has_dates: bool, tmp_path: Path) -> None:
    days = pd.date_range("2024-01-05", periods=40)
    path = csv(tmp_path, "ds,y\n" + "".join(f"{day.strftime(form)},1\n" for day in days))
    panel = read_panel(path)
    assert panel.style.has_dates is has_dates
    np.testing.assert_array_equal(panel.timestamps(), days.to_numpy())


def test_steps_above_64_bits_are_refused() -> None:
    frame = pd.DataFrame({"ds": np.array([1, 2, 2**63], dtype=np.uint64), "y": 1.0})
    with pytest.raises(DataError, match="column 'ds' holds the step 9223372036854775808"):
        read_panel(frame)


@pytest.mark.parametrize("offset", ["+01", " +01", "+0100", "+01:00", ".5+01"])
def test_a_utc_offset_may_have_hours_only(offset: str) -> None:
    """PostgreSQL writes such offsets."""
    frame = pd.DataFrame({"ds": [f"2024-03-{day} 00:00:00{offset}" for day in range(10, 15)], "y": range(5)})
    panel = read_panel(frame)
    assert panel.timezone == "UTC"
    assert pd.Timestamp(panel.first[0]).hour == 23


def test_changing_utc_offsets_are_refused_with_a_hint() -> None:
    days = pd.date_range("2024-03-28", periods=8, tz="Europe/Berlin")
    frame = pd.DataFrame({"ds": [day.isoformat() for day in days], "y": 1.0})
    with pytest.raises(DataError, match=r"does not fit .*; write local times without their offsets from UTC"):
        read_panel(frame)
    assert read_panel(frame.assign(ds=days)).freq == "D"
    assert read_panel(frame.assign(ds=days.tz_localize(None).astype(str))).freq == "D"


def test_months_written_as_integers_are_refused(tmp_path: Path) -> None:
    path = csv(tmp_path, "ds,y\n202311,1\n202312,2\n202401,3\n")
    with pytest.raises(DataError, match=r"integers that look like dates \(first 202311\)"):
        read_panel(path)
    steps = "".join(f"{step},1\n" for step in range(202301, 202314))
    assert read_panel(csv(tmp_path, f"ds,y\n{steps}")).freq == 1


def test_imputation_makes_at_most_the_allowed_number_of_values() -> None:
    frame = pd.DataFrame({"ds": pd.to_datetime(["2024-01-01", "2024-01-02", "2024-01-20"]), "y": 1.0})
    options = ReadOptions(fill="ffill", freq="D", max_values=20)
    assert len(read_panel(frame, options).values) == 20
    with pytest.raises(DataError, match="would make 20 values of 3"):
        read_panel(frame, options.model_copy(update={"max_values": 19}))


@pytest.mark.parametrize(
    ("form", "freq"),
    [
        ("%Y%m%d%H", "h"),
        ("%Y%m%d%H%M", "30min"),
        ("%Y%m%d%H%M%S", "15s"),
        ("%y%m%d", "D"),
        ("%m%d%Y", "D"),
        ("%d%m%Y", "D"),
        ("%G%V", "W"),
    ],
)
def test_dates_in_other_forms_written_as_integers_are_refused(form: str, freq: str) -> None:
    """As steps they would have gaps after every hour, day, month or year."""
    timestamps = pd.date_range("2024-01-25 22:00", periods=90, freq=freq)
    frame = pd.DataFrame({"ds": timestamps.strftime(form).astype("int64"), "y": 1.0})
    with pytest.raises(DataError, match="integers that look like dates"):
        read_panel(frame, ReadOptions(fill="ffill"))


@pytest.mark.parametrize("first", [0, 1, 1990, 202301, 240101, 1_700_000_000, 10**12])
def test_consecutive_steps_are_not_dates(first: int) -> None:
    assert read_panel(pd.DataFrame({"ds": range(first, first + 40), "y": 1.0})).freq == 1


@pytest.mark.parametrize("text", ["{}:00", "{}:30:00", "{}:00 AM"])
def test_times_without_a_date_are_refused(text: str) -> None:
    """Pandas reads them as times of the current day."""
    with pytest.raises(DataError, match="no readable timestamp at row 0"):
        read_panel(pd.DataFrame({"ds": [text.format(hour) for hour in range(1, 12)], "y": 1.0}))


def test_unreadable_timestamps_are_not_parsed_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []
    read = pd.to_datetime

    def counting(text: Any, **options: Any) -> Any:
        if "format" not in options:
            tried.append(1 if isinstance(text, str) else len(text))
        return read(text, **options)

    monkeypatch.setattr(pd, "to_datetime", counting)
    with pytest.raises(DataError, match=r"no readable timestamp at row 0 .*: 'foo'"):
        read_panel(pd.DataFrame({"ds": ["foo", *(f"x{row}" for row in range(500))], "y": 1.0}))
    assert max(tried) == 1


@pytest.mark.parametrize("names", [[1, 2, 3], ["north", "south", "west"]])
@pytest.mark.parametrize("target", ["y", "sales"])
def test_a_column_that_may_name_the_series_is_pointed_out(names: list[Any], target: str) -> None:
    """Keeping the last of each would drop all stores but one without an error."""
    timestamps = pd.date_range("2024-01-01", periods=20)
    frame = pd.concat([pd.DataFrame({"date": timestamps, "store": name, target: range(20)}) for name in names])
    options = ReadOptions(time_col="date")
    if target == "sales" and names == ["north", "south", "west"]:
        options = options.model_copy(update={"target_col": "sales", "layout": "long"})
    with pytest.raises(
        DataError, match=r"repeat an earlier one.*; if column 'store' names the series, pass id_col='store'"
    ):
        read_panel(frame, options)


def test_series_names_in_the_index_are_pointed_out() -> None:
    frame = pd.DataFrame(
        {"ds": pd.date_range("2024-01-01", periods=5), "y": 1.0}, index=pd.Index(["a"] * 5, name="unique_id")
    )
    with pytest.raises(DataError, match=r"series names in its index; pass frame\.reset_index\(\)"):
        read_panel(frame)
    assert read_panel(frame.reset_index()).series == ("a",)


def test_names_that_are_neither_text_nor_integers_are_refused() -> None:
    names = pa.array([{"a": 1}] * 3)
    frame = pa.table({"unique_id": names, "ds": pa.array([1, 2, 3]), "y": pa.array([1.0, 2.0, 3.0])})
    with pytest.raises(DataError, match=r"holds struct.* not series names"):
        read_panel(frame)


def test_dates_written_as_integers_are_refused(tmp_path: Path) -> None:
    path = csv(tmp_path, "ds,y\n20240131,1\n20240201,2\n")
    with pytest.raises(DataError, match=r"integers that look like dates \(first 20240131\); write timestamps as"):
        read_panel(path)


def test_timestamps_in_the_index_are_pointed_out() -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0]}, index=pd.date_range("2024-01-01", periods=2))
    with pytest.raises(DataError, match=r"the timestamps are in its index: pass frame.reset_index\(\)"):
        read_panel(frame)
    assert read_panel(frame.reset_index()).series == ("a",)


def test_a_column_of_row_numbers_is_refused(tmp_path: Path) -> None:
    path = csv(tmp_path, ",date,a\n0,2024-01-01,1\n1,2024-01-02,2\n")
    with pytest.raises(DataError, match=r"column '' looks like row numbers, not a series; .*index=False"):
        read_panel(path)


@pytest.mark.parametrize(
    ("text", "series"),
    [("ds,a,b,\n2024-01-01,1,2,\n2024-01-02,3,4,\n", ("a", "b")), ("ds,y,\n2024-01-01,1,\n2024-01-02,2,\n", ("y",))],
)
def test_a_comma_at_the_end_of_every_line_makes_no_column(tmp_path: Path, text: str, series: tuple[str, ...]) -> None:
    panel = read_panel(csv(tmp_path, text))
    assert (panel.series, panel.unused) == (series, ())
    with pytest.raises(DataError, match="column ''"):
        read_panel(csv(tmp_path, "ds,a,b,\n2024-01-01,1,2,\n2024-01-02,3,4,5\n"))


def test_the_only_column_of_timestamps_is_the_time_column(tmp_path: Path) -> None:
    panel = read_panel(csv(tmp_path, "a,Datum\n1,2024-01-01\n2,2024-01-02\n"))
    assert (panel.series, panel.style.time_col) == (("a",), "Datum")


def test_timestamps_finer_than_a_microsecond_are_refused() -> None:
    timestamps = np.array([1, 2], dtype="datetime64[ns]")
    with pytest.raises(DataError, match="finer than a microsecond; round them"):
        read_panel(pd.DataFrame({"ds": timestamps, "y": [1.0, 2.0]}))


def test_fixed_offsets_are_time_zones_too() -> None:
    timestamps = pd.date_range("2024-01-01", periods=3, freq="D", tz="+05:30")
    panel = read_panel(pd.DataFrame({"ds": timestamps, "y": [1.0, 2, 3]}))
    assert (panel.freq, str(panel.last()[0])[:16]) == ("D", "2024-01-02T18:30")


def test_periods_are_refused_with_a_hint() -> None:
    frame = pd.DataFrame({"ds": pd.period_range("2024-01", periods=3, freq="M"), "y": [1.0, 2, 3]})
    with pytest.raises(DataError, match=r"holds periods.*pass frame.assign\(ds=frame\['ds'\].dt.to_timestamp"):
        read_panel(frame)
    assert read_panel(frame.assign(ds=frame["ds"].dt.to_timestamp())).freq == "MS"


def test_an_empty_series_name_is_missing(tmp_path: Path) -> None:
    path = csv(tmp_path, "unique_id,ds,y\na,1,1\n,1,1\nNA,1,2\n")
    with pytest.raises(DataError, match="column 'unique_id' has no series name at line 3"):
        read_panel(path, ReadOptions(freq=1))


def test_na_is_a_series_name(tmp_path: Path) -> None:
    assert read_panel(csv(tmp_path, "unique_id,ds,y\nNA,1,1\nNA,2,2\n")).series == ("NA",)


def test_a_frequency_is_taken_from_the_steps_within_series_not_between_them() -> None:
    days = [*pd.date_range("2024-01-01", periods=3, freq="2D"), *pd.date_range("2024-01-08", periods=3, freq="2D")]
    panel = read_panel(pd.DataFrame({"unique_id": ["a"] * 3 + ["b"] * 3, "ds": days, "y": range(6)}))
    assert panel.freq == "2D"
    assert panel.lengths.tolist() == [3, 3]


def test_the_file_is_named_when_no_frequency_is_found(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"^sales\.csv: .*freq"):
        read_panel(csv(tmp_path, "unique_id,ds,y\na,2024-01-01,1\n"))


@pytest.mark.parametrize("kept", ["first", "last"])
def test_repeated_rows_are_removed_from_each_series(kept: Literal["first", "last"]) -> None:
    frame = pd.DataFrame(
        {"unique_id": ["a", "a", "b", "b", "b", "c"], "ds": [1, 1, 1, 2, 2, 1], "y": [1.0, 2, 3, 4, 5, 6]}
    )
    panel = read_panel(frame, ReadOptions(freq=1, duplicates=kept))
    assert panel.lengths.tolist() == [1, 2, 1]
    assert panel.values.tolist() == ([1, 3, 4, 6] if kept == "first" else [2, 3, 5, 6])


def test_sorting_a_wide_frame_sorts_every_series() -> None:
    frame = pd.DataFrame({"ds": [1, 3, 4], "a": [1.0, 2, 3], "b": [4.0, 5, 6]})
    with pytest.raises(DataError, match=r"freq=2 does not fit every series: 4 at row 2"):
        read_panel(frame, ReadOptions(freq=2, layout="wide"))
    with pytest.raises(DataError, match=r"every series has no row for 2 \(1 of 4 steps are missing at freq=1\)"):
        read_panel(frame, ReadOptions(freq=1, layout="wide"))


@pytest.mark.parametrize(
    ("names", "steps"), [("aaa", [1, 3, 2]), ("aba", [1, 1, 2]), ("bab", [1, 1, 2]), ("aabb", [1, 2, 2, 1])]
)
def test_rows_in_any_order_are_sorted(names: str, steps: list[int]) -> None:
    frame = pd.DataFrame({"unique_id": list(names), "ds": steps, "y": range(len(names))})
    ordered = frame.sort_values(["unique_id", "ds"])
    panel = read_panel(frame, ReadOptions(freq=1))
    assert panel.values.tolist() == ordered["y"].tolist()
    assert panel.lengths.tolist() == ordered.groupby("unique_id").size().tolist()


def test_the_hint_for_a_wrong_frequency_considers_each_series() -> None:
    days = [*pd.date_range("2024-01-01", periods=3, freq="2D"), *pd.date_range("2024-01-08", periods=3, freq="2D")]
    frame = pd.DataFrame({"unique_id": ["a"] * 3 + ["b"] * 3, "ds": days, "y": range(6)})
    with pytest.raises(DataError, match=r"pass freq='2D'"):
        read_panel(frame, ReadOptions(freq="3D"))


def test_imputation_may_multiply_values_by_twenty_plus_a_thousand() -> None:
    frame = pd.DataFrame({"ds": [1, 2, 1060], "y": [1.0, 2, 3]})
    assert read_panel(frame, ReadOptions(freq=1, fill=0)).lengths.tolist() == [1060]
    with pytest.raises(DataError, match="would make 1,061 values of 3"):
        read_panel(frame.assign(ds=[1, 2, 1061]), ReadOptions(freq=1, fill=0))


def test_the_series_with_a_gap_is_named_and_the_others_are_counted() -> None:
    frame = pd.DataFrame({"unique_id": list("aabbbccc"), "ds": [1, 2, 1, 2, 4, 5, 6, 7], "y": 1.0})
    with pytest.raises(DataError, match=r"series 'b' has no row for 3 \(1 of 4 steps are missing at freq=1\); add"):
        read_panel(frame, ReadOptions(freq=1))
    with pytest.raises(DataError, match=r"series 'b' has no row for 3 .*, and 1 other series has gaps too\)"):
        read_panel(frame.assign(ds=[1, 2, 1, 2, 4, 5, 6, 8]), ReadOptions(freq=1))


@pytest.mark.parametrize("sign", [1, -1])
def test_values_up_to_the_limit_are_accepted(sign: int) -> None:
    frame = pd.DataFrame({"ds": [1, 2, 3], "y": [1.0, sign * 1e30, 0.5]})
    assert read_panel(frame).values[1] == sign * 1e30
    with pytest.raises(DataError, match=r"holds -?1\.5e\+30, above the limit of 1e\+30"):
        read_panel(frame.assign(y=[0.5, sign * 1e30, sign * 1.5e30]))


def test_categorical_columns_are_read_by_their_values() -> None:
    panel = read_panel(long(ds=long()["ds"].dt.strftime("%Y-%m-%d").astype("category")))
    assert panel.freq == "D"
    np.testing.assert_array_equal(panel.first, read_panel(long()).first)


def test_an_empty_column_has_missing_values() -> None:
    table = pa.table({"ds": [1, 2], "y": pa.nulls(2)})
    with pytest.raises(DataError, match=r"a missing value \(NaN\) at 1 \(2 of its values\)"):
        read_panel(table)


def test_large_steps_that_are_not_dates_are_accepted() -> None:
    assert read_panel(pd.DataFrame({"ds": [20241398, 20241399, 20241400], "y": 1.0})).freq == 1


@pytest.mark.parametrize(
    "other",
    [
        "cafe\u0301",
        "caf\xe9\u200b",
        "\ufeffcaf\xe9",
        " caf\xe9",
        "caf\xe9 ",
        "caf\xe9\t",
        "caf\xe9\xa0",
        "cafe\u200d\u0301",
        "caf\xe9\ufe0f",
        "cafe\u034f\u0301",
        "caf\xe9\u3164",
    ],
)
@pytest.mark.parametrize("kind", ["csv", "pandas", "polars"])
def test_series_names_that_look_the_same_are_refused(tmp_path: Path, other: str, kind: str) -> None:
    names = ["caf\xe9", other] * 3
    frame: Any = pd.DataFrame({"unique_id": names, "ds": range(1, 7), "y": 1.0})
    if kind == "csv":
        frame = csv(tmp_path, frame.to_csv(index=False))
    elif kind == "polars":
        frame = pl.from_pandas(frame)
    with pytest.raises(DataError) as caught:
        read_panel(frame)
    assert ascii(names[0]) in str(caught.value)
    assert ascii(other) in str(caught.value)


@pytest.mark.parametrize("blank", [" ", "\t", "\xa0", "  "])
def test_padded_series_names_lose_their_padding(blank: str) -> None:
    names = ["b", "b", f"a{blank}", f"a{blank}"]
    panel = read_panel(pd.DataFrame({"unique_id": names, "ds": [1, 2, 1, 2], "y": [3.0, 4.0, 1.0, 2.0]}))
    assert panel.series == ("a", "b")
    assert panel.values.tolist() == [1.0, 2.0, 3.0, 4.0]


@pytest.mark.parametrize("name", ["", " ", "\u200b", "\0", "\u2060 "])
def test_invisible_series_names_are_refused(name: str) -> None:
    with pytest.raises(DataError, match="'unique_id' has no series name at row 2"):
        read_panel(pd.DataFrame({"unique_id": ["a", "a", name], "ds": [1, 2, 1], "y": 1.0}))
    with pytest.raises(DataError, match="name it or drop it"):
        read_panel(pd.DataFrame({"ds": [1, 2], "a": 1.0, name: 2.0}))


def test_names_that_differ_visibly_are_different_series() -> None:
    names = ["cafe", "caf\xe9", "Cafe", "ca fe", "caf\u00ea"]
    frame = pd.DataFrame({"unique_id": np.repeat(names, 2), "ds": [1, 2] * len(names), "y": 1.0})
    assert set(read_panel(frame).series) == set(names)


@pytest.mark.parametrize("column", ["unique_id\0", "\u200bunique_id", "unique_\u200did", " unique_id"])
def test_a_column_that_only_looks_like_the_id_column_is_refused(column: str) -> None:
    frame = pd.DataFrame({column: ["a", "b"], "ds": [1, 2], "y": [1.0, 2.0]})
    with pytest.raises(DataError) as caught:
        read_panel(frame)
    assert ascii(column) in str(caught.value)


@pytest.mark.parametrize("layout", ["auto", "wide"])
def test_a_time_column_that_was_asked_for_must_exist(layout: Any) -> None:
    frame = pd.DataFrame({"date": pd.date_range("2024-01-01", periods=3), "sales": [1.0, 2.0, 3.0]})
    with pytest.raises(DataError, match=r"no column 'dates'.*time_col='date'"):
        read_panel(frame, ReadOptions(time_col="dates", layout=layout))
    assert read_panel(frame, ReadOptions(layout=layout)).style.time_col == "date"


def test_columns_of_a_wide_frame_that_look_the_same_are_refused() -> None:
    frame = pd.DataFrame({"ds": [1, 2], "caf\xe9": [1.0, 2.0], "cafe\u0301": [1.0, 2.0]})
    with pytest.raises(DataError, match=r"cafe\\u0301"):
        read_panel(frame)


@pytest.mark.parametrize("year", [-5, 10_000, 200_000])
def test_timestamps_outside_of_years_1_to_9999_are_refused(year: int) -> None:
    days = (np.arange(3) + np.datetime64(f"{year:05d}-01-01", "D")).astype("datetime64[s]")
    with pytest.raises(DataError, match="outside of years 1 to 9999 at row 0"):
        read_panel(pa.table({"ds": days, "y": [1.0, 2.0, 3.0]}))
