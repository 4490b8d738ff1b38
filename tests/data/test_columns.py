"""Columns of a table: natural order of names, the time column, unused columns."""

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leapts.config import ReadOptions
from leapts.data.columns import natural_key, natural_order
from leapts.data.validation import read_panel
from leapts.errors import DataError

_TEXT = st.text(st.sampled_from("ab \n0017²٣é"), min_size=1, max_size=6)


@given(st.lists(_TEXT, max_size=12, unique=True))
def test_both_ways_of_sorting_names_give_natural_order(names: list[str]) -> None:
    assert [names[index] for index in natural_order(names)] == sorted(names, key=natural_key)


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=12, unique=True))
def test_numbers_sort_as_numbers(names: list[int]) -> None:
    assert [names[index] for index in natural_order(names)] == sorted(names)


@pytest.mark.parametrize("categories", [["b", "a", "never"], ["never", "a", "b"], ["a", "b"]])
def test_categories_without_a_row_are_no_series(categories: list[str]) -> None:
    names = pd.Categorical(["b", "b", "b", "a", "a", "a"], categories=categories)
    frame = pd.DataFrame({"unique_id": names, "ds": [1, 2, 3] * 2, "y": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]})
    panel = read_panel(frame)
    assert panel.series == ("a", "b")
    assert panel.values.tolist() == [4.0, 5.0, 6.0, 1.0, 2.0, 3.0]


def test_a_column_of_timestamps_is_the_time_before_one_that_may_be_a_series() -> None:
    days = pd.date_range("2024-01-01", periods=3)
    panel = read_panel(pd.DataFrame({"Datum": days, "T": [1.0, 2, 4], "RH": 5.0}))
    assert panel.series == ("T", "RH")
    assert read_panel(pd.DataFrame({"t": [1, 2, 3], "a": 1.0, "b": 2.0})).series == ("a", "b")


def test_row_numbers_are_no_series() -> None:
    days = pd.date_range("2024-01-01", periods=3)
    for first in (0, 1):
        with pytest.raises(DataError, match="column 'index' holds row numbers, not a series; drop it"):
            read_panel(pd.DataFrame({"index": range(first, first + 3), "date": days, "a": 1.0}))
    assert read_panel(pd.DataFrame({"index": [7.0, 7.5, 7.25], "date": days})).series == ("index",)


def test_other_columns_of_a_long_frame_are_reported_as_unused() -> None:
    frame = pd.DataFrame({"ds": [1, 2, 3], "y": 1.0, "price": 2.0, "note": "x"})
    assert read_panel(frame).unused == ("price", "note")
    assert read_panel(frame.assign(unique_id="a")).unused == ("price", "note")
    assert read_panel(frame[["ds", "y"]]).unused == ()
    assert read_panel(frame[["ds", "y", "price"]], ReadOptions(layout="wide")).unused == ()
