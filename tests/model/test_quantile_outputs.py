"""Learned quantiles: they never cross, whatever the weights, along every path of execution."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from leapts.config import QUANTILES
from leapts.model import LeapTSModel
from leapts.model.build import build_model
from leapts.model.network import Execution
from leapts.model.normalization import QuantileOutputs, Units
from tests.model.variants import CLUSTERS, HORIZON, N_SERIES, SCHEDULES, make_config, make_history

MEDIAN = QUANTILES.index(0.5)
ALL = [*SCHEDULES, "none"]


def quantile_model(schedule: str, variant: str = "clustered", *, seed: int = 3) -> LeapTSModel:
    config = make_config(schedule, variant)
    config = type(config)(**{**config.model_dump(), "quantiles": QUANTILES})
    return build_model(config, seed=seed, clusters=CLUSTERS if variant == "clustered" else None)


def shaken(model: LeapTSModel, size: float, seed: int) -> LeapTSModel:
    """The model with weights far from those it begins with."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(size * torch.randn(parameter.shape, generator=generator))
    return model


def quantiles_of(model: LeapTSModel, history: Tensor, execution: Execution | None = None) -> Tensor:
    options = {} if execution is None else {"execution": execution}
    values: Tensor = model.forecast(history, quantiles=True, **options).values  # type: ignore[arg-type]
    steps: Tensor = values.unflatten(2, (HORIZON, -1))
    return steps


@given(
    st.integers(0, 2**31),
    st.floats(0, 50),
    st.lists(st.floats(0.001, 0.499) | st.floats(0.501, 0.999), min_size=1, max_size=8, unique=True).map(
        lambda some: tuple(sorted({0.5, *some}))
    ),
)
@settings(max_examples=60)
def test_quantiles_never_cross_whatever_is_written(seed: int, size: float, levels: tuple[float, ...]) -> None:
    generator = torch.Generator().manual_seed(seed)
    outputs = QuantileOutputs(levels)
    written, features = (size * torch.randn(7, number, generator=generator) for number in (10, len(levels) - 1))
    units = Units(torch.randn(7, 1, generator=generator), torch.rand(7, 1, generator=generator) + 0.1)
    found = outputs(written, features, units).unflatten(1, (5, -1))
    assert (found.diff(dim=-1) >= 0).all()
    torch.testing.assert_close(found[..., levels.index(0.5)], outputs.point(written, units))


def test_without_features_the_quantiles_are_those_of_a_normal_distribution() -> None:
    outputs = QuantileOutputs(QUANTILES)
    units = Units(torch.zeros(1, 1), torch.ones(1, 1))
    written = torch.tensor([[0.3, 0.0]])
    found = outputs(written, torch.zeros(1, len(QUANTILES) - 1), units)
    normal = torch.distributions.Normal(0.3, torch.tensor(2.0).log())  # softplus(0) is log 2
    torch.testing.assert_close(found[0], normal.icdf(torch.tensor(QUANTILES)), atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("size", [0.0, 0.3, 3.0])
@pytest.mark.parametrize("schedule", ALL)
def test_quantiles_of_a_model_never_cross_and_the_median_is_its_point_forecast(schedule: str, size: float) -> None:
    model = shaken(quantile_model(schedule), size, seed=1)
    history = make_history(16)
    found = quantiles_of(model, history)
    assert found.shape == (16, N_SERIES, HORIZON, len(QUANTILES))
    assert (found.diff(dim=-1) >= 0).all()
    torch.testing.assert_close(found[..., MEDIAN], model.forecast(history).values)


@pytest.mark.parametrize("schedule", ALL)
def test_every_execution_gives_the_same_quantiles(schedule: str) -> None:
    model, history = shaken(quantile_model(schedule), 0.1, seed=2).double(), make_history(16).double()
    dense, sparse = (quantiles_of(model, history, execution) for execution in ("dense", "sparse"))
    torch.testing.assert_close(dense, sparse, atol=1e-10, rtol=1e-10)
    copy = quantiles_of(model.snapshot(), history)
    torch.testing.assert_close(copy, dense, atol=1e-8, rtol=1e-8)
