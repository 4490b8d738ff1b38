"""Inference copies compute the same forecasts as their model, and do not follow its training."""

import copy

import pytest
import torch

from leapts.model.inference import inference_copy
from leapts.model.network import RunOptions
from tests.model.variants import BRANCHES, make_history, make_model


@pytest.mark.parametrize(("schedule", "state"), BRANCHES)
def test_an_inference_copy_computes_the_same_forecast(schedule: str, state: str) -> None:
    model, history = make_model(schedule, state, mixing={"kind": "mlp"}, series_embedding=True).double(), make_history()
    with torch.no_grad():
        plain = model.run(history.double(), RunOptions())
        copied = inference_copy(model).run(history.double(), RunOptions())
    torch.testing.assert_close(copied.values, plain.values, atol=1e-12, rtol=1e-12)


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


def test_a_copy_is_not_copied_again() -> None:
    copied = inference_copy(make_model())
    assert inference_copy(copied) is copied
