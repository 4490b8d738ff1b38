"""What a fit takes of the windows there are."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leapts.data.frequency import seasonal_period
from leapts.forecaster.fitting import _step


@given(st.integers(1, 10**6), st.integers(1, 10**5), st.sampled_from(["h", "D", "15min", "MS", 1]))
def test_windows_are_few_enough_and_of_every_phase_of_the_season(rows: int, most: int, freq: str | int) -> None:
    step = _step(rows, most, freq)
    assert math.ceil(rows / step) <= most
    assert step == 1 or math.gcd(step, seasonal_period(freq)) == 1
    assert (step == 1) == (rows <= most)


@pytest.mark.parametrize(("rows", "step"), [(24, 1), (24 * 24, 25), (23 * 24, 23)])
def test_no_more_windows_are_left_out_than_need_be(rows: int, step: int) -> None:
    assert _step(rows, 24, "h") == step
