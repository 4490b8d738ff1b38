"""The hub form is the model folder: written, read and pushed without a network."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from leapts import ModelFileError
from leapts.persistence import save as folder
from leapts.persistence.schema import SCHEMA
from tests.cli.conftest import environment
from tests.forecasting.frames import make_frame

huggingface_hub = pytest.importorskip("huggingface_hub")

from huggingface_hub import ModelCard, hub_mixin  # noqa: E402

from leapts.persistence import hub  # noqa: E402

FILES = {folder.CONFIG, folder.WEIGHTS, folder.CARD}


@pytest.fixture(scope="module")
def model() -> hub.LeapTS:
    return hub.LeapTS(6, 12, max_steps=4, batch_size=16).fit(make_frame({"a": 90, "b": 90}))


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever opens a connection fails the test."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("this test has no network")

    monkeypatch.setattr("socket.socket.connect", refuse)
    monkeypatch.setattr("socket.getaddrinfo", refuse)


@pytest.mark.usefixtures("offline")
def test_a_model_comes_back_from_a_local_folder(model: hub.LeapTS, tmp_path: Path) -> None:
    model.save_pretrained(tmp_path / "new" / "model")
    assert {path.name for path in (tmp_path / "new" / "model").iterdir()} == FILES
    again = hub.LeapTS.from_pretrained(tmp_path / "new" / "model")
    assert isinstance(again, hub.LeapTS)
    assert isinstance(again, hub_mixin.ModelHubMixin)
    pd.testing.assert_frame_equal(again.predict(level=[80]), model.predict(level=[80]))
    assert again.get_params() == model.get_params()


def test_there_is_one_format(model: hub.LeapTS, tmp_path: Path) -> None:
    from leapts import LeapTS

    model.save_pretrained(tmp_path / "hub")
    model.save(tmp_path / "plain")
    for name in FILES:
        assert (tmp_path / "hub" / name).read_bytes() == (tmp_path / "plain" / name).read_bytes()
    pd.testing.assert_frame_equal(LeapTS.load(tmp_path / "hub").predict(), model.predict())
    assert isinstance(hub.LeapTS.from_pretrained(str(tmp_path / "plain")), hub.LeapTS)


def test_an_empty_folder_is_filled_and_a_full_one_is_not_touched(model: hub.LeapTS, tmp_path: Path) -> None:
    model.save_pretrained(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == FILES
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(ModelFileError, match="is not a model folder"):
        model.save_pretrained(tmp_path)


def test_the_card_tells_the_hub_metrics_and_tags(model: hub.LeapTS, tmp_path: Path) -> None:
    model.save_pretrained(tmp_path)
    data = ModelCard.load(tmp_path / folder.CARD).data
    assert (data.library_name, data.pipeline_tag) == ("leapts", "time-series-forecasting")
    assert set(data.tags) >= {"leapts", "time-series-forecasting"}
    (result,) = data.eval_results
    assert (result.metric_type, result.metric_value) == ("mae", model.report_.best_validation)


def test_a_card_without_held_out_windows_claims_nothing(tmp_path: Path) -> None:
    model = hub.LeapTS(6, 12, max_steps=2, val_size=0).fit(make_frame({"a": 60}))
    model.save_pretrained(tmp_path)
    assert ModelCard.load(tmp_path / folder.CARD).data.eval_results is None


class FakeApi:
    """Takes what the hub would take."""

    pushed: dict[str, Any]

    def __init__(self, token: str | None = None) -> None:
        self.token = token

    def create_repo(self, *, repo_id: str, **options: Any) -> Any:
        FakeApi.pushed = {"repo_id": repo_id, "token": self.token, **options}
        return type("Repository", (), {"repo_id": repo_id})

    def upload_folder(self, *, folder_path: Path, **options: Any) -> str:
        FakeApi.pushed |= {**options, "files": {path.name: path.read_bytes() for path in Path(folder_path).iterdir()}}
        return "https://hub.example/commit/1"


@pytest.mark.usefixtures("offline")
def test_a_push_uploads_the_folder(model: hub.LeapTS, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub_mixin, "HfApi", FakeApi)
    address = model.push_to_hub("someone/weather", private=True, token="secret", commit_message="First")
    assert address == "https://hub.example/commit/1"
    pushed = FakeApi.pushed
    assert (pushed["repo_id"], pushed["private"], pushed["commit_message"]) == ("someone/weather", True, "First")
    assert set(pushed["files"]) == FILES
    (tmp_path / "back").mkdir()
    for name, content in pushed["files"].items():
        (tmp_path / "back" / name).write_bytes(content)
    pd.testing.assert_frame_equal(hub.LeapTS.from_pretrained(tmp_path / "back").predict(), model.predict())

    assert model.save_pretrained(tmp_path / "mine", push_to_hub=True, commit_message="Second") == address
    assert (FakeApi.pushed["repo_id"], FakeApi.pushed["commit_message"]) == ("mine", "Second")
    assert json.loads((tmp_path / "mine" / folder.CONFIG).read_text())["schema"] == SCHEMA


@pytest.mark.usefixtures("offline")
def test_what_is_neither_here_nor_in_the_cache_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="someone/nothing is not a folder"):
        hub.LeapTS.from_pretrained("someone/nothing", cache_dir=tmp_path, local_files_only=True)


def test_the_cache_of_the_hub_is_read(model: hub.LeapTS, tmp_path: Path) -> None:
    commit = "a" * 40
    repository = tmp_path / "models--someone--weather"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text(commit)
    model.save_pretrained(repository / "snapshots" / commit)
    again = hub.LeapTS.from_pretrained("someone/weather", cache_dir=tmp_path, local_files_only=True)
    pd.testing.assert_frame_equal(again.predict(), model.predict())


def test_importing_leapts_imports_no_extra() -> None:
    extras = ["huggingface_hub", "optuna", "onnx", "onnxruntime", "onnxscript", "tensorboard", "mlflow", "sklearn"]
    modules = "leapts, leapts.forecasting, leapts.integrations.tuning, leapts.persistence.onnx, leapts.cli"
    code = f"import {modules}, sys; print([name for name in {extras} if name in sys.modules])"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment())
    assert done.stdout.strip() == "[]"
