"""What a fit leaves behind can be asked, copied and sent about at any time."""

import copy
import pickle
from typing import Any

import pandas as pd
import pytest
import torch

from tests.forecasting.frames import MULTIVARIATE, UNIVARIATE, make_forecaster, make_frame


@pytest.mark.parametrize("kind", [UNIVARIATE, MULTIVARIATE])
def test_a_model_that_has_forecast_can_be_copied_and_pickled(kind: dict[str, Any]) -> None:
    model = make_forecaster(max_steps=2, **kind).fit(make_frame())
    forecast = model.predict()
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        pd.testing.assert_frame_equal(other.predict(), forecast)


def test_the_model_is_prepared_once_and_forecasts_as_it_does_itself() -> None:
    fitted = make_forecaster(max_steps=2, **UNIVARIATE).fit(make_frame()).predictor_
    assert fitted.inference_copy is fitted.inference_copy
    history = torch.randn(5, 1, fitted.config.input_size, generator=torch.Generator().manual_seed(0))
    assert torch.equal(fitted.inference_copy.forecast(history).values, fitted.model.forecast(history).values)


def test_an_update_forecasts_with_weights_of_its_own() -> None:
    model = make_forecaster(max_steps=2, **UNIVARIATE).fit(make_frame())
    before = model.predict()
    model.update(make_frame(seed=1), max_steps=20)
    assert not before["LeapTS"].equals(model.predict(make_frame())["LeapTS"])
