"""The linear path: what it starts at, what it copies, and what a combination may cost."""

import math
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from leapts.config import QUANTILES, ModelConfig
from leapts.data.windows import Windows
from leapts.model import LeapTSModel
from leapts.model.build import build_model
from leapts.training import linear
from leapts.training.linear import NETWORK, combine_with_simple, simple_forecasts, start_linear_path
from leapts.training.loop import mean_absolute_error
from tests.forecasting.frames import UNIVARIATE, make_forecaster, make_frame

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


@given(st.integers(1, 12), st.integers(1, 12), st.integers(0, 1000))
def test_ridge_regression_solves_its_normal_equations(rows: int, lookback: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    inputs, targets, prior = (
        torch.randn(shape, generator=generator, dtype=torch.float64)
        for shape in ((rows, lookback), (rows, 2), (2, lookback))
    )
    rest = targets - inputs @ prior.T
    size = rest.abs().mean(1, keepdim=True)
    weight = 1 / size.clamp(min=float(size.median()) + 1e-9)
    gram = inputs.T @ (weight * inputs)
    unit = float(gram.diagonal().mean()) + 1e-12
    for penalty, found in zip(linear._PENALTIES, linear._ridge(linear._Rows(inputs, targets), prior), strict=True):
        if penalty == torch.inf:
            assert torch.equal(found, prior)
            continue
        left = gram + penalty * unit * torch.eye(lookback, dtype=torch.float64)
        torch.testing.assert_close(left @ (found - prior).T, inputs.T @ (weight * rest), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("lookback", [1_500, 5_000])
def test_a_look_back_beyond_the_data_costs_no_decomposition_of_its_size(
    lookback: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    decompose = torch.linalg.eigh

    def counted(matrix: torch.Tensor) -> Any:
        sizes.append(len(matrix))
        return decompose(matrix)

    monkeypatch.setattr(torch.linalg, "eigh", counted)
    make_forecaster(**{**UNIVARIATE, "input_size": lookback}).fit(make_frame())
    assert 0 < max(sizes) <= linear._MAX_EIGENVALUES


def test_a_good_network_stays_alone() -> None:
    model, windows = make_model(), seasonal_windows(0.3)
    start = start_linear_path(model, windows, None, [SEASON])
    before = model.linear.map.weight.clone()  # type: ignore[union-attr]
    assert dict(combine_with_simple(model, windows, [SEASON], start).weights) == {NETWORK: 1.0}
    assert torch.equal(model.linear.map.weight, before)  # type: ignore[union-attr]
