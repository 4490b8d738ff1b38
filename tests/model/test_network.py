"""The whole model: seeds, precision, shapes, gradients, the gate, export."""

import copy
from typing import Any

import jaxtyping
import pytest
import torch
from torch import Generator

from leapts.errors import ShapeError
from leapts.model.network import GatedFusion
from tests.model.variants import BRANCHES, HORIZON, LOOKBACK, N_SERIES, make_history, make_model

VARIANTS = [*BRANCHES, ("none", "factored")]
EVERY_VARIANT = pytest.mark.parametrize(("schedule", "state"), VARIANTS)
# The noise of a random schedule differs with the precision and the batch.
EVERY_LEARNED_VARIANT = pytest.mark.parametrize(("schedule", "state"), [v for v in VARIANTS if v[0] != "monte_carlo"])


@EVERY_VARIANT
def test_the_same_seed_gives_the_same_bits(schedule: str, state: str) -> None:
    history = make_history()
    first, again = make_model(schedule, state, seed=3), make_model(schedule, state, seed=3)
    assert torch.equal(first.forecast(history).values, again.forecast(history).values)
    explored = [model(history, Generator().manual_seed(1)) for model in (first, again)]
    assert torch.equal(explored[0], explored[1])
    other = make_model(schedule, state, seed=4)
    assert not torch.equal(first.forecast(history).values, other.forecast(history).values)


def test_building_a_model_does_not_change_the_global_random_state() -> None:
    before = torch.random.get_rng_state()
    make_model(seed=5)
    assert torch.equal(torch.random.get_rng_state(), before)


@EVERY_VARIANT
def test_every_parameter_gets_a_finite_gradient_that_is_not_zero(schedule: str, state: str) -> None:
    model = make_model(schedule, state, mixing={"kind": "mlp"}, series_embedding=True, head_layers=2)
    generator = Generator().manual_seed(0)
    seen: dict[str, bool] = {name: False for name, _ in model.named_parameters()}
    for batch in range(3):
        model.zero_grad()
        history = make_history(32, batch)
        model(history, generator).square().mean().backward()
        for name, parameter in model.named_parameters():
            assert parameter.grad is not None, name
            assert parameter.grad.isfinite().all(), name
            seen[name] |= bool(parameter.grad.any())
    assert all(seen.values()), [name for name, nonzero in seen.items() if not nonzero]


@EVERY_VARIANT
def test_gradients_of_the_last_parts_match_finite_differences(schedule: str, state: str) -> None:
    """Without a discrete choice between a parameter and the loss, the gradient is exact."""
    model = make_model(schedule, state).double()
    history = make_history(4).double()

    def loss() -> torch.Tensor:
        forecast: torch.Tensor = model(history)
        return forecast.square().mean()

    parameters: list[tuple[torch.nn.Parameter, int]] = [(model.head.bias, 0)]
    if isinstance(model.fusion, GatedFusion):
        parameters.append((model.fusion.gate_logit, 0))
    for parameter, index in parameters:
        (gradient,) = torch.autograd.grad(loss(), parameter)
        with torch.no_grad():
            flat = parameter.view(-1)
            flat[index] += 1e-6
            above = loss()
            flat[index] -= 2e-6
            below = loss()
            flat[index] += 1e-6
        torch.testing.assert_close(gradient.view(-1)[index], (above - below) / 2e-6, rtol=1e-5, atol=1e-7)


def test_the_forecast_is_the_coarse_one_plus_the_gated_schedule() -> None:
    model = make_model(normalization="none").double()
    assert isinstance(model.fusion, GatedFusion)
    history = make_history().double()
    forecast = model.forecast(history, record="leaps")
    assert forecast.coarse is not None
    assert 0 < model.fusion.gate < 1
    with torch.no_grad():
        scheduled = (forecast.values - forecast.coarse) / model.fusion.gate
        model.fusion.gate_logit.fill_(-1000)
    torch.testing.assert_close(model.forecast(history).values, forecast.coarse)
    with torch.no_grad():
        model.fusion.gate_logit.fill_(1000)
    torch.testing.assert_close(model.forecast(history).values, forecast.coarse + scheduled)


def test_without_a_scheduling_branch_the_forecast_is_the_coarse_one() -> None:
    forecast = make_model("none").forecast(make_history(), record="leaps")
    assert forecast.trace is None
    assert forecast.coarse is not None
    assert torch.equal(forecast.values, forecast.coarse)


@pytest.mark.parametrize("normalization", ["mean", "last"])
def test_level_and_spread_of_the_data_carry_over_to_the_forecast(normalization: str) -> None:
    model, history = make_model(normalization=normalization).double(), make_history().double()
    moved = model.forecast(100 + 7 * history).values
    torch.testing.assert_close(moved, 100 + 7 * model.forecast(history).values)


@pytest.mark.parametrize("normalization", ["mean", "last", "shift"])
def test_the_level_of_the_data_carries_over_to_the_forecast(normalization: str) -> None:
    model, history = make_model(normalization=normalization).double(), make_history().double()
    torch.testing.assert_close(model.forecast(100 + history).values, 100 + model.forecast(history).values)


@EVERY_LEARNED_VARIANT
def test_double_precision_agrees_with_single(schedule: str, state: str) -> None:
    model, history = make_model(schedule, state), make_history()
    double = copy.deepcopy(model).double().forecast(history.double()).values
    assert double.dtype == torch.float64
    torch.testing.assert_close(model.forecast(history).values.double(), double, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize(
    "shape", [(LOOKBACK,), (N_SERIES, LOOKBACK), (2, N_SERIES, LOOKBACK + 1), (2, N_SERIES + 1, LOOKBACK)]
)
def test_a_wrong_shape_is_refused_with_both_shapes_and_their_meaning(shape: tuple[int, ...]) -> None:
    expected = f"[batch, series = {N_SERIES}, look-back = {LOOKBACK}]"
    with jaxtyping_off(), pytest.raises(ShapeError) as refused:
        make_model(mixing={"kind": "mlp"}).forecast(torch.zeros(shape))
    assert str(tuple(shape)) in str(refused.value)
    assert expected in str(refused.value)


def test_a_channel_independent_model_takes_any_number_of_series() -> None:
    model = make_model(n_series=None)
    for n_series in (1, 2, 50):
        assert model.forecast(make_history(3, n_series=n_series)).values.shape == (3, n_series, HORIZON)


def test_batches_of_one_window_and_of_none() -> None:
    model = make_model(n_series=None)
    assert model.forecast(make_history(1, n_series=1)).values.shape == (1, 1, HORIZON)
    assert model.forecast(torch.zeros(0, 1, LOOKBACK), record="states").values.shape == (0, 1, HORIZON)


@pytest.mark.slow
@EVERY_LEARNED_VARIANT
def test_the_exported_program_takes_any_batch_and_agrees(schedule: str, state: str) -> None:
    model = make_model(schedule, state, mixing={"kind": "mlp"}, series_embedding=True)
    batch = torch.export.Dim("batch", min=1, max=4096)
    with jaxtyping_off():
        program = torch.export.export(model, (make_history(4),), dynamic_shapes=({0: batch},))
    for size in (1, 2, 33):
        history = make_history(size, seed=size)
        torch.testing.assert_close(program.module()(history), model.forecast(history).values, atol=1e-5, rtol=1e-5)


class jaxtyping_off:  # noqa: N801 - reads as a statement
    """Turns off shape checks, to test our own or to export without specialization on shapes."""

    def __enter__(self) -> None:
        jaxtyping.config.update("jaxtyping_disable", True)

    def __exit__(self, *_: Any) -> None:
        jaxtyping.config.update("jaxtyping_disable", False)
