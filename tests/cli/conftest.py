"""A small panel, a model fitted to it once, and ways to run the command line inside and outside this process."""

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from leapts.cli import run

FEW_STEPS = ["--max-steps", "4", "--input-size", "12"]
SOURCES = Path(__file__).parents[2] / "src"


@dataclass(frozen=True)
class Result:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def error_line(self) -> str:
        """The one line of an error; fails when there are more, or when something went to standard output."""
        assert self.out == ""
        lines = self.err.splitlines()
        assert len(lines) == 1, self.err
        return lines[0]


Leapts = Callable[..., Result]


@pytest.fixture
def leapts(capfdbinary: pytest.CaptureFixture[bytes]) -> Leapts:
    """Runs a command in this process."""

    def call(*arguments: object) -> Result:
        code = run([str(argument) for argument in arguments])
        sys.stdout.flush()
        out, err = capfdbinary.readouterr()
        return Result(code, out.decode(), err.decode())

    return call


def environment() -> dict[str, str]:
    """For a process of its own: these sources, one thread."""
    return {**os.environ, "PYTHONPATH": str(SOURCES), "OMP_NUM_THREADS": "1"}


def outside(arguments: Sequence[object], *, stdin: bytes = b"") -> Result:
    """Runs a command in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "leapts", *map(str, arguments)],
        input=stdin,
        capture_output=True,
        env=environment(),
        timeout=60,
        check=False,
    )
    return Result(done.returncode, done.stdout.decode(), done.stderr.decode())


def table(names: Sequence[str] = ("a", "b"), rows: int = 120) -> str:
    """Long CSV: daily waves, one for each name."""
    lines = ["unique_id,ds,y"]
    for number, name in enumerate(names):
        for day in range(rows):
            timestamp = date(2024, 1, 1) + timedelta(days=day)
            lines.append(f"{name},{timestamp},{10 + number + math.sin(day / 7 * 2 * math.pi):.4f}")
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "waves.csv"
    path.write_text(table())
    return path


@pytest.fixture(scope="session")
def model(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from leapts import LeapTS

    path = tmp_path_factory.mktemp("model") / "model"
    LeapTS(6, 12, max_steps=4).fit(data).save(path)
    return path


def page_data(page: Path) -> dict[str, Any]:
    """Read the data that a report embeds."""
    text = page.read_text(encoding="utf-8").split('<script id="data" type="application/json">')[1].split("</script>")[0]
    data: dict[str, Any] = json.loads(text)
    return data
