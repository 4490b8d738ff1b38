import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from leapts.data.panel import Panel
from leapts.data.splits import Span, split_by_fractions, split_by_steps
from leapts.data.windows import AlignedWindows
from leapts.errors import DataError
from leapts_bench.splits import split_at, split_by_sizes, with_history


def counting(length: int, series: int = 2) -> Panel:
    return Panel.from_matrix(torch.arange(length, dtype=torch.float64).repeat(series, 1))


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
    assert with_history(Span(5, 9), 3) == Span(2, 9)
    assert with_history(Span(2, 9), 3) == Span(0, 9)
