"""What a fit takes of the windows there are."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from leapts import LeapTS
from leapts.data.panel import Panel
from leapts.data.windows import Windows
from leapts.forecaster.fitting import _some_windows, _step


@given(st.integers(1, 10**6), st.integers(1, 10**5), st.integers(1, 10**4))
def test_windows_are_few_enough_and_of_every_phase_of_the_season(rows: int, most: int, cycles: int) -> None:
    step = _step(rows, most, cycles)
    assert math.ceil(rows / step) <= most
    assert step == 1 or math.gcd(step, cycles) == 1
    assert (step == 1) == (rows <= most)


@pytest.mark.parametrize(("rows", "step"), [(24, 1), (24 * 24, 25), (23 * 24, 23)])
def test_no_more_windows_are_left_out_than_need_be(rows: int, step: int) -> None:
    assert _step(rows, 24, 24) == step


@pytest.mark.parametrize("windows_a_series", [1, 5, 11, 12])
def test_every_place_in_a_series_is_looked_at_where_there_are_too_many_series(windows_a_series: int) -> None:
    values = torch.randn(60, 8 + 2 + windows_a_series - 1, generator=torch.Generator().manual_seed(0)).double()
    panel = Panel.from_matrix(values)
    model = LeapTS(2, 8, val_size=0, max_steps=1, model={"hidden_size": 4, "mixing": "none"}).fit(panel)
    # One in as many windows as a series has: by that step, each would be the first of its series.
    some = _some_windows(model.fitted_, panel, 60)
    assert isinstance(some.windows, Windows)
    assert len(some) <= 60
    starts = some.windows.starts_of(torch.arange(len(some)) * some.step)
    assert set(starts.tolist()) == set(range(windows_a_series))
