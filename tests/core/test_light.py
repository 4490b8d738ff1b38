"""A lightened model computes what the model computes; a snapshot stays what the model was."""

import copy

import pytest
import torch

from leapts.core.light import lightened
from tests.core.variants import BRANCHES, make_history, make_model


@pytest.mark.parametrize(("schedule", "state"), BRANCHES)
def test_a_lightened_model_computes_the_same(schedule: str, state: str) -> None:
    model, history = make_model(schedule, state, mixing={"kind": "mlp"}, variate_identity=True).double(), make_history()
    with torch.no_grad():
        plain = model._run(history.double(), None, execution="sparse", record="nothing")
        light = lightened(model)._run(history.double(), None, execution="sparse", record="nothing")
    torch.testing.assert_close(light.values, plain.values, atol=1e-12, rtol=1e-12)


def test_a_snapshot_forecasts_the_same_bits_and_does_not_follow_training() -> None:
    model, history = make_model(), make_history()
    snapshot, before = model.snapshot(), model.forecast(history)
    assert torch.equal(snapshot.forecast(history).values, before.values)
    untouched = copy.deepcopy(model)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.5)
    assert not torch.equal(model.forecast(history).values, before.values)
    assert torch.equal(snapshot.forecast(history).values, before.values)
    assert torch.equal(untouched.forecast(history).values, before.values)


def test_a_light_view_is_its_own_light_view() -> None:
    light = lightened(make_model())
    assert lightened(light) is light
