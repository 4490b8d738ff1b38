"""Conformalized quantile regression: coverage, weights, groups, and quantiles of any level."""

import math
from itertools import accumulate, pairwise
from pathlib import Path
from statistics import NormalDist

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from torch import Tensor

from leapts.config import QUANTILES
from leapts.errors import DataError
from leapts.forecasting import intervals as module
from leapts.forecasting.intervals import (
    POINT_LEVELS,
    WINDOWS_FOR_OWN_GROUP,
    Calibration,
    own_groups,
    quantile_at,
    without_crossing,
)

MEDIAN = QUANTILES.index(0.5)
LEVELS = st.floats(0.0005, 0.9995).map(lambda level: round(level, 4))
SEEDS = st.integers(0, 2**31)


def normal(*shape: int, seed: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def learned(rows: int, h: int, *, seed: int, levels: tuple[float, ...] = QUANTILES) -> Tensor:
    """Quantiles of every row and step, with spreads of all sizes."""
    scores = torch.tensor([NormalDist().inv_cdf(level) for level in levels])
    spread = (0.5 * normal(rows, h, seed=seed)).exp()
    return normal(rows, h, seed=seed + 1).unsqueeze(-1) + spread.unsqueeze(-1) * scores


def pooled(quantiles: Tensor, targets: Tensor, levels: tuple[float, ...] = QUANTILES) -> Calibration:
    rows = len(targets)
    return Calibration.fit(quantiles, targets, levels, torch.zeros(rows, dtype=torch.int64), torch.zeros(rows))


def points(targets: Tensor, ages: Tensor | None = None) -> Calibration:
    """Corrections of point forecasts that are all zero."""
    rows = len(targets)
    ages = torch.zeros(rows) if ages is None else ages
    groups = torch.zeros(rows, dtype=torch.int64)
    return Calibration.fit(torch.zeros(rows, targets.shape[1], 1), targets, [0.5], groups, ages)


def offset(found: Calibration, level: float, *, group: int = 0, step: int = 0) -> float:
    return found.offsets[group, step, found.levels.index(level)].item()


# Order


@given(SEEDS, SEEDS, st.integers(1, 60), st.floats(0, 100), st.lists(LEVELS, min_size=2, max_size=6, unique=True))
@settings(max_examples=60)
def test_corrected_quantiles_never_cross_and_the_median_stays(
    seed: int, other: int, windows: int, size: float, asked: list[float]
) -> None:
    held_out = learned(windows, 3, seed=seed)
    found = pooled(held_out, size * normal(windows, 3, seed=other))
    fresh = learned(20, 3, seed=seed // 2)
    corrected = found.correct(fresh, torch.zeros(20, dtype=torch.int64))
    assert (corrected.diff(dim=-1) >= 0).all()
    assert torch.equal(corrected[..., MEDIAN], fresh[..., MEDIAN])
    wanted = sorted({*asked, 0.5})
    ordered = [quantile_at(corrected.double(), found.levels, level) for level in wanted]
    assert torch.equal(ordered[wanted.index(0.5)], fresh[..., MEDIAN].double())
    assert all((lower <= upper + 1e-12).all() for lower, upper in pairwise(ordered))


@given(SEEDS, st.integers(1, 60))
def test_quantiles_around_a_point_never_cross_and_hold_it(seed: int, windows: int) -> None:
    found = points(normal(windows, 2, seed=seed) - 3)
    corrected = found.correct(torch.full((1, 2, 1), 7.0), torch.zeros(1, dtype=torch.int64))
    assert corrected.shape == (1, 2, len(POINT_LEVELS))
    assert (corrected.diff(dim=-1) >= 0).all()
    assert (corrected[..., POINT_LEVELS.index(0.5)] == 7).all()


@given(st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=9), st.data())
def test_quantiles_without_crossings_stay_as_they_are(values: list[float], data: st.DataObject) -> None:
    median = data.draw(st.integers(0, len(values) - 1))
    given_values, rising = torch.tensor(values), torch.tensor(sorted(values))
    assert torch.equal(without_crossing(rising, median), rising)
    moved = without_crossing(given_values, median)
    assert (moved.diff() >= 0).all()
    assert moved[median] == given_values[median]


# Coverage


def test_the_correction_by_hand() -> None:
    found = points(torch.arange(1.0, 40.0)[:, None])  # 39 errors, and one more to come
    # The least error that 0.9 * 40 = 36 of 40 do not exceed, and the largest that as many are not below.
    assert offset(found, 0.9) == 36
    assert offset(found, 0.1) == 4
    assert offset(found, 0.975) == 39
    assert offset(found, 0.025) == 1
    assert offset(found, 0.5) == 0


@pytest.mark.parametrize("level", [0.05, 0.2, 0.8, 0.975])
def test_new_targets_lie_below_a_quantile_as_often_as_promised(level: float) -> None:
    """Over many calibrations of 39 windows each, the share is ceil(40 q) / 40 up to binomial error."""
    windows, trials, h = 39, 4000, 2
    quantiles = learned(trials * windows + trials, h, seed=1, levels=(level, 0.5) if level < 0.5 else (0.5, level))
    # The learned quantiles are too narrow by half, and the targets are skewed.
    targets = quantiles[..., 0] + (normal(len(quantiles), h, seed=3) * 2).exp() - 1
    groups = torch.arange(trials).repeat_interleave(windows)
    held_out = slice(0, trials * windows)
    levels = (level, 0.5) if level < 0.5 else (0.5, level)
    spread = (quantiles[:1, :, 1:] - quantiles[:1, :, :1]).abs()
    same = torch.cat([quantiles[..., :1], quantiles[..., :1] + spread], -1)  # one spread: corrections of one size
    found = Calibration.fit(same[held_out], targets[held_out], levels, groups, torch.zeros(len(groups)))
    fresh, actual = same[held_out.stop :], targets[held_out.stop :]
    # Crossings are removed after the correction; here each quantile counts by itself.
    place = levels.index(level)
    corrected = fresh[..., place] + found.offsets[..., place]
    below = actual <= corrected if level > 0.5 else actual < corrected
    exact = math.ceil(40 * level) / 40 if level > 0.5 else 1 - math.ceil(40 * (1 - level)) / 40
    for step in range(h):
        assert abs(float(below[:, step].double().mean()) - exact) < 4 * math.sqrt(exact * (1 - exact) / trials)


def test_intervals_of_noise_that_depends_on_the_hour_cover_every_hour() -> None:
    """Quantiles that know the quiet hours are corrected in proportion to their spread."""
    size = torch.tensor([1.0, 3.0]).repeat(2000)
    scores = torch.tensor([NormalDist().inv_cdf(level) for level in QUANTILES])
    quantiles = (0.5 * size)[:, None, None] * scores  # half as wide as the noise
    targets = size[:, None] * normal(4000, 1, seed=5)
    found = pooled(quantiles[:2000], targets[:2000])
    corrected = found.correct(quantiles[2000:], torch.zeros(2000, dtype=torch.int64))
    low, high = (quantile_at(corrected, found.levels, level) for level in (0.1, 0.9))
    inside = ((low <= targets[2000:]) & (targets[2000:] <= high)).double().flatten()
    for hour in (0, 1):
        assert float(inside[hour::2].mean()) == pytest.approx(0.8, abs=0.06)


def test_recent_windows_count_more() -> None:
    """Noise that doubled lately: with equal weights, the correction is that of the mean noise."""
    errors = normal(2000, 1, seed=6) * torch.linspace(1, 3, 2000)[:, None]
    ages = torch.linspace(1, 0, 2000)
    recent, equal = points(errors, ages), points(errors)
    assert offset(recent, 0.95) > 1.05 * offset(equal, 0.95)
    assert offset(recent, 0.05) < 1.05 * offset(equal, 0.05)


def test_the_oldest_window_weighs_a_quarter() -> None:
    # Four old windows weigh as much as the latest; the one to come weighs 1.
    ages = torch.tensor([0.0] * 4 + [1.0] * 16).repeat(3)
    errors = torch.tensor([1.0] * 4 + [2.0] * 16).repeat(3)[:, None]  # weights 12 and 12
    found = points(errors, ages)
    assert offset(found, 0.52) == 2  # 0.52 of 25 are more than the 12 of the recent ones
    assert offset(points(errors), 0.52) == 2
    assert offset(points(errors[ages == 0].repeat(4, 1)), 0.52) == 1
    assert offset(points(3 - errors, ages), 0.52) == 2  # 12 of 25 at 1, then 2
    assert offset(points(3 - errors), 0.52) == 1  # of equal weights, four in five are 1


@given(st.lists(st.floats(-50, 50), min_size=40, max_size=80), st.data())
def test_offsets_equal_a_loop_over_sorted_errors(errors: list[float], data: st.DataObject) -> None:
    ages = data.draw(st.lists(st.floats(0, 1), min_size=len(errors), max_size=len(errors)))
    found = points(torch.tensor(errors)[:, None], torch.tensor(ages))
    weights = (0.25 ** torch.tensor(ages)).double().tolist()
    level = data.draw(st.sampled_from([0.7, 0.9, 0.975]))
    needed = level * (sum(weights) + max(weights)) - 1e-9
    ordered = sorted(zip(torch.tensor(errors).tolist(), weights, strict=True))
    passed = accumulate(weight for _, weight in ordered)
    reached = [error for (error, _), weight in zip(ordered, passed, strict=True) if weight >= needed]
    assert offset(found, level) == (reached or [max(torch.tensor(errors).tolist())])[0]


# Groups


def test_steps_have_corrections_of_their_own_only_with_windows_enough() -> None:
    targets = torch.stack([torch.arange(39.0), 100 + torch.arange(39.0)], 1)
    own = points(targets)
    assert offset(own, 0.9, step=0) < 39 <= offset(own, 0.9, step=1)
    shared = points(targets[1:])
    assert offset(shared, 0.9, step=0) == offset(shared, 0.9, step=1)


def test_groups_keep_their_corrections_apart() -> None:
    groups = torch.tensor([0, 2]).repeat_interleave(50)
    targets = torch.where(groups == 0, 1.0, 100.0)[:, None] * normal(100, 1, seed=7)
    found = Calibration.fit(torch.zeros(100, 1, 1), targets, [0.5], groups, torch.zeros(100))
    assert found.windows.tolist() == [50, 0, 50]
    assert offset(found, 0.9, group=0) < 5 < offset(found, 0.9, group=2)
    # A series without windows has the corrections of all of them.
    assert torch.equal(found.offsets[1], found.offsets[2])
    last = found.of_last_group()
    assert torch.equal(last.offsets, found.offsets[2:])
    assert last.windows.tolist() == [50]


def test_learned_quantiles_have_a_say_where_windows_are_few() -> None:
    """Ten windows move them by 10 / 14 of what the windows alone say, and 39 windows by all of it."""
    quantiles = learned(1, 1, seed=8).expand(WINDOWS_FOR_OWN_GROUP, 1, -1)
    targets = quantiles[..., -1] + 5
    few, enough = pooled(quantiles[:10], targets[:10]), pooled(quantiles, targets)
    assert offset(enough, 0.975) == pytest.approx(5, rel=1e-5)
    assert offset(few, 0.975) == pytest.approx(5 * 10 / 14, rel=1e-5)


def test_series_with_windows_enough_have_groups_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    windows = torch.tensor([WINDOWS_FOR_OWN_GROUP, WINDOWS_FOR_OWN_GROUP - 1, 90])
    assert own_groups(windows, 24).tolist() == [True, False, True]
    monkeypatch.setattr(module, "MAX_OFFSETS", 4 * 24)  # three series, and the group of all
    assert own_groups(windows, 24).any()
    assert not own_groups(windows, 25).any()


def test_corrections_are_at_most_four_times_the_usual_ones() -> None:
    quantiles = torch.tensor([0.0, 1.0]).expand(50, 1, 2)
    found = pooled(quantiles, torch.full((50, 1), 2.0), (0.5, 0.9))
    for spread, correction in ((1e-6, 0.25), (0.5, 0.5), (2.0, 2.0), (1e6, 4.0)):
        wide = torch.tensor([[[0.0, spread]]])
        moved = found.correct(wide, torch.zeros(1, dtype=torch.int64)) - wide
        assert moved[0, 0, -1].item() == pytest.approx(correction)


# Levels between and beyond


@given(st.lists(st.floats(-1e3, 1e3), min_size=13, max_size=13), LEVELS, LEVELS)
def test_quantiles_of_any_level_rise_with_it(values: list[float], one: float, other: float) -> None:
    quantiles = torch.tensor(sorted(values), dtype=torch.float64)
    low, high = (quantile_at(quantiles, QUANTILES, level).item() for level in sorted((one, other)))
    assert low <= high + 1e-9


@pytest.mark.parametrize("level", QUANTILES)
def test_learned_levels_are_exact(level: float) -> None:
    quantiles = learned(4, 3, seed=10)
    assert torch.equal(quantile_at(quantiles, QUANTILES, level), quantiles[..., QUANTILES.index(level)])


@given(LEVELS, st.floats(-100, 100), st.floats(0.01, 100))
def test_quantiles_of_a_normal_distribution_are_its_own_at_every_level(level: float, mean: float, std: float) -> None:
    """Between learned levels and beyond them, they are linear in the normal score."""
    known = torch.tensor([NormalDist(mean, std).inv_cdf(each) for each in QUANTILES], dtype=torch.float64)
    expected = NormalDist(mean, std).inv_cdf(level)
    assert quantile_at(known, QUANTILES, level).item() == pytest.approx(expected, rel=1e-6, abs=1e-6)


# Files


def test_a_calibration_survives_a_file(tmp_path: Path) -> None:
    found = pooled(learned(50, 2, seed=11), normal(50, 2, seed=12))
    save_file(found.to_tensors(), tmp_path / "calibration.safetensors")
    loaded = Calibration.from_tensors(load_file(tmp_path / "calibration.safetensors"), QUANTILES)
    assert torch.equal(loaded.offsets, found.offsets)
    assert torch.equal(loaded.usual, found.usual)
    assert loaded.levels == found.levels


def test_absolute_errors_of_older_folders_become_the_same_intervals() -> None:
    """They had ceil((n + 1) L) as the rank of the half-width of level L, and ranks up to n."""
    errors = torch.arange(1.0, 40.0)[:, None].repeat(2, 1)
    old = {"scores": errors, "counts": torch.tensor([39, 39])}
    read = Calibration.from_tensors(old, ())
    table = {"scores": errors.view(2, 39, 1), "counts": torch.tensor([39, 39])}
    assert torch.equal(Calibration.from_tensors(table, ()).offsets, read.offsets)
    for level, rank in ((50, 20), (80, 32), (95, 38), (99, 39)):
        assert offset(read, 0.5 + level / 200, group=1) == rank
        assert offset(read, round(0.5 - level / 200, 9), group=1) == -rank


@pytest.mark.parametrize(
    "tensors",
    [
        {"scores": torch.ones(2, 3), "counts": torch.tensor([3])},
        {"scores": torch.ones(2, 3), "counts": torch.tensor([3, -1])},
        {"scores": torch.ones(2, 3), "counts": torch.tensor([2, 0])},
        {"scores": torch.ones(2), "counts": torch.tensor([2])},
        {"scores": torch.ones(0, 3), "counts": torch.ones(0, dtype=torch.int64)},
        {"scores": torch.tensor([[2.0], [math.nan]]), "counts": torch.tensor([2])},
        {"scores": -torch.ones(2, 1), "counts": torch.tensor([2])},
        {"scores": torch.ones(1, 2, 3), "counts": torch.tensor([3])},
    ],
)
def test_tensors_that_are_no_absolute_errors_are_refused(tensors: dict[str, Tensor]) -> None:
    with pytest.raises(DataError, match="save them again"):
        Calibration.from_tensors(tensors, ())


def test_no_windows_are_no_calibration() -> None:
    with pytest.raises(DataError, match="no held-out windows"):
        points(torch.empty(0, 3))
