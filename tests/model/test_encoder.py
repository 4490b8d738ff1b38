"""Only mixing makes the forecast of one series depend on another."""

import pytest
import torch

from leapts.model.encoder import LookbackPooling, MlpMixer, PooledMixer
from tests.model.variants import make_history, make_model


def _others_change_when_one_does(mixing: str) -> bool:
    model = make_model(mixing={"kind": mixing}, series_embedding=True)
    history = make_history()
    changed = history.clone()
    changed[:, 0] += torch.randn(history[:, 0].shape, generator=torch.Generator().manual_seed(1))
    before, after = model.forecast(history).values, model.forecast(changed).values
    return not torch.allclose(before[:, 1:], after[:, 1:], atol=1e-5)


@pytest.mark.parametrize(("mixing", "exchange"), [("none", False), ("mlp", True), ("pooled", True)])
def test_series_depend_on_each_other_only_through_mixing(mixing: str, exchange: bool) -> None:
    assert _others_change_when_one_does(mixing) is exchange


def test_pooled_mixing_does_not_depend_on_the_order_of_series() -> None:
    model = make_model(mixing={"kind": "pooled"})
    history, order = make_history(), torch.tensor([3, 1, 4, 0, 2])
    torch.testing.assert_close(model.forecast(history[:, order]).values, model.forecast(history).values[:, order])


def test_series_embedding_separates_series_with_equal_windows() -> None:
    history = make_history()[:, :1].expand(-1, 5, -1)
    alike = make_model().forecast(history).values
    separated = make_model(series_embedding=True).forecast(history).values
    torch.testing.assert_close(alike[:, 0], alike[:, 1])
    assert not torch.allclose(separated[:, 0], separated[:, 1], atol=1e-3)


def test_low_rank_mixing_costs_series_times_rank() -> None:
    assert sum(p.numel() for p in MlpMixer(900, rank=16).parameters()) == 2 * 900 * 16 + 900 + 16
    assert MlpMixer(900, rank=16)(torch.randn(900, 2, 8)).shape == (900, 2, 8)


def test_pooled_mixing_takes_any_number_of_series() -> None:
    mixer = PooledMixer(8)
    assert mixer(torch.randn(3, 2, 8)).shape == (3, 2, 8)
    assert mixer(torch.randn(900, 2, 8)).shape == (900, 2, 8)


@pytest.mark.parametrize("layers", [1, 2, 3, 4])
@pytest.mark.parametrize("width", [1, 256])
def test_every_allowed_depth_and_width_forecasts(layers: int, width: int) -> None:
    model = make_model(encoder_layers=layers, hidden_size=width)
    assert model.forecast(make_history()).values.isfinite().all()


@pytest.mark.parametrize("lookback", [1, 100, 128, 300, 2000])
def test_pooling_keeps_recent_steps_and_the_mean_of_a_constant(lookback: int) -> None:
    pooling = LookbackPooling(lookback)
    history = torch.randn(2, 3, lookback)
    pooled = pooling(history)
    assert pooled.shape == (2, 3, pooling.outputs)
    recent = min(lookback, 128)
    assert torch.equal(pooled[..., -recent:], history[..., -recent:])
    torch.testing.assert_close(pooling(torch.ones(2, 3, lookback)), torch.ones(2, 3, pooling.outputs))
    masked = pooling(torch.cat([history, torch.ones_like(history)], -1))
    torch.testing.assert_close(masked, torch.cat([pooled, torch.ones_like(pooled)], -1))
