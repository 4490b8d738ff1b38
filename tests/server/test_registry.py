"""Models by name, and folders that are replaced while they are served."""

import asyncio
import hashlib
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import httpx
import pandas as pd
import pytest
import torch

from leapts import ConfigError, LeapTS, ModelFileError
from leapts.server import model
from leapts.server import registry as models
from leapts.server.model import ServedModel, identity_of
from leapts.server.problems import Problem
from leapts.server.registry import ModelRegistry
from tests.forecasting.frames import UNIVARIATE, make_forecaster
from tests.server.conftest import client_of, histories


def _until(is_true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not is_true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def _state(name: str, identity: tuple[int, ...], version: str = "1") -> ServedModel:
    nothing = cast("Any", None)
    return ServedModel(name=name, version=version, estimator=nothing, identity=identity, row_seconds=1.0)


class Disk:
    """Replaced and broken model folders, simulated without writing any."""

    def __init__(self, *names: str) -> None:
        self.identities: dict[str, tuple[int, ...] | None] = dict.fromkeys(names, (1,))
        self.broken: set[str] = set()
        self.looks = 0
        self.reads: list[str] = []

    def read(self, name: str, path: Path) -> ServedModel:
        self.reads.append(name)
        identity = self.identities[path.name]
        if identity is None or path.name in self.broken:
            raise ModelFileError(f"{name} is broken; mend it")
        return _state(name, identity, f"v{identity[0]}")

    def identity(self, path: Path) -> tuple[int, ...] | None:
        if path.name not in self.identities:  # of a server that other tests left running
            return identity_of(path)
        self.looks += 1
        return self.identities[path.name]


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    disk = Disk("a", "b")
    monkeypatch.setattr(ServedModel, "load", disk.read)
    monkeypatch.setattr(models, "identity_of", disk.identity)
    return disk


def _watched(
    registry: ModelRegistry,
    *changes: Callable[[], object],
    until: Callable[[], bool] | None = None,
    every: float = 0.001,
) -> list[str]:
    """Watch the folders, apply each change after some checks, and return the reports."""
    told: list[str] = []

    async def watch() -> None:
        watching = asyncio.create_task(registry.watch(every, lambda *words: told.append(" ".join(words[:2]))))
        for change in changes:
            await asyncio.sleep(0.03)
            change()
        await asyncio.sleep(0.05)
        while until is not None and not until():
            await asyncio.sleep(0.01)
        watching.cancel()

    asyncio.run(asyncio.wait_for(watch(), 20))
    return told


def test_an_unchanged_folder_is_read_once(disk: Disk) -> None:
    assert _watched(ModelRegistry(["a", "b"])) == []
    assert disk.reads == ["a", "b"]


def test_folders_are_checked_at_the_given_interval(disk: Disk) -> None:
    _watched(ModelRegistry(["a"]), every=10.0)
    assert disk.looks == 0
    _watched(ModelRegistry(["a"]), until=lambda: disk.looks > 2)


def test_a_replaced_folder_is_read_once_more(disk: Disk) -> None:
    registry = ModelRegistry(["a", "b"])
    told = _watched(registry, lambda: disk.identities.update(b=(2,)), until=lambda: registry.find("b").version == "v2")
    assert told == ["b loaded"]
    assert disk.reads == ["a", "b", "b"]
    assert [served.version for served in registry] == ["v1", "v2"]


def test_a_broken_folder_is_tried_again_and_logged_once(disk: Disk) -> None:
    registry = ModelRegistry(["a"])

    def break_it(*identity: int) -> None:
        disk.broken.add("a")
        disk.identities["a"] = identity or None

    def mend() -> None:
        disk.broken.clear()
        disk.identities["a"] = (5,)

    def version(expected: str) -> Callable[[], bool]:
        return lambda: registry.find("a").version == expected

    assert _watched(registry, lambda: break_it(2), until=lambda: len(disk.reads) > 3) == ["a failed"]
    assert version("v1")()
    assert _watched(registry, lambda: break_it(3), break_it) == ["a failed", "a failed"]
    assert _watched(registry, mend, until=version("v5")) == ["a loaded"]


@pytest.mark.usefixtures("disk")
def test_a_model_is_found_by_its_exact_name() -> None:
    alone, both = ModelRegistry(["a"]), ModelRegistry(["a", "b"])
    assert (len(alone), len(both)) == (1, 2)
    assert alone.find(None).name == alone.find("a").name == "a"
    assert both.find("b").name == "b"
    with pytest.raises(Problem) as refused:
        both.find(None)
    assert (refused.value.kind.status, refused.value.detail) == (400, "2 models are served")
    assert refused.value.hint == "set model to one of 'a', 'b'"
    for name, hint in (("xyz", "the models are 'a', 'b'"), ("A", "did you mean 'a'?"), ("", "the models are 'a', 'b'")):
        with pytest.raises(Problem) as refused:
            both.find(name)
        assert (refused.value.kind.status, refused.value.hint) == (404, hint)
        assert refused.value.detail == f"there is no model {name!r}"


def test_an_unknown_model_is_refused_with_at_most_eight_names(disk: Disk) -> None:
    disk.identities = {f"m{number}": (1,) for number in range(10)}
    with pytest.raises(Problem) as refused:
        ModelRegistry(disk.identities).find("zzz")
    assert refused.value.hint.endswith("'m6', 'm7'")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("some/where", ("where", "some/where")),
        ("name=some/where", ("name", "some/where")),
        ("some/name=where", ("name=where", "some/name=where")),
        ("=where", ("=where", "=where")),
        ("there=is", ("there=is", "there=is")),
    ],
)
def test_a_model_name_is_given_before_an_equals_sign(
    given: str, expected: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there=is").mkdir()
    name, path = models._split_name(given)
    assert (name, str(path)) == expected


def test_a_folder_changes_with_either_of_its_files(tmp_path: Path) -> None:
    assert identity_of(tmp_path) is None
    config, weights = tmp_path / "config.json", tmp_path / "model.safetensors"
    config.write_bytes(b"1")
    assert identity_of(tmp_path) is None
    weights.write_bytes(b"1")
    seen = [identity_of(tmp_path)]
    assert seen[0] == identity_of(tmp_path)
    for file in (config, weights):
        file.write_bytes(b"longer")
        seen.append(identity_of(tmp_path))
    assert None not in seen
    assert len(set(seen)) == 3


class Loaded:
    """A stand-in for a loaded model, named after the version of its folder."""

    def __init__(self) -> None:
        self.fill, self.predictor_ = "ffill", SimpleNamespace(model=torch.nn.Linear(1, 1), covariates=None)


def _reading(monkeypatch: pytest.MonkeyPatch, folder: Path, meanwhile: Callable[[], object]) -> dict[str, Any]:
    folder.mkdir()
    for file in ("config.json", "model.safetensors"):
        (folder / file).write_bytes(b"content")
    made: dict[str, Any] = {}

    def load(_: Path) -> Loaded:
        meanwhile()
        return Loaded()

    def measure(predictor: Any) -> float:
        made["predictor"] = predictor
        return 1.0

    monkeypatch.setattr(LeapTS, "load", load)
    monkeypatch.setattr(model, "_measure_row_seconds", measure)
    return made


def test_a_model_is_loaded_with_its_version_for_inference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = _reading(monkeypatch, tmp_path / "m", lambda: None)
    (served,) = ModelRegistry([tmp_path / "m"])
    assert served.version == hashlib.sha256(b"content").hexdigest()[:12]
    assert (made["predictor"].model.training, served.row_seconds) == (False, 1.0)
    assert served.identity == identity_of(tmp_path / "m")


def test_a_folder_replaced_while_it_is_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "m"
    _reading(monkeypatch, folder, lambda: (folder / "model.safetensors").write_bytes(b"other content"))
    with pytest.raises(ModelFileError, match="was replaced while it was read"):
        ModelRegistry([folder])
    monkeypatch.setattr(model, "identity_of", lambda path: None if path == folder else identity_of(path))
    with pytest.raises(ModelFileError, match="was replaced while it was read"):
        ModelRegistry([folder])
    monkeypatch.setattr(LeapTS, "load", lambda _: (folder / "config.json").unlink(missing_ok=True))
    with pytest.raises(ModelFileError, match="was removed while it was read"):
        ModelRegistry([folder])


def test_models_are_named_after_their_folders_or_as_given(folders: Path) -> None:
    registry = ModelRegistry([folders / "univariate", f"mine={folders / 'univariate'}"])
    assert [served.name for served in registry] == ["univariate", "mine"]
    for name in ("nothing", "..", str(folders / "univariate"), ""):
        with pytest.raises(Problem):
            registry.find(name)


def test_two_models_of_one_name_are_refused(folders: Path) -> None:
    with pytest.raises(ConfigError, match="OTHER="):
        ModelRegistry([folders / "univariate", folders / "univariate"])
    with pytest.raises(ConfigError, match="no model"):
        ModelRegistry([])


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError):
        ModelRegistry([tmp_path])


@pytest.mark.parametrize("failure", [BrokenPipeError, SystemExit(1)])
def test_a_broken_log_does_not_stop_the_server(
    folders: Path, frame: pd.DataFrame, tmp_path: Path, failure: BaseException
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(folders / "univariate", folder)
    told = 0

    def log(_: str) -> None:
        nonlocal told
        told += 1
        raise failure

    with client_of(ModelRegistry([folder]), reload_every=0.05, log=log) as client:

        def version() -> object:
            return client.post("/v1/forecast", json={"series": histories(frame)}).json()["version"]

        seen = {version()}
        for seed in (8, 9):
            make_forecaster(**UNIVARIATE, val_size=60, max_steps=1, random_seed=seed).fit(frame).save(folder)
            _until(lambda: version() not in seen)
            seen.add(version())
    assert told >= 2


def test_no_request_is_refused_while_a_folder_is_replaced(folders: Path, frame: pd.DataFrame, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(folders / "univariate", folder)
    newer = make_forecaster(**UNIVARIATE, val_size=60, random_seed=9).fit(frame)
    asked = {"series": histories(frame)}
    told: list[str] = []
    with client_of(ModelRegistry([folder]), reload_every=0.05, log=told.append) as client:

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
        LeapTS.load(folders / "univariate").save(folder)
        _until(lambda: forecast().json()["version"] == before["version"])


def test_a_model_with_covariates_is_refused_by_its_folder(tmp_path: Path) -> None:
    days = pd.date_range("2024-01-01", periods=60)
    sales = pd.DataFrame(
        {"unique_id": "shop", "ds": days, "y": range(60), "promotion": [float(d % 7 == 0) for d in range(60)]}
    )
    LeapTS(7, max_steps=1, futr_exog_list=["promotion"]).fit(sales).save(tmp_path / "shop")
    with pytest.raises(ModelFileError, match="shop was fitted with covariates"):
        ModelRegistry([tmp_path / "shop"])
