"""What a fit leaves behind can be asked, copied and sent about at any time."""

import copy
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from leapts import LeapTS
from leapts.errors import ConfigError
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


def test_the_mean_of_skewed_demand_has_unbiased_totals_where_the_median_is_low() -> None:
    generator = np.random.default_rng(0)
    rows = [(name, step, value) for name in range(40) for step, value in enumerate(generator.gamma(0.6, 5.0, 120))]
    frame = pd.DataFrame(rows, columns=["unique_id", "ds", "y"])
    known, later = frame[frame["ds"] < 110], frame[frame["ds"] >= 110]
    totals = {
        point: LeapTS(10, point=point, max_steps=100).fit(known).predict()["LeapTS"].sum() / later["y"].sum()
        for point in ("median", "mean")
    }
    assert totals["mean"] == pytest.approx(1, abs=0.12)
    assert totals["median"] < 0.8
    with pytest.raises(ConfigError, match="point='mean'"):
        LeapTS(10, point="mean", loss="huber").fit(known)


@pytest.mark.parametrize("kind", [UNIVARIATE, MULTIVARIATE])
def test_a_forecast_without_quantiles_is_the_median_of_one_with_them(kind: dict[str, Any]) -> None:
    predictor = make_forecaster(max_steps=5, val_size=20, **kind).fit(make_frame()).predictor_
    windows = predictor.windows(predictor.tail)
    plain, whole = (predictor.predict(windows, quantiles=quantiles) for quantiles in (False, True))
    assert torch.equal(plain.values, whole.values)
    assert plain.quantiles.shape[-1] == 1
    assert whole.quantiles.shape[-1] == len(predictor.levels)
