"""Small models behind a server: in this process for most tests, in another where processes matter."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

pytest.importorskip("fastapi", reason="the server needs: pip install 'leapts[serve]'")


import httpx

from leapts import LeapTS
from leapts.server import Limits
from leapts.server.app import create_app
from leapts.server.registry import ModelRegistry
from leapts.server.running import Server, bound_socket
from tests.cli.conftest import environment
from tests.forecasting.frames import MULTIVARIATE, UNIVARIATE, make_forecaster, make_frame

NAMES = ("a", "b", "c")


@pytest.fixture(scope="session")
def frame() -> pd.DataFrame:
    return make_frame()


@pytest.fixture(scope="session")
def folders(frame: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder with two models, `multivariate` and `univariate`."""
    folder = tmp_path_factory.mktemp("models")
    make_forecaster(**MULTIVARIATE, val_size=60).fit(frame).save(folder / "multivariate")
    make_forecaster(**UNIVARIATE, val_size=60).fit(frame).save(folder / "univariate")
    return folder


@pytest.fixture(scope="session")
def univariate(folders: Path) -> LeapTS:
    return LeapTS.load(folders / "univariate")


@pytest.fixture(scope="session")
def multivariate(folders: Path) -> LeapTS:
    return LeapTS.load(folders / "multivariate")


@pytest.fixture(scope="session")
def registry(folders: Path) -> ModelRegistry:
    return ModelRegistry([folders / "multivariate", folders / "univariate"])


@contextlib.contextmanager
def served(registry: ModelRegistry, **options: Any) -> Iterator[str]:
    """Run a server in a thread of this process, and yield its address."""
    limits = Limits(**{"seconds": 10.0, **options.pop("limits", {})})
    ready = threading.Event()
    server = Server(create_app(registry, limits=limits, **options), limits, ready.set)
    listening = bound_socket("127.0.0.1", 0)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        assert ready.wait(30)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(30)
        assert not thread.is_alive()


@contextlib.contextmanager
def client_of(registry: ModelRegistry, **options: Any) -> Iterator[httpx.Client]:
    """A client of a server in a thread of this process."""
    with served(registry, **options) as address, httpx.Client(base_url=address, timeout=30) as client:
        yield client


@pytest.fixture(scope="session")
def client(registry: ModelRegistry) -> Iterator[httpx.Client]:
    with client_of(registry) as client:
        yield client


def histories(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Convert a frame to the series of a request."""
    return [{"id": name, "values": rows["y"].tolist()} for name, rows in frame.groupby("unique_id", sort=False)]


@dataclass(frozen=True)
class Running:
    """A server in a process of its own."""

    process: subprocess.Popen[str]
    port: int

    @property
    def address(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.port}"

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Ask it to stop, and wait until it has."""
        self.process.send_signal(number)
        return self.process.wait(30)


@contextlib.contextmanager
def running(*arguments: object, variables: dict[str, str] | None = None) -> Iterator[Running]:
    """Run `leapts serve` until the block ends."""
    process = subprocess.Popen(
        [sys.executable, "-m", "leapts", "serve", *map(str, arguments), "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**environment(), **(variables or {})},
        preexec_fn=os.setpgrp,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.search(r":(\d+) ", line)
        assert found, f"{line}{process.stderr.read() if process.stderr and process.poll() is not None else ''}"
        yield Running(process, int(found[1]))
    finally:
        process.kill()
        process.communicate()
