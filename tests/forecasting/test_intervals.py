import math
import re
from collections.abc import Callable
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leapts.errors import ConfigError
from leapts.forecasting.intervals import MAX_BOUNDS, Bound, interval_bounds, quantile_bounds, requested_bounds


def column_names(levels: Any, model: str = "LeapTS") -> list[str]:
    return [bound.column for bound in interval_bounds(levels, model)]


# Names


def test_columns_rise_from_left_to_right() -> None:
    assert column_names([80, 95]) == ["LeapTS-lo-95", "LeapTS-lo-80", "LeapTS-hi-80", "LeapTS-hi-95"]
    assert column_names([99.5, 80.0], "M") == ["M-lo-99.5", "M-lo-80", "M-hi-80", "M-hi-99.5"]
    assert column_names([np.float64(80)]) == ["LeapTS-lo-80", "LeapTS-hi-80"]
    assert column_names([]) == []


def test_quantiles_are_bounds_of_levels() -> None:
    assert quantile_bounds([0.1, 0.9, 0.5, 0.0025, 0.975]) == (
        Bound("LeapTS-lo-80", 80, -1),
        Bound("LeapTS-hi-80", 80, 1),
        Bound("LeapTS-median", 0, 1),
        Bound("LeapTS-lo-99.5", 99.5, -1),
        Bound("LeapTS-hi-95", 95, 1),
    )
    assert [bound.quantile for bound in interval_bounds([80, 95])] == [0.025, 0.1, 0.9, 0.975]


@given(st.sampled_from([quantile for quantile in np.linspace(0.001, 0.999, 999).round(3).tolist() if quantile != 0.5]))
def test_every_quantile_has_the_level_of_its_mirror(quantile: float) -> None:
    one, other = quantile_bounds([quantile]), quantile_bounds([round(1 - quantile, 3)])
    assert one[0].level == other[0].level == pytest.approx(abs(2 * quantile - 1) * 100)
    assert len(str(one[0].level)) <= 4
    assert one[0].side == -other[0].side
    assert one[0].quantile == quantile


# What is refused


@pytest.mark.parametrize("level", [0, 100, -5, 120, math.nan, math.inf, True, 0.0, 100.0])
def test_levels_lie_between_0_and_100(level: float) -> None:
    with pytest.raises(ConfigError, match="is not between 0 and 100"):
        column_names([level])


@pytest.mark.parametrize("nearly", [99.99999999999999, 100 - 1e-10])
def test_levels_that_round_to_100_are_refused(nearly: float) -> None:
    with pytest.raises(ConfigError, match="is not between 0 and 100"):
        interval_bounds([nearly])


@given(st.floats(0, 1))
def test_every_accepted_quantile_has_a_normal_score(quantile: float) -> None:
    try:
        (bound,) = quantile_bounds([quantile])
    except ConfigError:
        assert not 1e-11 <= quantile <= 1 - 1e-11
    else:
        assert math.isfinite(NormalDist().inv_cdf(bound.quantile))


@given(st.floats(1, 100))
def test_both_quantiles_of_every_accepted_level_have_normal_scores(level: float) -> None:
    try:
        bounds = interval_bounds([level])
    except ConfigError:
        assert level > 100 - 1e-8
    else:
        assert all(math.isfinite(NormalDist().inv_cdf(bound.quantile)) for bound in bounds)


@pytest.mark.parametrize("bounds", [interval_bounds, quantile_bounds])
def test_the_number_of_levels_has_a_limit(bounds: Callable[[list[float]], tuple[Bound, ...]]) -> None:
    scale = 50 if bounds is interval_bounds else 1  # levels from 1.05 to 98.95, or quantiles
    numbers = (scale * np.linspace(0.021, 1.979, MAX_BOUNDS) / (1 if scale > 1 else 2)).round(9).tolist()
    assert len(bounds(numbers)) in (MAX_BOUNDS, 2 * MAX_BOUNDS)
    with pytest.raises(ConfigError, match=r"1,001 \w+: ask for at most 1,000"):
        bounds([*numbers, numbers[0]])


@pytest.mark.parametrize(("share", "percent"), [(0.8, "80"), (0.95, "95"), (0.29, "29"), (0.995, "99.5")])
def test_a_share_is_not_taken_for_a_percentage(share: float, percent: str) -> None:
    with pytest.raises(ConfigError, match=rf"percentages: for {re.escape(percent)} % say {re.escape(percent)}$"):
        column_names([95, share])
    column_names([1])


def test_levels_and_quantiles_are_given_once() -> None:
    with pytest.raises(ConfigError, match="level 80 is given twice"):
        column_names([80, 95, 80.0])
    with pytest.raises(ConfigError, match=r"quantile 0\.1 is given twice"):
        quantile_bounds([0.1, 0.1])
    for quantile in (0.0, 1.0, 80.0, math.nan):
        with pytest.raises(ConfigError, match="is not between 0 and 1"):
            quantile_bounds([quantile])


def test_levels_and_quantiles_exclude_each_other() -> None:
    assert requested_bounds(None, None) == ()
    with pytest.raises(ConfigError, match="level or quantiles, not both"):
        requested_bounds([80], [0.1])
