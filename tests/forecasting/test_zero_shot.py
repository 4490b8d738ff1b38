"""LeapTS-Zero forecasts any series at once, through the path of every other forecast."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from leapts import LeapTS
from leapts.errors import ConfigError, DataError, ModelFileError
from leapts.forecasting.zero_shot import WEIGHTS, load_universal, training_facts


def _frame(values: dict[str, np.ndarray]) -> pd.DataFrame:
    parts = [
        pd.DataFrame({"unique_id": name, "ds": pd.date_range("2024", periods=len(one), freq="h"), "y": one})
        for name, one in values.items()
    ]
    return pd.concat(parts, ignore_index=True)


def _waves(steps: int = 400) -> np.ndarray:
    step = np.arange(steps)
    noise = np.random.default_rng(0).normal(size=steps)
    values: np.ndarray = 50 + 10 * np.sin(2 * np.pi * step / 24) + 0.5 * noise
    return values


def test_a_daily_wave_goes_on_without_training() -> None:
    frame, known = _frame({"a": _waves()}), _frame({"a": _waves()[:-24]})
    forecast = LeapTS.pretrained(h=24).predict(known)
    error = np.abs(forecast["LeapTS"] - frame["y"].tail(24).to_numpy()).mean()
    assert error < 3  # a naive forecast is off by 6.4 on the average of all phases


@settings(max_examples=10)
@given(steps=st.integers(2, 60), h=st.integers(1, 70))
def test_intervals_nest_and_leaps_tile_the_horizon(steps: int, h: int) -> None:
    frame = _frame({"short": _waves(steps), "long": _waves(300)})
    forecast, trace = LeapTS.pretrained(h=h).predict(frame, level=[50, 95], return_trace=True)
    columns = ["LeapTS-lo-95", "LeapTS-lo-50", "LeapTS", "LeapTS-hi-50", "LeapTS-hi-95"]
    assert len(forecast) == 2 * h
    assert (np.diff(forecast[columns].to_numpy(), axis=1) >= 0).all()
    assert trace.groupby("unique_id")["length"].sum().tolist() == [h, h]


@pytest.mark.parametrize(
    "values",
    [
        np.full(30, 7.0),
        np.full(30, 1e-9),
        1e-30 * np.arange(30.0),
        1e12 + np.arange(30.0),
        3e28 * (1 + np.arange(30.0)),
        np.array([3.0, 4.0]),
        np.tile([0.0, 0.0, 5.0], 10),
    ],
    ids=["constant", "small", "tiny", "far", "huge", "two points", "intermittent"],
)
def test_unusual_series_have_finite_forecasts_near_their_values(values: np.ndarray) -> None:
    forecast = LeapTS.pretrained(h=12).predict(_frame({"a": values}), level=[95])
    found = forecast.drop(columns=["unique_id", "ds"]).to_numpy()
    room = 50 * (np.ptp(values) or abs(values[0]))
    assert np.isfinite(found).all()
    assert (values.min() - room <= found).all()
    assert (found <= values.max() + room).all()
    if (values >= 0).all():
        assert (found >= 0).all()


def test_a_series_without_values_is_refused_by_name() -> None:
    with pytest.raises(DataError, match="lost"):
        LeapTS.pretrained(h=12, fill="ffill").predict(_frame({"a": _waves(), "lost": np.full(30, np.nan)}))


def test_a_backtest_trains_nothing_and_reports_coverage() -> None:
    model = LeapTS.pretrained(h=12)
    frame, coverage = model.cross_validation(_frame({"a": _waves()}), n_windows=5, level=[80], return_coverage=True)
    assert len(frame) == 60
    assert 0 < coverage[80] <= 1


def test_a_calibration_stays_for_the_forecast_of_other_series() -> None:
    frame = _frame({"a": _waves()})
    model = LeapTS.pretrained(h=12).fit(frame).calibrate(frame)
    model.predict(_frame({"b": _waves() + 100}))
    assert model.predictor_.calibration is not None


def test_the_pretrained_model_says_what_it_cannot_do() -> None:
    with pytest.raises(ConfigError, match="h=1001"):
        LeapTS.pretrained(h=1001).predict(_frame({"a": _waves()}))


def test_the_weights_say_what_they_were_trained_on() -> None:
    facts = training_facts()
    assert facts["windows"] > 1_000_000
    assert "M4 yearly" in facts["sets"]
    assert WEIGHTS.stat().st_size <= 6_000_000


@pytest.mark.parametrize("damage", ["shape", "nan", "missing", "cut", "large"])
def test_damaged_weights_are_refused_by_name(tmp_path: Path, damage: str) -> None:
    path, tensors = tmp_path / "weights.safetensors", load_file(WEIGHTS)
    if damage == "shape":
        tensors["enter.weight"] = tensors["enter.weight"][:5].clone()
    if damage == "nan":
        tensors["enter.bias"][0] = float("nan")
    if damage != "missing":
        save_file(tensors, path)
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:1000])
    if damage == "large":
        path.write_bytes(path.read_bytes() + bytes(9 << 20))
    with pytest.raises(ModelFileError, match=path.name):
        load_universal(path)
