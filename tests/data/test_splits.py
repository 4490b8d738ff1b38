import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from leapts.data.panel import Panel
from leapts.data.splits import (
    Span,
    Split,
    split_at,
    split_by_fractions,
    split_by_months,
    split_by_sizes,
    split_by_steps,
)
from leapts.data.windows import AlignedWindows
from leapts.errors import DataError


def counting(length: int, series: int = 2) -> Panel:
    return Panel.from_matrix(torch.arange(length, dtype=torch.float64).repeat(series, 1))


def test_ett_months_give_the_split_boundaries_of_the_benchmarks() -> None:
    assert split_by_months(12, 4, 4, 24) == Split(Span(0, 8640), Span(8640, 11520), Span(11520, 14400))
    assert split_by_months(12, 4, 4, 96).test == Span(46080, 57600)


@pytest.mark.parametrize(("length", "sizes"), [(966, (676, 97, 193)), (7588, (5311, 760, 1517)), (10, (7, 1, 2))])
def test_fractions_round_as_the_benchmarks_do(length: int, sizes: tuple[int, int, int]) -> None:
    assert split_by_fractions(length, 0.7, 0.2) == split_by_steps(*sizes)


def test_a_share_of_a_whole_number_of_steps_is_that_number() -> None:
    assert int(100 * 0.29) == 28  # in floating point
    assert split_by_fractions(100, 0.29, 0.57) == split_by_steps(29, 14, 57)


@given(st.integers(10, 5000), st.floats(0.1, 0.8), st.floats(0.1, 0.2))
def test_fractions_cover_the_whole_panel(length: int, train: float, test: float) -> None:
    split = split_by_fractions(length, train, test)
    assert split.train.start == 0
    assert split.train.stop == split.val.start
    assert split.val.stop == split.test.start
    assert split.test.stop == length


@pytest.mark.parametrize(("train", "test"), [(0.9, 0.2), (0.0, 0.2), (0.7, 0.0)])
def test_impossible_fractions_are_refused(train: float, test: float) -> None:
    with pytest.raises(DataError, match="cannot be split"):
        split_by_fractions(100, train, test)


@given(st.integers(1, 12), st.integers(1, 8))
def test_every_step_of_the_test_span_is_forecast_and_no_other(input_size: int, horizon: int) -> None:
    split = split_by_fractions(100, 0.7, 0.2)
    parts = split_at(counting(100), split, input_size)
    windows = AlignedWindows(parts.test.matrix(), input_size, horizon)
    future = windows.gather(torch.arange(len(windows))).target[:, 0]
    assert future.unique().tolist() == list(range(80, 100))
    assert len(windows) == 20 - horizon + 1


def test_the_training_part_ends_before_validation() -> None:
    parts = split_at(counting(100), split_by_fractions(100, 0.7, 0.2), 10)
    assert parts.train.matrix()[0].tolist() == list(range(70))
    assert parts.val.matrix()[0].tolist() == list(range(60, 80))
    assert parts.val.first.tolist() == [61, 61]  # steps count from 1


def test_a_panel_shorter_than_the_split_boundaries_is_refused() -> None:
    with pytest.raises(DataError, match=r"has 99 values .*but this split needs 100"):
        split_at(counting(99), split_by_steps(70, 10, 20), 5)


def test_sizes_count_from_the_end_of_each_series() -> None:
    parts = split_by_sizes(counting(10), val_size=2, test_size=3, input_size=4)
    assert [part.matrix()[0].tolist() for part in parts] == [
        [0, 1, 2, 3, 4],
        [1, 2, 3, 4, 5, 6],
        [3, 4, 5, 6, 7, 8, 9],
    ]


def test_sizes_may_be_zero() -> None:
    parts = split_by_sizes(counting(10), val_size=0, test_size=0, input_size=4)
    assert parts.train.lengths.tolist() == [10, 10]
    assert parts.val.lengths.tolist() == parts.test.lengths.tolist() == [0, 0]


def test_sizes_that_leave_nothing_to_train_on_are_refused() -> None:
    with pytest.raises(DataError, match=r"validation \(5\), test \(5\) and training needs 11"):
        split_by_sizes(counting(10), val_size=5, test_size=5, input_size=1)


def test_history_begins_no_earlier_than_the_series() -> None:
    assert Span(5, 9).with_history(3) == Span(2, 9)
    assert Span(2, 9).with_history(3) == Span(0, 9)


def test_shares_may_leave_nothing_to_validate_on() -> None:
    assert split_by_fractions(10, 0.7, 0.3) == split_by_steps(7, 0, 3)
