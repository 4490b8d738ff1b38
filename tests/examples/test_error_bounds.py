from itertools import pairwise, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from error_bounds import LocalError, best_schedule, bounds, direct_bound, main, recursive_bound, schedule_bound

GROWTHS = st.floats(1, 1.5)
HORIZONS = st.integers(1, 40)


@st.composite
def superadditive(draw: st.DrawFn) -> LocalError:
    """`a l + b l ** p` with p above 1: more steps at once always cost more than the same steps univariate."""
    slope, curve, power = draw(st.floats(0.001, 1)), draw(st.floats(0.001, 1)), draw(st.floats(1.05, 3))
    return lambda length: slope * length + curve * length**power


@given(HORIZONS, GROWTHS, superadditive())
def test_scheduling_never_has_a_worse_bound(horizon: int, growth: float, local_error: LocalError) -> None:
    found = bounds(horizon, growth, local_error)
    assert found.scheduled <= found.direct
    assert found.scheduled <= found.recursive * (1 + 1e-12)
    assert sum(found.leaps) == horizon


@given(st.integers(1, 9), GROWTHS, superadditive())
def test_no_partition_beats_the_one_found(horizon: int, growth: float, local_error: LocalError) -> None:
    found = schedule_bound(best_schedule(horizon, growth, local_error), growth, local_error)
    for cuts in product([False, True], repeat=horizon - 1):
        places = [0, *(place + 1 for place, cut in enumerate(cuts) if cut), horizon]
        leaps = tuple(end - start for start, end in pairwise(places))
        assert found <= schedule_bound(leaps, growth, local_error) * (1 + 1e-12)


@given(HORIZONS, st.floats(1.001, 1.5), superadditive())
def test_the_recursive_bound_is_the_papers_geometric_sum(horizon: int, growth: float, local_error: LocalError) -> None:
    closed = local_error(1) * (growth**horizon - 1) / (growth - 1)
    assert recursive_bound(horizon, growth, local_error) == pytest.approx(closed, rel=1e-9)


def test_between_the_extremes_a_schedule_beats_both() -> None:
    found = bounds(48, 1.05, lambda length: 0.01 * length * (1 + (length / 30) ** 2))
    assert found.leaps == (16, 16, 16)
    assert found.scheduled < 0.96 * min(found.direct, found.recursive)
    assert found.direct == direct_bound(48, lambda length: 0.01 * length * (1 + (length / 30) ** 2))


def test_the_example_prints_its_table(capsys: pytest.CaptureFixture[str]) -> None:
    main()
    assert len(capsys.readouterr().out.splitlines()) == 6
