"""Seasons that are there are found, and noise has none."""

import numpy as np
import pandas as pd
import pytest

from leapts.data.panel import Panel
from leapts.data.seasons import find_seasons
from leapts.data.validation import read_panel


def panel_of(values: np.ndarray, freq: str | int) -> Panel:
    if isinstance(freq, int):
        return read_panel(pd.DataFrame({"ds": np.arange(len(values)), "y": values}))
    return read_panel(pd.DataFrame({"ds": pd.date_range("2024-01-01", periods=len(values), freq=freq), "y": values}))


@pytest.mark.parametrize("period", [5, 9, 24, 61])
def test_a_season_that_no_frequency_suggests_is_found(period: int) -> None:
    steps = np.arange(800)
    noise = np.random.default_rng(0).normal(0, 0.3, len(steps))
    values = np.sin(2 * np.pi * steps / period) + 0.5 * np.cos(4 * np.pi * steps / period) + 0.01 * steps + noise
    (found,) = find_seasons(panel_of(values, 1))[0]
    assert found == pytest.approx(period, rel=0.02)


@pytest.mark.parametrize("seed", range(5))
def test_noise_and_random_walks_have_no_season(seed: int) -> None:
    noise = np.random.default_rng(seed).normal(size=500)
    assert find_seasons(panel_of(noise, 1))[0] == (1,)
    assert find_seasons(panel_of(noise.cumsum(), 1))[0] == (1,)
    assert find_seasons(panel_of(np.ones(500), 1))[0] == (1,)


def test_hours_have_a_day_and_a_week() -> None:
    values = np.random.default_rng(0).normal(size=24 * 60)
    assert find_seasons(panel_of(values, "h"))[0] == (24, 168)
    assert find_seasons(panel_of(values[:100], "h"))[0] == (24,)
    assert find_seasons(panel_of(values, "5min"))[0] == (288,)
