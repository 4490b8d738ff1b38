"""Several outputs for each step of the horizon, for quantiles and distributions."""

import pytest
import torch
from torch import nn

from leapts.model import LeapTSModel
from leapts.model.build import build_model
from leapts.model.network import Execution, GatedFusion
from leapts.model.rollout import SegmentHeads, soft_segment_mask
from tests.model.variants import CLUSTERS, HORIZON, N_SERIES, SCHEDULES, make_config, make_history, make_model

OUTPUTS = 3


def _repeated(plain: LeapTSModel, wide: LeapTSModel) -> None:
    """Gives every output of the wide model the weights of the plain one."""

    def spread(weights: torch.Tensor, dim: int) -> nn.Parameter:
        return nn.Parameter(weights.detach().repeat_interleave(OUTPUTS, dim))

    weights = dict(plain.named_parameters())
    for name, parameter in wide.named_parameters():
        if name.startswith("head."):
            horizon, state = weights[name].tensor_split([HORIZON])
            parameter.data = torch.cat([spread(horizon, 0), state])
        elif ".heads.heads." in name:
            parameter.data = spread(weights[name], 1)
        elif name.endswith("summary.weight"):
            parameter.data = spread(weights[name], 1) / OUTPUTS
        else:
            parameter.data = weights[name].detach()


@pytest.mark.parametrize("execution", ["dense", "sparse"])
@pytest.mark.parametrize("schedule", [*SCHEDULES, "none"])
def test_outputs_with_the_weights_of_the_plain_model_all_equal_it(schedule: str, execution: Execution) -> None:
    plain = make_model(schedule, "clustered").double()
    config = make_config(schedule, "clustered")
    wide = build_model(config, seed=5, clusters=CLUSTERS, outputs_per_step=OUTPUTS).double()
    _repeated(plain, wide)
    history = make_history(16).double()
    ours, theirs = (model.forecast(history, execution=execution, record="leaps") for model in (wide, plain))
    values = ours.values.unflatten(2, (HORIZON, OUTPUTS))
    torch.testing.assert_close(values, theirs.values.unsqueeze(3).expand_as(values), atol=1e-12, rtol=1e-12)
    if theirs.trace is not None and ours.trace is not None:
        assert torch.equal(ours.trace.length, theirs.trace.length)


@pytest.mark.parametrize("schedule", list(SCHEDULES))
def test_dense_and_sparse_agree_on_outputs_that_differ(schedule: str) -> None:
    model = build_model(make_config(schedule), seed=2, outputs_per_step=OUTPUTS).double()
    history = make_history(16).double()
    dense, sparse = (model.forecast(history, execution=execution).values for execution in ("dense", "sparse"))
    assert dense.shape == (16, N_SERIES, HORIZON * OUTPUTS)
    torch.testing.assert_close(dense, sparse, atol=1e-12, rtol=1e-12)
    first, second, _ = dense.unflatten(2, (HORIZON, OUTPUTS)).unbind(3)
    assert not torch.allclose(first, second)


def test_a_leap_writes_all_outputs_of_its_steps_and_of_no_others() -> None:
    start, length, steps = torch.tensor([0.0, 4.0]), torch.tensor([4.0, 2.0]), torch.arange(float(HORIZON))
    plain = soft_segment_mask(steps, start, length, sharpness=0.5)
    wide = soft_segment_mask(steps.repeat_interleave(OUTPUTS), start, length, sharpness=0.5)
    torch.testing.assert_close(wide.unflatten(1, (HORIZON, OUTPUTS)), plain.unsqueeze(2).expand(-1, -1, OUTPUTS))


def test_every_output_has_a_gradient_through_the_scheduling_branch() -> None:
    model = build_model(make_config(), seed=2, outputs_per_step=OUTPUTS)
    assert isinstance(model.fusion, GatedFusion)
    model(make_history(16), torch.Generator().manual_seed(0)).square().sum().backward()
    heads = model.fusion.rollout.heads
    assert isinstance(heads, SegmentHeads)
    gradient = heads.heads.weight.grad
    assert gradient is not None
    assert (gradient.unflatten(1, (HORIZON, OUTPUTS)).abs().sum((0, 1, 3)) > 0).all()
