"""LeapTS in Darts, through its wrapper of neuralforecast models."""

from typing import Any

import numpy as np
import pytest

pytest.importorskip("darts", reason="darts is not installed")

from darts import TimeSeries
from darts.metrics import mae
from darts.models import NeuralForecastModel
from darts.utils.likelihood_models.torch import QuantileRegression

from leapts.integrations.neuralforecast import LeapTS

H, LOOKBACK = 6, 24


def make_series(components: int = 1) -> TimeSeries:
    time = np.arange(220)[:, None]
    waves = np.sin(time / (2 + np.arange(components))) + 5 * np.arange(1, components + 1)
    return TimeSeries.from_values(waves.astype(np.float32))


def make_model(**options: Any) -> NeuralForecastModel:
    given: dict[str, Any] = {
        "model_kwargs": {"hidden_size": 16, "scheduling": {"kind": "hierarchical", "max_leaps": 3}},
        "n_epochs": 6,
        "random_state": 1,
        "pl_trainer_kwargs": {"accelerator": "cpu", "enable_progress_bar": False, "logger": False},
        "optimizer_kwargs": {"lr": 3e-3},
    }
    return NeuralForecastModel(LOOKBACK, H, model=LeapTS, **{**given, **options})


@pytest.mark.parametrize("components", [1, 2])
def test_a_darts_model_fits_predicts_and_backtests(components: int) -> None:
    series = make_series(components)
    model = make_model()
    model.fit(series[:-30])
    forecast = model.predict(H)
    assert forecast.values().shape == (H, components)
    assert float(mae(series, forecast)) < 0.4
    back_test = model.historical_forecasts(
        series, start=len(series) - 30, forecast_horizon=H, stride=H, retrain=False, last_points_only=False
    )
    assert len(back_test) == 5
    assert float(np.mean([mae(series, part) for part in back_test])) < 0.4


def test_every_step_has_quantiles() -> None:
    model = make_model(likelihood=QuantileRegression([0.1, 0.5, 0.9]))
    model.fit(make_series()[:-H])
    quantiles = model.predict(H, predict_likelihood_parameters=True).values()
    assert quantiles.shape == (H, 3)
    assert (quantiles[:, 0] < quantiles[:, 2]).all()


def test_the_same_seed_gives_the_same_forecast() -> None:
    first, second = (make_model(n_epochs=1) for _ in range(2))
    forecasts = [model.fit(make_series()).predict(H).values() for model in (first, second)]
    assert np.array_equal(*forecasts)


def test_a_seed_is_optional() -> None:
    forecast = make_model(n_epochs=1, random_state=None).fit(make_series()).predict(H)
    assert np.isfinite(forecast.values()).all()
