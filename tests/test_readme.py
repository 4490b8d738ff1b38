"""The README tells the truth: its commands and its Python example run."""

import re
import shlex
import shutil
import subprocess
import sys
from importlib import resources
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def _blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


def _lines(program: str) -> list[str]:
    return [line for block in _blocks("console") for line in block.splitlines() if line.startswith(program)]


@pytest.fixture
def weather(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the file the README speaks of."""
    bundled = resources.files("leapts.data") / "bundled" / "seattle_weather.csv"
    (tmp_path / "weather.csv").write_bytes(bundled.read_bytes())
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_python_example_runs(weather: Path) -> None:
    (example,) = _blocks("python")
    subprocess.run([sys.executable, "-W", "error", "-c", example], check=True, cwd=weather)
    assert (weather / "model" / "config.json").exists()


def test_the_commands_run_in_their_order(weather: Path) -> None:
    commands = _lines("leapts ")
    assert len(commands) >= 4
    for command in commands:
        arguments = [sys.executable, "-m", "leapts", *shlex.split(command)[1:]]
        done = subprocess.run(arguments, check=False, cwd=weather, capture_output=True, text=True)
        assert done.returncode == 0, f"{command}\n{done.stderr}"
    assert (weather / "forecast.csv").exists()
    assert (weather / "trace.csv").exists()


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make here")
def test_the_make_commands_are_targets() -> None:
    commands = _lines("make ")
    assert commands == ["make demo", "make test"]
    for command in commands:
        done = subprocess.run(
            [*shlex.split(command), "--dry-run"], check=False, cwd=ROOT, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr


def test_links_and_pictures_lead_somewhere() -> None:
    targets = re.findall(r"\]\(([^)#]+)\)", README)
    assert targets
    for target in targets:
        assert target.startswith("http") or (ROOT / target).exists(), target
