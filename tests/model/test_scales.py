"""The scale grid against a table computed by hand from the paper's appendix, and its properties."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leapts.model.schedulers import ScaleGrid

HORIZONS = (1, 2, 3, 12, 18, 24, 25, 26, 36, 48, 60, 96, 192, 336, 720)

# For each look-back, horizon by horizon: the last length of short, the first and last of mid, the first of long.
# A dash is a single level. Short begins at 1 and long ends at the horizon. The entries at horizon 2 with look-backs 1
# to 3 are our choice: the printed formulas put the start of long at 3, past its end.
TABLE = {
    1: "- 1,2-2,2 1,2-2,3 1,2-2,6 1,2-2,9 1,2-2,12 1,2-2,12 1,2-2,13 1,2-2,18 1,2-2,24 1,2-2,30 1,2-2,48 1,2-2,96 "
    "1,2-2,168 1,2-2,360",
    2: "- 1,2-2,2 1,2-2,3 1,2-2,6 1,2-2,9 1,2-2,12 1,2-2,12 1,2-2,13 1,2-2,18 1,2-2,24 1,2-2,30 1,2-2,48 1,2-2,96 "
    "1,2-2,168 1,2-2,360",
    3: "- 1,2-2,2 1,2-2,3 1,2-2,6 1,2-2,9 1,2-2,12 1,2-2,12 1,2-2,13 1,2-2,18 1,2-2,24 1,2-2,30 1,2-2,48 1,2-2,96 "
    "1,2-2,168 1,2-2,360",
    4: "- - 1,2-2,3 1,2-2,6 1,2-2,9 1,2-2,12 1,2-2,12 1,2-2,13 1,2-2,18 1,2-2,24 1,2-2,30 1,2-2,48 1,2-2,96 "
    "1,2-2,168 1,2-2,360",
    36: "- - - 9,10-11,12 9,10-17,18 9,10-18,19 9,10-18,19 9,10-18,19 9,10-18,19 9,10-18,24 9,10-18,30 9,10-18,48 "
    "9,10-18,96 9,10-18,168 9,10-18,360",
    96: "- - - - - - - 24,25-25,26 24,25-35,36 24,25-47,48 24,25-48,49 24,25-48,49 24,25-48,96 24,25-48,168 "
    "24,25-48,360",
    192: "- - - - - - - - - - 48,49-59,60 48,49-95,96 48,49-96,97 48,49-96,168 48,49-96,360",
    336: "- - - - - - - - - - - 84,85-95,96 84,85-168,169 84,85-168,169 84,85-168,360",
    512: "- - - - - - - - - - - - 128,129-191,192 128,129-256,257 128,129-256,360",
    720: "- - - - - - - - - - - - 180,181-191,192 180,181-335,336 180,181-360,361",
}


def _intervals(entry: str, horizon: int) -> list[tuple[int, int]]:
    if entry == "-":
        return [(1, horizon)]
    short, mid, long = entry.split(",")
    first, last = mid.split("-")
    return [(1, int(short)), (int(first), int(last)), (int(long), horizon)]


@pytest.mark.parametrize("lookback", TABLE)
def test_grid_equals_the_table_computed_by_hand(lookback: int) -> None:
    entries = TABLE[lookback].split()
    assert len(entries) == len(HORIZONS)
    for horizon, entry in zip(HORIZONS, entries, strict=True):
        grid = ScaleGrid.for_window(lookback, horizon)
        assert list(zip(grid.shortest, grid.longest, strict=True)) == _intervals(entry, horizon), (lookback, horizon)


@given(lookback=st.integers(1, 3000), horizon=st.integers(1, 3000))
def test_intervals_are_never_empty_and_stay_inside_the_horizon(lookback: int, horizon: int) -> None:
    grid = ScaleGrid.for_window(lookback, horizon)
    for shortest, longest in zip(grid.shortest, grid.longest, strict=True):
        assert 1 <= shortest <= longest <= horizon


@given(lookback=st.integers(1, 3000), horizon=st.integers(1, 3000))
def test_scales_grow_and_the_longest_reaches_the_whole_horizon(lookback: int, horizon: int) -> None:
    grid = ScaleGrid.for_window(lookback, horizon)
    assert list(grid.longest) == sorted(grid.longest)
    assert list(grid.shortest) == sorted(grid.shortest)
    assert grid.shortest[0] == 1
    assert grid.horizon == horizon


@given(lookback=st.integers(1, 3000), horizon=st.integers(1, 3000))
def test_one_level_exactly_when_the_horizon_is_short_for_the_lookback(lookback: int, horizon: int) -> None:
    grid = ScaleGrid.for_window(lookback, horizon)
    assert (len(grid) == 1) == (horizon <= lookback // 4 + 1)
    assert grid.names == (("long",) if len(grid) == 1 else ("short", "mid", "long"))


@pytest.mark.parametrize(("horizon", "long"), [(3, 3), (4, 3), (5, 3), (7, 3), (8, 4), (9, 4)])
def test_long_leaps_begin_at_three_or_at_half_the_horizon(horizon: int, long: int) -> None:
    assert ScaleGrid.for_window(4, horizon).shortest == (1, 2, long)
