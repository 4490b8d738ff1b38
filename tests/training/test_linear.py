"""The linear path: what it starts at, what it copies, and what a combination may cost."""

import math
from typing import Any

import pytest
import torch

from leapts.config import QUANTILES, ModelConfig
from leapts.data.windows import Windows
from leapts.model import LeapTSModel
from leapts.model.build import build_model
from leapts.training.linear import NETWORK, combine_with_simple, simple_forecasts, start_linear_path
from leapts.training.loop import mean_absolute_error

SEASON, LOOKBACK, HORIZON = 6, 18, 4


def seasonal_windows(noise: float, *, length: int = 160, seed: int = 0) -> Windows:
    """Windows of a season that repeats, with noise."""
    generator = torch.Generator().manual_seed(seed)
    season = torch.randn(SEASON, generator=torch.Generator().manual_seed(1))
    values = season.repeat(length // SEASON + 1)[:length] + noise * torch.randn(length, generator=generator)
    return Windows(values, torch.tensor([0, length]), LOOKBACK, HORIZON)


def make_model(**options: Any) -> LeapTSModel:
    return build_model(ModelConfig(h=HORIZON, input_size=LOOKBACK, linear_path=True, **options), seed=1)


def test_simple_forecasts_are_those_of_the_textbook() -> None:
    history = torch.arange(float(LOOKBACK)).double() ** 2
    found = {name: weights @ history for name, weights in simple_forecasts(LOOKBACK, HORIZON, [SEASON]).items()}
    last, slope = history[-1], (history[-1] - history[0]) / (LOOKBACK - 1)
    torch.testing.assert_close(found["naive"], last.expand(HORIZON))
    torch.testing.assert_close(found["historic mean"], history.mean().expand(HORIZON))
    torch.testing.assert_close(found["drift"], last + slope * torch.arange(1, HORIZON + 1))
    torch.testing.assert_close(found[f"seasonal naive ({SEASON})"], history[-SEASON:][:HORIZON])
    seasons = history.view(-1, SEASON).mean(0)
    torch.testing.assert_close(found[f"seasonal mean ({SEASON})"], seasons[:HORIZON])


@pytest.mark.parametrize("options", [{}, {"quantiles": QUANTILES}, {"mask": True}, {"normalization": "last"}])
def test_a_clean_season_is_forecast_before_any_training_step(options: dict[str, object]) -> None:
    model, windows = make_model(**options), seasonal_windows(0.0)
    assert mean_absolute_error(model, windows) > 0.1
    start_linear_path(model, windows, None, [SEASON])
    assert mean_absolute_error(model, windows) < 1e-4


def test_noise_is_averaged_over_seasons_instead_of_repeated() -> None:
    model, windows = make_model(), seasonal_windows(0.5, length=600)
    later = seasonal_windows(0.5, length=600, seed=9)
    start_linear_path(model, windows, None, [SEASON])
    naive = simple_forecasts(LOOKBACK, HORIZON, [SEASON])[f"seasonal naive ({SEASON})"].float()
    batch = later.gather(torch.arange(len(later)))
    naive_error = float((batch.history[:, 0] @ naive.T - batch.target[:, 0]).abs().mean())
    assert mean_absolute_error(model, later) < 0.9 * naive_error


@pytest.mark.parametrize("options", [{}, {"quantiles": QUANTILES}])
def test_a_combination_is_what_the_network_forecasts_and_close_to_the_best_simple_one(
    options: dict[str, object],
) -> None:
    model, windows = make_model(**options), seasonal_windows(0.1)
    start = start_linear_path(model, windows, None, [SEASON])
    with torch.no_grad():
        model.head.bias.add_(5.0)  # a network that went astray
    found = combine_with_simple(model, windows, [SEASON], start)
    assert math.isclose(sum(found.weights.values()), 1)
    assert found.weights.get(NETWORK, 0.0) < 0.5
    best = min(error for name, error in found.errors.items() if name != NETWORK)
    assert found.error <= 1.05 * best
    assert mean_absolute_error(model, windows) == pytest.approx(found.error, rel=1e-4)


def test_a_good_network_stays_alone() -> None:
    model, windows = make_model(), seasonal_windows(0.3)
    start = start_linear_path(model, windows, None, [SEASON])
    before = model.linear.map.weight.clone()  # type: ignore[union-attr]
    assert dict(combine_with_simple(model, windows, [SEASON], start).weights) == {NETWORK: 1.0}
    assert torch.equal(model.linear.map.weight, before)  # type: ignore[union-attr]
