"""A model folder of every schema version that ever was goes on loading, and forecasts what it forecast then."""

import json
from pathlib import Path

import pandas as pd
import pytest

from leapts import LeapTS
from leapts.persistence.save import CONFIG
from leapts.persistence.schema import SCHEMA

STORED = Path(__file__).parent / "stored"
FOLDERS = sorted(path for path in STORED.glob("schema-*") if path.is_dir())


def test_there_is_a_folder_for_every_schema() -> None:
    assert [json.loads((path / CONFIG).read_text())["schema"] for path in FOLDERS] == list(range(1, SCHEMA + 1))


@pytest.mark.parametrize("path", FOLDERS, ids=lambda path: path.name)
def test_a_stored_model_forecasts_what_it_did(path: Path) -> None:
    model = LeapTS.load(path)
    forecast, trace = model.predict(level=[80], return_trace=True)
    expected = pd.read_csv(STORED / f"{path.name}-forecast.csv", parse_dates=["ds"])
    leaps = pd.read_csv(STORED / f"{path.name}-trace.csv", parse_dates=["cutoff"])
    pd.testing.assert_frame_equal(forecast, expected, check_dtype=False, rtol=1e-5, atol=1e-5)
    pd.testing.assert_frame_equal(trace[leaps.columns.tolist()], leaps, check_dtype=False, rtol=1e-4, atol=1e-5)
    assert model.get_params()["h"] == 6
    assert model.auto_config_


# Saved by release 0.1.0, one for every kind of model, with what it forecast then.
KINDS = sorted(path for path in STORED.iterdir() if path.is_dir() and not path.name.startswith("schema-"))


@pytest.mark.parametrize("path", KINDS, ids=lambda path: path.name)
def test_a_model_of_the_first_release_forecasts_the_same(path: Path) -> None:
    model = LeapTS.load(path)
    expected = pd.read_csv(STORED / f"{path.name}-forecast.csv", parse_dates=["ds"])
    pd.testing.assert_frame_equal(model.predict(level=[50]), expected, check_dtype=False, rtol=1e-6, atol=1e-6)
    leaps = STORED / f"{path.name}-trace.csv"
    if leaps.exists():
        _, trace = model.predict(return_trace=True)
        stored = pd.read_csv(leaps, parse_dates=["cutoff"])
        pd.testing.assert_frame_equal(trace.to_frame(), stored, check_dtype=False, rtol=1e-5, atol=1e-6)
    unseen = STORED / f"{path.name}-unseen-history.csv"
    if unseen.exists():
        expected = pd.read_csv(STORED / f"{path.name}-unseen.csv", parse_dates=["ds"])
        forecast = model.predict(pd.read_csv(unseen, parse_dates=["ds"]), level=[50])
        pd.testing.assert_frame_equal(forecast, expected, check_dtype=False, rtol=1e-6, atol=1e-6)
