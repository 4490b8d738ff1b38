"""Replaced models are released: memory stays flat over reloads, with and without traffic."""

import gc
import sys
import weakref
from collections.abc import Callable
from pathlib import Path

import httpx
import pandas as pd
import pytest

from leapts import LeapTS
from leapts.server.registry import ModelRegistry
from tests.forecasting.frames import UNIVARIATE, make_forecaster
from tests.server.conftest import client_of, histories, running
from tests.server.test_registry import _until

MEGABYTE = 1_000_000


@pytest.fixture(scope="module")
def versions(frame: pd.DataFrame) -> list[LeapTS]:
    return [make_forecaster(**UNIVARIATE, val_size=60, max_steps=1, random_seed=seed).fit(frame) for seed in (1, 2)]


def _resident_bytes(process: int | str) -> int:
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * 4096


def _reload(client: httpx.Client, folder: Path, versions: list[LeapTS], times: int, then: Callable[[], object]) -> None:
    def version() -> object:
        return client.get("/v1/models").json()["models"][0]["version"]

    for number in range(times):
        before = version()
        versions[(number + 1) % 2].save(folder)
        _until(lambda before=before: version() != before)  # type: ignore[misc]
        then()


def test_a_replaced_model_is_released(frame: pd.DataFrame, versions: list[LeapTS], tmp_path: Path) -> None:
    versions[0].save(tmp_path / "m")
    registry = ModelRegistry([tmp_path / "m"])
    asked = {"series": histories(frame), "level": [80], "trace": True}
    seen: list[weakref.ref[object]] = []
    with client_of(registry, reload_every=0.05) as client:

        def ask() -> None:
            assert client.post("/v1/forecast", json=asked).status_code == 200
            model = registry.find(None)
            seen.extend(
                map(weakref.ref, (model, model.estimator.predictor_.model, model.estimator.predictor_.inference_copy))
            )

        ask()
        _reload(client, tmp_path / "m", versions, 3, ask)
        gc.collect()
        assert [ref() is None for ref in seen] == [True] * 9 + [False] * 3


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("has_traffic", [False, True])
def test_memory_is_flat_over_200_reloads(
    frame: pd.DataFrame, versions: list[LeapTS], tmp_path: Path, has_traffic: bool
) -> None:
    folder, asked = tmp_path / "m", {"series": histories(frame), "level": [80], "trace": True}
    versions[0].save(folder)
    with (
        running(folder, "--reload-every", 0.05) as server,
        httpx.Client(base_url=server.address, timeout=30) as client,
    ):

        def ask() -> None:
            if has_traffic:
                assert client.post("/v1/forecast", json=asked).status_code == 200

        _reload(client, folder, versions, 20, ask)
        before = _resident_bytes(server.process.pid)
        _reload(client, folder, versions, 200, ask)
        assert _resident_bytes(server.process.pid) - before < 20 * MEGABYTE
