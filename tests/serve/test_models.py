"""Models by name, and folders that are replaced while they are served."""

import shutil
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import pandas as pd
import pytest

from leapts import ConfigError, LeapTS, ModelFileError
from leapts.serve.models import Shelf
from leapts.serve.problems import Problem
from tests.forecaster.frames import APART, make_forecaster
from tests.serve.conftest import client_of, histories


def _until(is_true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not is_true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_models_go_by_their_folders_names_or_by_those_given(folders: Path) -> None:
    shelf = Shelf([folders / "apart", f"mine={folders / 'apart'}"])
    assert [served.name for served in shelf] == ["apart", "mine"]
    for name in ("nothing", "..", str(folders / "apart"), ""):
        with pytest.raises(Problem):
            shelf.find(name)


def test_two_models_of_one_name_are_refused(folders: Path) -> None:
    with pytest.raises(ConfigError, match="OTHER="):
        Shelf([folders / "apart", folders / "apart"])
    with pytest.raises(ConfigError, match="no model"):
        Shelf([])


def test_a_folder_that_is_no_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError):
        Shelf([tmp_path])


def test_a_replaced_folder_is_served_without_a_refusal(folders: Path, frame: pd.DataFrame, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(folders / "apart", folder)
    newer = make_forecaster(**APART, val_size=60, random_seed=9).fit(frame)
    asked = {"series": histories(frame)}
    told: list[str] = []
    with client_of(Shelf([folder]), reload_every=0.05, tell=told.append) as client:

        def forecast() -> httpx.Response:
            answer = client.post("/v1/forecast", json=asked)
            assert answer.status_code == 200
            return answer

        before = forecast().json()
        newer.save(folder)
        _until(lambda: forecast().json()["version"] != before["version"])
        after = forecast().json()["forecasts"][0]["values"]["LeapTS"]
        assert after == pytest.approx(newer.predict(frame)["LeapTS"][:6].tolist(), rel=1e-5)
        assert "was replaced" in told[0]

        # A folder that is damaged, or gone, leaves what is served in place.
        weights = folder / "model.safetensors"
        content = weights.read_bytes()
        weights.write_bytes(content[:-1])
        _until(lambda: 'outcome="failed"' in client.get("/metrics").text)
        assert forecast().json()["forecasts"][0]["values"]["LeapTS"] == after
        assert "not loaded" in told[1]
        shutil.rmtree(folder)
        _until(lambda: len(told) == 3)
        assert forecast().json()["forecasts"][0]["values"]["LeapTS"] == after
        LeapTS.load(folders / "apart").save(folder)
        _until(lambda: forecast().json()["version"] == before["version"])
