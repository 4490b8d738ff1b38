"""LeapTS as a model of neuralforecast."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch

pytest.importorskip("neuralforecast", reason="neuralforecast is not installed")

from neuralforecast import NeuralForecast
from neuralforecast.common._model_checks import check_model
from neuralforecast.losses.pytorch import DistributionLoss, IQLoss, MQLoss
from neuralforecast.models import DLinear

import leapts
from leapts.errors import ConfigError, NotFittedError
from leapts.integrations.neuralforecast import LeapTS
from tests.forecasting.frames import LOOKBACK, H, make_frame

QUIET: dict[str, Any] = {
    "enable_progress_bar": False,
    "enable_model_summary": False,
    "logger": False,
    "accelerator": "cpu",
}


def make_adapter(**options: Any) -> LeapTS:
    """A small model with few training steps."""
    given: dict[str, Any] = {"hidden_size": 16, "max_steps": 5, "val_check_steps": 5, "windows_batch_size": 32}
    return LeapTS(H, LOOKBACK, **{**given, **QUIET, **options})


def make_fitted(frame: Any = None, **options: Any) -> NeuralForecast:
    nf = NeuralForecast(models=[make_adapter(**options)], freq="D")
    nf.fit(make_frame() if frame is None else frame)
    return nf


class _Padded(LeapTS):
    """Pads short series, as those of neuralforecast's checks."""

    def __init__(self, h: int, input_size: int, start_padding_enabled: bool = True, **options: Any) -> None:
        super().__init__(h, input_size, start_padding_enabled=start_padding_enabled, hidden_size=8, **QUIET, **options)


def test_the_checks_of_neuralforecast_pass_and_none_is_skipped(capsys: pytest.CaptureFixture[str]) -> None:
    """The checks ignore errors other than RuntimeError and print that they skipped; here none may be ignored."""
    if int(pd.__version__.split(".")[0]) >= 3:
        pytest.skip("the checks of neuralforecast ask pandas for a frequency that pandas 3 no longer has")
    # The checks set these options.
    quiet = {name: QUIET.pop(name) for name in ("enable_progress_bar", "enable_model_summary")}
    try:
        check_model(_Padded)
    finally:
        QUIET.update(quiet)
    printed = capsys.readouterr().out
    assert printed.count("checking") == 26
    assert "skipped" not in printed


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_leapts_and_a_neuralforecast_model_predict_and_cross_validate_together(kind: str) -> None:
    frame: Any = make_frame() if kind == "pandas" else pl.from_pandas(make_frame())
    other = DLinear(H, LOOKBACK, max_steps=5, val_check_steps=5, moving_avg_window=3, **QUIET)
    nf = NeuralForecast(models=[make_adapter(), other], freq="D" if kind == "pandas" else "1d")
    nf.fit(frame)
    forecast = nf.predict()
    assert isinstance(forecast, type(frame))
    assert list(forecast.columns) == ["unique_id", "ds", "LeapTS", "DLinear"]
    assert len(forecast) == 3 * H
    assert np.isfinite(forecast["LeapTS"].to_numpy()).all()
    back_test = nf.cross_validation(frame, n_windows=2, step_size=H)
    assert list(back_test.columns) == ["unique_id", "ds", "cutoff", "LeapTS", "DLinear", "y"]
    assert len(back_test) == 3 * 2 * H


def test_the_error_on_sine_waves_is_small() -> None:
    frame = make_frame()
    options = {"hidden_size": 64, "max_steps": 200, "val_check_steps": 200, "learning_rate": 5e-3}
    nf = NeuralForecast(models=[make_adapter(**options)], freq="D")
    scores = nf.cross_validation(frame, n_windows=3, step_size=H)
    last = frame.groupby("unique_id")["y"].shift(H)
    ours = (scores["LeapTS"] - scores["y"]).abs().mean()
    naive = (frame["y"] - last).abs().mean()
    assert ours < naive / 2


@pytest.mark.parametrize("normalization", ["mean", "last"])
def test_the_same_weights_forecast_the_same_as_the_estimator(normalization: str) -> None:
    frame = make_frame()
    model = {"mixing": {"kind": "none"}, "hidden_size": 16, "normalization": normalization, "linear_path": False}
    options: dict[str, Any] = {"loss": "huber", "combine": "none", "support": "real"}
    facade = leapts.LeapTS(H, LOOKBACK, "D", max_steps=20, model=model, **options).fit(frame)
    nf = make_fitted(frame, max_steps=1, val_check_steps=1, normalization=normalization)
    nf.models[0].network.load_state_dict(facade.predictor_.model.state_dict())
    ours = nf.predict()["LeapTS"].to_numpy()
    theirs, trace = facade.predict(return_trace=True)
    np.testing.assert_allclose(ours, theirs["LeapTS"].to_numpy(), rtol=1e-5)
    columns = ["unique_id", "leap", "start", "end", "scale", "length"]
    mine = nf.models[0].trace_frame(nf.uids)[columns].astype({"unique_id": str, "scale": str})
    pd.testing.assert_frame_equal(
        mine, trace[columns].astype({"unique_id": str, "scale": str}), check_dtype=False, check_column_type=False
    )


@pytest.mark.parametrize("options", [{"normalization": "mean"}, {"normalization": "last", "loss": MQLoss(level=[80])}])
@pytest.mark.parametrize("unit", [1e-9, 1e-4, 1e6])
def test_the_units_of_raw_windows_do_not_matter(options: dict[str, Any], unit: float) -> None:
    """Darts passes raw windows, and so does neuralforecast with `scaler_type="identity"`."""
    model = make_adapter(**options).eval()
    time = torch.arange(LOOKBACK, dtype=torch.float32)
    windows = torch.stack([torch.sin(time / 3) + 5, torch.cos(time) - 2, torch.full_like(time, 3.0)]).unsqueeze(2)
    with torch.no_grad():
        expected = model({"insample_y": windows})
        found = model({"insample_y": windows * unit}) / unit
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


def test_quantiles_are_ordered_and_have_their_coverage() -> None:
    frame = make_frame()
    options = {"loss": MQLoss(level=[80]), "max_steps": 150, "val_check_steps": 150}
    nf = NeuralForecast(models=[make_adapter(**options)], freq="D")
    scores = nf.cross_validation(frame, n_windows=5, step_size=H)
    low, middle, high = (scores[f"LeapTS-{name}"] for name in ("lo-80", "median", "hi-80"))
    assert (low < high).mean() > 0.95
    assert low.mean() < middle.mean() < high.mean()
    assert 0.5 < ((low <= scores["y"]) & (scores["y"] <= high)).mean() < 1


@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_a_distribution_is_in_the_units_of_the_data(scale: float) -> None:
    frame = make_frame()
    frame["y"] *= scale
    nf = make_fitted(frame, loss=DistributionLoss("Normal", level=[80]), max_steps=100, val_check_steps=100)
    forecast = nf.predict()
    width = (forecast["LeapTS-hi-80"] - forecast["LeapTS-lo-80"]).mean() / scale
    spread = frame.groupby("unique_id")["y"].std().mean() / scale
    assert 0.05 * spread < width < 4 * spread
    level = frame.groupby("unique_id")["y"].mean() / scale
    assert ((forecast.groupby("unique_id")["LeapTS"].mean() / scale - level).abs() < 3).all()


@pytest.mark.parametrize("loss", [MQLoss(level=[80]), IQLoss(), DistributionLoss("StudentT", level=[80])])
def test_a_saved_model_forecasts_the_same_with_the_same_options(loss: Any, tmp_path: Path) -> None:
    options = {"scheduling": {"kind": "flat", "max_leaps": 3}, "temporal_clip": (0.1, 0.9), "alias": "Mine"}
    nf = make_fitted(loss=loss, normalization="last", **options)
    nf.save(str(tmp_path / "saved"))
    loaded = NeuralForecast.load(str(tmp_path / "saved"))
    assert isinstance(loaded.models[0], LeapTS)
    pd.testing.assert_frame_equal(loaded.predict(), nf.predict())
    assert loaded.models[0].trace_.length.shape == (3, 3)


def test_training_stops_early() -> None:
    model = make_adapter(max_steps=60, val_check_steps=2, early_stop_patience_steps=2, learning_rate=0.3)
    nf = NeuralForecast(models=[model], freq="D")
    nf.fit(make_frame(), val_size=H)
    assert 0 < len(nf.models[0].train_trajectories) < 60


def test_the_trace_tiles_the_horizon_for_every_window_of_the_last_prediction() -> None:
    nf = NeuralForecast(models=[make_adapter(inference_windows_batch_size=4, valid_batch_size=2)], freq="D")
    nf.cross_validation(make_frame(), n_windows=3, step_size=H)
    trace = nf.models[0].trace_
    assert trace.length.shape[0] == 9
    assert (trace.length.sum(1) == H).all()
    frame = nf.models[0].trace_frame(["a", "b", "c"])
    assert (frame.groupby(["unique_id", "window"])["length"].sum() == H).all()
    assert sorted(set(frame["unique_id"])) == ["a", "b", "c"]
    with pytest.raises(ConfigError, match=r"2 names.* 9 windows"):
        nf.models[0].trace_frame(["a", "b"])


def test_a_recursive_forecast_keeps_the_trace_of_the_first_horizon() -> None:
    nf = make_fitted()
    assert len(nf.predict(h=2 * H + 1)) == 3 * (2 * H + 1)
    longer = nf.models[0].trace_
    nf.predict()
    assert torch.equal(longer.length, nf.models[0].trace_.length)


def test_without_a_prediction_or_without_leaps_there_is_no_trace() -> None:
    with pytest.raises(NotFittedError, match="no trace"):
        _ = make_adapter().trace_
    nf = make_fitted(scheduling="none")
    nf.predict()
    with pytest.raises(ConfigError, match="no scheduling branch"):
        _ = nf.models[0].trace_


def test_the_forecast_depends_on_the_seed() -> None:
    first, second, other = (make_fitted(random_seed=seed).predict()["LeapTS"].to_numpy() for seed in (3, 3, 4))
    assert np.array_equal(first, second)
    assert not np.array_equal(first, other)


def test_gradients_with_respect_to_the_history_are_available() -> None:
    model = make_adapter(loss=MQLoss(level=[80])).eval()
    history = torch.randn(4, LOOKBACK, 1, requires_grad=True)
    with_gradient = model({"insample_y": history})
    assert with_gradient.shape == (4, H, 3)
    with_gradient.sum().backward()
    assert history.grad is not None
    with torch.no_grad():
        torch.testing.assert_close(model({"insample_y": history}), with_gradient)
