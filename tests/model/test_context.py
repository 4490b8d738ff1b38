"""The context of a universal model: a view of fixed size, seasons, and simple forecasts."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from leapts.model.context import (
    CELLS,
    ENCODED,
    LEVELS,
    REACH,
    RECENT,
    SEASONAL_NAIVE,
    SIMPLE_FORECASTS,
    STEP_FEATURES,
    context_of,
    encoder_inputs,
    simple_forecasts,
    step_features,
    view_of,
)

NAIVE, MEAN, SMOOTHED = 0, 3, 5


def test_recent_values_are_cells_and_older_ones_are_means() -> None:
    history = torch.randn(2, REACH)
    view = view_of(history)
    assert view.values.shape == (2, CELLS)
    assert torch.equal(view.values[:, -RECENT:], history[:, -RECENT:])
    assert bool((view.observed == 1).all())
    end, cell = REACH, CELLS
    for steps, cells in LEVELS:
        means = history[:, end - steps * cells : end].unflatten(1, (cells, steps)).mean(2)
        torch.testing.assert_close(view.values[:, cell - cells : cell], means)
        end, cell = end - steps * cells, cell - cells


def test_missing_values_are_no_part_of_a_mean() -> None:
    history = torch.ones(1, REACH)
    history[0, 1:64:2] = torch.nan
    view = view_of(history)
    assert float(view.values[0, 0]) == 1
    assert float(view.observed[0, 0]) == pytest.approx(0.5)


@given(steps=st.integers(1, 2000))
def test_a_short_history_has_unknown_cells_before_it(steps: int) -> None:
    view = view_of(torch.ones(1, steps))
    assert float((view.observed[0, -RECENT:]).sum()) == min(steps, RECENT)


@given(period=st.integers(4, 128), level=st.floats(-100, 100), size=st.floats(0.1, 100))
def test_a_clean_season_is_found_at_any_level_and_size(period: int, level: float, size: float) -> None:
    step = torch.arange(600, dtype=torch.float64)
    wave = torch.sin(2 * torch.pi * step / period) + 0.5 * torch.sin(4 * torch.pi * step / period + 1)
    context = context_of(view_of((level + size * wave)[None].float()))
    assert abs(int(context.short) - period) <= 0.02 * period  # a long season has few cycles to measure it by


def test_a_week_is_found_beside_the_day() -> None:
    step = torch.arange(1000.0)
    day, week = torch.sin(2 * torch.pi * step / 24), (step % 168 < 48).float()
    context = context_of(view_of((day - 0.8 * week)[None]))
    assert (int(context.short), int(context.long)) == (24, 168)


@pytest.mark.parametrize("seed", range(5))
def test_noise_and_constants_have_no_season(seed: int) -> None:
    noise = torch.randn(1, 600, generator=torch.Generator().manual_seed(seed))
    context = context_of(view_of(torch.cat([noise, torch.full_like(noise, 7.0)])))
    assert context.short.tolist() == [1, 1]


def test_simple_forecasts_are_what_their_names_say() -> None:
    step = torch.arange(24 * 20.0)
    history = torch.sin(2 * torch.pi * step / 24)[None]
    context = context_of(view_of(history))
    found = simple_forecasts(context, 60) * context.scale.unsqueeze(2) + context.center.unsqueeze(2)
    assert found.shape == (1, SIMPLE_FORECASTS, 60)
    expected = torch.sin(2 * torch.pi * torch.arange(480.0, 540.0) / 24)
    torch.testing.assert_close(found[0, NAIVE], history[0, -1].expand(60))
    for seasonal in range(SEASONAL_NAIVE, SIMPLE_FORECASTS):  # a cycle that repeats is forecast by all of them
        torch.testing.assert_close(found[0, seasonal], expected, atol=1e-4, rtol=0)


def test_smoothed_means_follow_the_recurrence_of_exponential_smoothing() -> None:
    history = torch.randn(1, 2000, generator=torch.Generator().manual_seed(0))
    context = context_of(view_of(history))
    found = (simple_forecasts(context, 3) * context.scale.unsqueeze(2) + context.center.unsqueeze(2))[0, :, 0]
    level = history[0, 0]
    for value in history[0, 1:]:
        level = level + 0.3 * (value - level)
    torch.testing.assert_close(found[SMOOTHED], level, atol=1e-4, rtol=0)
    torch.testing.assert_close(found[MEAN], history[0, -512:].mean(), atol=1e-4, rtol=0)


def test_seasonal_forecasts_can_follow_the_level() -> None:
    step = torch.arange(480.0)
    rising = (step % 12) + (step // 12)  # each cycle is one higher than the one before
    context = context_of(view_of(rising[None]))
    found = simple_forecasts(context, 12)[0] * context.scale + context.center
    naive, mean, trend, mean_at_level = found[SEASONAL_NAIVE : SEASONAL_NAIVE + 4]
    last = rising[-12:]
    torch.testing.assert_close(naive, last, atol=1e-3, rtol=0)
    torch.testing.assert_close(mean, last - 1.5, atol=1e-3, rtol=0)
    torch.testing.assert_close(trend, last + 1, atol=1e-3, rtol=0)
    torch.testing.assert_close(mean_at_level, last, atol=1e-3, rtol=0)


@given(steps=st.integers(1, 700), horizon=st.integers(1, 300), seed=st.integers(0, 9))
def test_everything_is_finite_for_any_history(steps: int, horizon: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    history = torch.randn(3, steps, generator=generator) * 10.0**seed
    history[1] = 5.0
    history[2, torch.rand(steps, generator=generator) < 0.5] = torch.nan
    context = context_of(view_of(history))
    inputs = encoder_inputs(context)
    assert inputs.shape == (3, ENCODED)
    features = step_features(context, horizon)
    assert features.shape == (3, STEP_FEATURES, horizon)
    for values in (inputs, features, simple_forecasts(context, horizon)):
        assert bool(values.isfinite().all())


@given(level=st.floats(-50, 50), size=st.floats(0.01, 100), seed=st.integers(0, 99))
def test_the_encoder_sees_neither_level_nor_size(level: float, size: float, seed: int) -> None:
    walk = torch.randn(1, 400, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).cumsum(1)
    plain, moved = (encoder_inputs(context_of(view_of(history))) for history in (walk, level + size * walk))
    torch.testing.assert_close(plain, moved, atol=1e-6, rtol=1e-6)
