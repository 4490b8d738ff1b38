"""The universal network: any history, any horizon, quantiles that never cross, leaps that tile."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from leapts.config import QUANTILES
from leapts.model.universal import UniversalConfig, UniversalModel, relative_grid


def _model() -> UniversalModel:
    torch.manual_seed(0)
    model = UniversalModel(UniversalConfig(QUANTILES, width=32, blocks=1, hidden=16))
    for parameter in model.parameters():  # also those that start at zero
        torch.nn.init.normal_(parameter, std=0.2)
    return model


MODEL = _model()


@given(steps=st.integers(8, 1200), horizon=st.integers(1, 400), seed=st.integers(0, 5))
def test_any_history_has_a_forecast_over_any_horizon(steps: int, horizon: int, seed: int) -> None:
    history = torch.randn(2, steps, generator=torch.Generator().manual_seed(seed)).cumsum(1)
    history[1, ::3] = torch.nan
    found = MODEL.forecast(history, horizon, "leaps")
    quantiles = found.values.unflatten(1, (horizon, -1))
    assert quantiles.shape == (2, horizon, len(QUANTILES))
    assert bool(quantiles.isfinite().all())
    assert bool((quantiles.diff(dim=2) >= 0).all())
    assert found.trace is not None
    assert found.trace.length.sum(1).tolist() == [horizon, horizon]


@given(horizon=st.integers(1, 1000))
def test_the_scales_cover_every_length_up_to_the_horizon(horizon: int) -> None:
    grid = relative_grid(horizon)
    assert grid.horizon == horizon
    for shortest, longest in zip(grid.shortest, grid.longest, strict=True):
        assert 1 <= shortest <= longest <= horizon


@given(level=st.floats(-20, 20), size=st.floats(0.1, 10))
def test_a_forecast_follows_level_and_size(level: float, size: float) -> None:
    model = _model().double()
    walk = torch.randn(1, 300, generator=torch.Generator().manual_seed(1), dtype=torch.float64).cumsum(1)
    plain, moved = (model.forecast(history, 20).values for history in (walk, level + size * walk))
    torch.testing.assert_close(level + size * plain, moved, atol=1e-4, rtol=1e-4)


def test_rows_do_not_depend_on_each_other() -> None:
    history = torch.randn(4, 200, generator=torch.Generator().manual_seed(2))
    together = MODEL.forecast(history, 30).values
    for row in range(4):
        torch.testing.assert_close(MODEL.forecast(history[row : row + 1], 30).values[0], together[row])


@pytest.mark.parametrize("horizon", [5, 40])
def test_every_weight_takes_part_in_training(horizon: int) -> None:
    from leapts.model.context import context_of, view_of
    from leapts.model.network import RunOptions

    model, history = _model(), torch.randn(16, 300, generator=torch.Generator().manual_seed(3))
    noise = torch.Generator().manual_seed(0)
    model(context_of(view_of(history)), horizon, RunOptions(noise, "dense")).values.square().mean().backward()
    unused = [name for name, weight in model.named_parameters() if weight.grad is None or not weight.grad.any()]
    assert unused == []
