import pytest
from hypothesis import given
from hypothesis import strategies as st

from leapts.data.splits import (
    Span,
    Split,
    split_by_fractions,
    split_by_months,
    split_by_steps,
)
from leapts.errors import DataError


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


def test_shares_may_leave_nothing_to_validate_on() -> None:
    assert split_by_fractions(10, 0.7, 0.3) == split_by_steps(7, 0, 3)
