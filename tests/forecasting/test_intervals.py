import math
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from torch import Tensor

from leapts.errors import ConfigError, DataError
from leapts.forecasting import intervals
from leapts.forecasting.intervals import (
    Bound,
    ConformalScores,
    coverage,
    enough_for_own_groups,
    interval_bounds,
    quantile_bounds,
    windows_needed,
)

levels = st.one_of(st.integers(1, 99), st.floats(1, 99.5).map(lambda level: round(level, 2)))


def column_names(levels: Any, model: str = "LeapTS") -> list[str]:
    return [bound.column for bound in interval_bounds(levels, model)]


def normal(*shape: int, seed: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def pooled(residuals: Tensor, **options: Any) -> ConformalScores:
    return ConformalScores.fit(residuals, torch.ones(len(residuals), dtype=residuals.dtype), **options)


# Quantiles


def test_the_quantile_by_hand() -> None:
    scores = pooled(torch.tensor([[3.0], [-1.0], [4.0], [-2.0]]))
    assert scores.scores.flatten().tolist() == [1, 2, 3, 4]
    # ceil(5 * 0.2) = 1, ceil(5 * 0.5) = 3, ceil(5 * 0.6) = 3, ceil(5 * 0.61) = 4, ceil(5 * 0.8) = 4
    found = [scores.half_widths(level).item() for level in (20, 50, 60, 61, 80)]
    assert found == [1, 3, 3, 4, 4]


def test_steps_have_their_own_quantiles() -> None:
    scores = pooled(torch.tensor([[1.0, -30.0], [2.0, 10.0], [-3.0, 20.0]]))
    assert scores.half_widths(50).tolist() == [[2, 20]]
    assert scores.half_widths(75).tolist() == [[3, 30]]


@pytest.mark.parametrize(("level", "needed"), [(80, 4), (95, 19), (99, 99), (99.5, 199), (99.9, 999)])
def test_a_level_needs_exactly_so_many_windows(level: float, needed: int) -> None:
    assert windows_needed(level) == needed
    enough = pooled(normal(needed, 2, seed=0))
    assert torch.equal(enough.half_widths(level), enough.scores[-1:].double())
    with pytest.raises(DataError, match=rf"needs {needed} held-out windows, and there are {needed - 1}; "):
        pooled(normal(needed - 1, 2, seed=0)).half_widths(level)


@given(st.integers(1, 400), levels)
def test_too_few_windows_is_an_error_and_its_cure_works(count: int, level: float) -> None:
    scores = pooled(torch.arange(1.0, count + 1)[:, None])
    if count >= windows_needed(level):
        rank = math.ceil(round((count + 1) * level / 100, 9))
        assert scores.half_widths(level).item() == rank
        return
    with pytest.raises(DataError, match="ask for a level of at most") as error:
        scores.half_widths(level)
    cure = float(str(error.value).split("at most ")[1].split(",")[0])
    assert cure < level
    assert scores.half_widths(cure).item() == count


# Coverage


@pytest.mark.parametrize("level", [50, 80, 95])
def test_new_residuals_are_covered_as_often_as_promised(level: int) -> None:
    """Over many calibrations of 39 windows each, coverage is ceil(40 L) / 40 up to binomial error."""
    windows, trials, h = 39, 4000, 3
    held_out, fresh = normal(trials * windows, h, seed=1), normal(trials, h, seed=2)
    groups = torch.arange(trials).repeat_interleave(windows)
    # Every trial has its own size, so that only scaled scores can be compared.
    size = 10 ** torch.linspace(-3, 3, trials, dtype=torch.float64)
    scores = ConformalScores.fit(held_out * size[groups][:, None], size[groups], groups)
    columns = scores.around(torch.zeros(trials, h), size, interval_bounds([level]), torch.arange(trials))
    lo, hi = columns[f"LeapTS-lo-{level}"], columns[f"LeapTS-hi-{level}"]
    exact = math.ceil(40 * level / 100) / 40
    for step in range(h):
        covered = coverage(lo[:, step], hi[:, step], fresh[:, step] * size)
        assert abs(covered - exact) < 4 * math.sqrt(exact * (1 - exact) / trials)


def test_pooled_scores_of_series_of_all_sizes_cover_each_of_them() -> None:
    series = torch.arange(5).repeat_interleave(400)
    size = torch.tensor([1e-3, 1.0, 20.0, 1e4, 1e6], dtype=torch.float64)
    scores = ConformalScores.fit(normal(2000, 1, seed=3) * size[series][:, None], size[series])
    fresh = normal(5, 2000, seed=4) * size[:, None]
    columns = scores.around(torch.zeros(5, 1), size, interval_bounds([90]))
    for row in range(5):
        lo, hi = (columns[f"LeapTS-{side}-90"][row].expand(2000) for side in ("lo", "hi"))
        # The error of 2000 draws and of the quantile of 2000 scores.
        assert abs(coverage(lo, hi, fresh[row]) - 0.9) < 4 * math.sqrt(0.9 * 0.1 * (1 / 2000 + 1 / 2000))


def test_coverage_counts_the_ends_as_inside() -> None:
    lo, hi = torch.tensor([0.0, 0.0, 0.0, 0.0]), torch.tensor([1.0, 1.0, 1.0, 1.0])
    assert coverage(lo, hi, torch.tensor([0.0, 1.0, 1.1, -0.1])) == 0.5
    with pytest.raises(DataError, match="no actual values"):
        coverage(torch.empty(0), torch.empty(0), torch.empty(0))


# Intervals


@given(
    st.lists(levels, min_size=2, max_size=4, unique=True),
    st.integers(0, 2**31),
    st.floats(1e-6, 1e6),
    st.floats(-1e9, 1e9),
)
def test_intervals_hold_the_point_and_nest(chosen: list[float], seed: int, scale: float, centre: float) -> None:
    scores = pooled(normal(200, 4, seed=seed))
    point = centre + normal(3, 4, seed=seed + 1)
    columns = scores.around(point, torch.full((3,), scale, dtype=torch.float64), interval_bounds(chosen))
    ordered = list(columns.values())
    ordered.insert(len(chosen), point)
    for lower, upper in pairwise(ordered):
        assert bool((lower <= upper).all())


def test_bounds_lie_a_scaled_half_width_from_the_point() -> None:
    scores = ConformalScores.fit(torch.tensor([[2.0], [4.0], [600.0]]), torch.tensor([2.0, 2.0, 200.0]))
    columns = scores.around(torch.tensor([[10.0], [-10.0]]), torch.tensor([1.0, 5.0]), interval_bounds([50]))
    assert columns["LeapTS-lo-50"].tolist() == [[8], [-20]]
    assert columns["LeapTS-hi-50"].tolist() == [[12], [0]]


def test_groups_keep_their_scores_apart() -> None:
    residuals = torch.tensor([[1.0], [100.0], [2.0], [3.0], [300.0], [200.0], [4.0]])
    groups = torch.tensor([0, 1, 0, 0, 1, 1, 0])
    scores = ConformalScores.fit(residuals, torch.ones(7), groups)
    assert scores.counts.tolist() == [4, 3]
    assert scores.half_widths(75).tolist() == [[4], [300]]
    columns = scores.around(torch.zeros(3, 1), torch.ones(3), interval_bounds([40]), torch.tensor([1, 0, 1]))
    assert columns["LeapTS-hi-40"].flatten().tolist() == [200, 2, 200]
    with pytest.raises(DataError, match="give the group"):
        scores.around(torch.zeros(3, 1), torch.ones(3), interval_bounds([40]))
    with pytest.raises(
        DataError, match="level 80 needs 4 held-out windows, and 1 of 2 groups have fewer, one of them 3"
    ):
        scores.half_widths(80)


@given(st.lists(st.integers(0, 4), min_size=1, max_size=40), st.integers(1, 12))
def test_groups_equal_a_loop_over_groups(members: list[int], limit: int) -> None:
    groups = torch.tensor(members)
    residuals = normal(len(members), 2, seed=len(members)).float()
    scores = ConformalScores.fit(residuals, torch.ones(len(members)), groups, limit=limit)
    parts = scores.scores.split(scores.counts.tolist())
    for group in range(max(members) + 1):
        own = residuals[groups == group].abs()
        kept = parts[group]
        assert len(kept) == min(len(own), limit)
        assert bool((kept.diff(dim=0) >= 0).all())
        for step in range(2):
            assert set(kept[:, step].tolist()) <= set(own[:, step].tolist())
        if len(own) <= limit:
            assert torch.equal(kept, own.sort(dim=0).values)


def test_series_have_their_own_group_when_all_have_windows_enough() -> None:
    assert enough_for_own_groups(torch.tensor([30, 31, 90]), 24)
    assert not enough_for_own_groups(torch.tensor([30, 29, 90]), 24)
    assert not enough_for_own_groups(torch.full((100_000,), 30), 18)


def test_series_with_groups_of_their_own_leave_room_for_the_group_of_all() -> None:
    h = 840
    most = max(count for count in range(1300, 1400) if enough_for_own_groups(torch.full((count,), 30), h))
    assert (most + 1) * h * 30 <= intervals.MAX_SCORES < (most + 2) * h * 30


def test_a_large_group_costs_small_ones_no_room() -> None:
    groups = torch.cat([torch.arange(100).repeat_interleave(30), torch.full((3000,), 100)])
    scores = ConformalScores.fit(normal(6000, 2, seed=8), torch.ones(6000, dtype=torch.float64), groups)
    assert scores.counts.tolist() == [30] * 100 + [3000]
    assert scores.scores.shape == (6000, 2)


def test_scores_of_schema_1_are_read() -> None:
    table = torch.tensor([[[1.0], [2.0], [3.0]], [[5.0], [torch.inf], [torch.inf]]])
    read = ConformalScores.from_tensors({"scores": table, "counts": torch.tensor([3, 1])})
    assert read.scores.flatten().tolist() == [1, 2, 3, 5]
    assert read.counts.tolist() == [3, 1]


def test_many_windows_are_sampled_the_same_way_every_time() -> None:
    residuals = normal(20_000, 2, seed=5)
    once, again = pooled(residuals), pooled(residuals)
    assert once.scores.shape == (4096, 2)
    assert torch.equal(once.scores, again.scores)
    assert not torch.equal(once.scores, pooled(residuals, seed=1).scores)
    # The true quantile of |N(0, 1)| at 90 % is 1.645; its sampling error here is 0.02.
    assert once.half_widths(90).flatten().tolist() == pytest.approx([1.645, 1.645], abs=0.08)


def test_the_scores_of_a_hundred_thousand_series_stay_small(monkeypatch: pytest.MonkeyPatch) -> None:
    series = torch.arange(100_000)
    scores = ConformalScores.fit(normal(100_000, 2, seed=6), torch.ones(100_000, dtype=torch.float64))
    assert scores.scores.numel() == 4096 * 2
    monkeypatch.setattr(intervals, "MAX_SCORES", 30 * 1000)
    with pytest.raises(DataError, match="pool the groups"):
        ConformalScores.fit(torch.zeros(100_000, 2), torch.ones(100_000), series)
    fewer = ConformalScores.fit(torch.zeros(2000, 2), torch.ones(2000), torch.arange(2000) % 200)
    assert fewer.counts.tolist() == [10] * 200
    capped = ConformalScores.fit(torch.zeros(2000, 300), torch.ones(2000))
    assert capped.counts.tolist() == [100]


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
    scores, point = pooled(normal(50, 3, seed=7)), normal(2, 3, seed=8)
    ones = torch.ones(2)
    by_quantile = scores.around(point, ones, quantile_bounds([0.1, 0.5, 0.9]))
    by_level = scores.around(point, ones, interval_bounds([80]))
    assert torch.equal(by_quantile["LeapTS-lo-80"], by_level["LeapTS-lo-80"])
    assert torch.equal(by_quantile["LeapTS-hi-80"], by_level["LeapTS-hi-80"])
    assert torch.equal(by_quantile["LeapTS-median"], point)


@given(st.sampled_from([quantile for quantile in np.linspace(0.001, 0.999, 999).round(3).tolist() if quantile != 0.5]))
def test_every_quantile_has_the_level_of_its_mirror(quantile: float) -> None:
    one, other = quantile_bounds([quantile]), quantile_bounds([round(1 - quantile, 3)])
    assert one[0].level == other[0].level == pytest.approx(abs(2 * quantile - 1) * 100)
    assert len(str(one[0].level)) <= 4
    assert one[0].side == -other[0].side


# What is refused


@pytest.mark.parametrize("level", [0, 100, -5, 120, math.nan, math.inf, True, 0.0, 100.0])
def test_levels_lie_between_0_and_100(level: float) -> None:
    with pytest.raises(ConfigError, match="is not between 0 and 100"):
        column_names([level])
    with pytest.raises(ConfigError, match="is not between 0 and 100"):
        pooled(torch.ones(3, 1)).half_widths(level)


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


def test_residuals_that_say_nothing_are_refused() -> None:
    with pytest.raises(DataError, match=r"shape \[0, 3\] give no scores"):
        pooled(torch.empty(0, 3))
    for bad in (math.nan, math.inf):
        with pytest.raises(DataError, match="missing or infinite"):
            pooled(torch.tensor([[1.0], [bad]]))
        for seed in range(4):  # also in a window that is not kept
            with pytest.raises(DataError, match="missing or infinite"):
                pooled(torch.tensor([[1.0], [bad]]), limit=1, seed=seed)
    for bad in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(DataError, match="not a positive number"):
            ConformalScores.fit(torch.ones(2, 1), torch.tensor([1.0, bad]))


# Files


def test_scores_survive_a_file(tmp_path: Path) -> None:
    scores = ConformalScores.fit(normal(9, 2, seed=9), torch.ones(9, dtype=torch.float64), torch.arange(9) % 2)
    save_file(scores.to_tensors(), tmp_path / "scores.safetensors")
    loaded = ConformalScores.from_tensors(load_file(tmp_path / "scores.safetensors"))
    assert torch.equal(loaded.scores, scores.scores)
    assert torch.equal(loaded.half_widths(75), scores.half_widths(75))


@pytest.mark.parametrize(
    "tensors",
    [
        {"scores": torch.ones(2, 3)},
        {"scores": torch.ones(2, 3), "counts": torch.tensor([3])},
        {"scores": torch.ones(2, 3), "counts": torch.tensor([3, -1])},
        {"scores": torch.ones(2, 3), "counts": torch.tensor(2)},
        {"scores": torch.ones(2), "counts": torch.tensor([2])},
        {"scores": torch.ones(0, 3), "counts": torch.ones(0, dtype=torch.int64)},
        {"scores": torch.tensor([[2.0], [1.0]]), "counts": torch.tensor([2])},
        {"scores": torch.tensor([[2.0], [math.nan]]), "counts": torch.tensor([2])},
        # As schema 1 had them.
        {"scores": torch.ones(1, 2, 3), "counts": torch.tensor([3])},
        {"scores": torch.ones(1, 2, 3), "counts": torch.tensor([1])},
        {"scores": torch.tensor([[[2.0], [1.0]]]), "counts": torch.tensor([2])},
    ],
)
def test_tensors_that_are_no_scores_are_refused(tensors: dict[str, Tensor]) -> None:
    with pytest.raises(DataError, match="save them again"):
        ConformalScores.from_tensors(tensors)


# At the limits


def test_the_last_group_alone_has_its_own_scores() -> None:
    residuals = torch.tensor([[1.0], [2.0], [3.0], [9.0], [4.0], [5.0]])
    scores = ConformalScores.fit(residuals, torch.ones(6), torch.tensor([0, 0, 0, 1, 2, 2]))
    last = scores.of_last_group()
    assert last.scores.tolist() == [[4.0], [5.0]]
    assert last.counts.tolist() == [2]
    last.scores.zero_()
    assert scores.scores[4].item() == 4.0


@pytest.mark.parametrize("windows", [1, 2, 9, 30, 400])
def test_the_level_that_is_offered_is_the_highest_in_tenths(windows: int) -> None:
    highest = intervals._highest_level(windows)
    assert windows_needed(highest) <= windows < windows_needed(round(highest + 0.1, 1))


def test_one_score_is_a_score() -> None:
    one = ConformalScores.from_tensors({"scores": torch.ones(1, 1), "counts": torch.tensor([1])})
    assert one.half_widths(50).item() == 1.0


def test_as_many_groups_are_kept_as_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two series, and the group of all."""
    windows = torch.full((2,), intervals.WINDOWS_FOR_OWN_GROUP)
    monkeypatch.setattr(intervals, "MAX_SCORES", 3 * 3 * intervals.WINDOWS_FOR_OWN_GROUP)
    assert enough_for_own_groups(windows, 3)
    assert not enough_for_own_groups(windows, 4)
    groups = torch.arange(3).repeat_interleave(50)
    assert pooled(normal(150, 3, seed=0), groups=groups).counts.tolist() == [30] * 3
    with pytest.raises(DataError, match="3 groups of 4 steps are too many"):
        pooled(normal(150, 4, seed=0), groups=groups)


@pytest.mark.parametrize(("windows", "level"), [(9, "90"), (6, "85.7"), (2, "66.6"), (1000, "99.9")])
def test_the_highest_level_that_so_many_windows_allow_is_named(windows: int, level: str) -> None:
    with pytest.raises(DataError, match=rf"ask for a level of at most {level}, or hold more windows out"):
        pooled(normal(windows, 1, seed=0)).half_widths(99.95)
