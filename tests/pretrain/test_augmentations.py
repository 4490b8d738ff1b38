"""Augmentations keep what they promise to keep."""

import numpy as np
import pytest

from leapts_pretrain.augmentations import (
    AUGMENTATIONS,
    Augmentation,
    amplitude_modulated,
    augmented,
    censored,
    mixed,
    sign_reversed,
    with_missing,
)
from leapts_pretrain.blocks import Block


@pytest.fixture
def windows() -> Block:
    return np.random.default_rng(3).normal(5, 2, (60, 200)).astype(np.float32)


@pytest.mark.parametrize("augmentation", [*AUGMENTATIONS, with_missing])
def test_missing_values_stay_missing(augmentation: Augmentation, windows: Block) -> None:
    windows[:, 40:50] = np.nan
    changed = augmentation(np.random.default_rng(0), windows.copy())
    assert changed.dtype == np.float32
    assert np.isnan(changed)[:, 40:50].all()
    assert np.isfinite(changed).mean() > 0.6


def test_reversed_signs_undo_themselves(windows: Block) -> None:
    rng = np.random.default_rng(0)
    np.testing.assert_array_equal(sign_reversed(rng, sign_reversed(rng, windows)), windows)


def test_a_mixture_of_equal_windows_is_that_window() -> None:
    window = np.random.default_rng(1).normal(size=(1, 100)).astype(np.float32)
    result = mixed(np.random.default_rng(0), np.repeat(window, 30, axis=0))
    shape = (result - result.mean(axis=1, keepdims=True)) / result.std(axis=1, keepdims=True)
    np.testing.assert_allclose(shape, np.repeat((window - window.mean()) / window.std(), 30, axis=0), atol=1e-3)


def test_censoring_moves_no_value_away_from_its_threshold(windows: Block) -> None:
    result = censored(np.random.default_rng(0), windows)
    changed = result != windows
    assert changed.any(axis=1).mean() > 0.9
    for row, moved in zip(result, changed, strict=True):
        assert len(np.unique(row[moved])) <= 1


def test_modulation_keeps_the_mean_where_it_is(windows: Block) -> None:
    result = amplitude_modulated(np.random.default_rng(0), windows)
    sign = np.sign(windows - windows.mean(axis=1, keepdims=True))
    assert np.mean(sign == np.sign(result - windows.mean(axis=1, keepdims=True))) > 0.99


def test_a_missing_block_leaves_most_of_a_window() -> None:
    result = with_missing(np.random.default_rng(0), np.ones((500, 300), np.float32))
    missing = np.isnan(result).mean(axis=1)
    assert missing.max() < 0.45
    assert 0.05 < missing.mean() < 0.3


def test_augmentation_is_seeded(windows: Block) -> None:
    first, again = (augmented(np.random.default_rng(5), windows.copy()) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, windows)
