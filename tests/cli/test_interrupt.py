"""Ctrl-C ends a fit with one line, and the fit can be resumed exactly."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from leapts import LeapTS
from tests.cli.conftest import Leapts, Result, environment

pytestmark = pytest.mark.slow

LONG = ["--horizon", "6", "--input-size", "12", "--max-steps", "100"]


def _interrupted(arguments: list[str], wait_for: Path) -> Result:
    """Start a fit, and interrupt it once a file is there."""
    process = subprocess.Popen(
        [sys.executable, "-m", "leapts", *arguments],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    until = time.monotonic() + 30
    while not wait_for.exists() and time.monotonic() < until:
        time.sleep(0.002)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    return Result(process.returncode, out.decode(), err.decode())


def test_resumed_fit_equals_uninterrupted_fit(leapts: Leapts, data: Path, tmp_path: Path) -> None:
    checkpoint = tmp_path / "run"
    arguments = ["fit", str(data), *LONG, "--out", str(tmp_path / "m"), "--checkpoint", str(checkpoint)]
    result = _interrupted(arguments, checkpoint / "checkpoint.safetensors")
    assert result.code == 130, result.err
    assert str(checkpoint) in result.error_line
    assert "--resume" in result.error_line
    assert not (tmp_path / "m").exists()

    resumed = leapts(*arguments, "--resume")
    assert (resumed.code, resumed.err) == (0, "")
    whole = leapts("fit", data, *LONG, "--out", tmp_path / "whole")
    assert whole.code == 0
    first, second = (LeapTS.load(tmp_path / name).predictor_ for name in ("m", "whole"))
    assert first.report == second.report
    weights = second.model.state_dict()
    assert all(value.equal(weights[name]) for name, value in first.model.state_dict().items())


def test_fit_interrupted_during_distillation_can_be_resumed(leapts: Leapts, data: Path, tmp_path: Path) -> None:
    checkpoint, config = tmp_path / "run", tmp_path / "teachers.toml"
    config.write_text("[training]\ndistill_from = 2\n")
    arguments = ["fit", str(data), *LONG, "--config", str(config), "--out", str(tmp_path / "m")]
    arguments += ["--checkpoint", str(checkpoint)]
    result = _interrupted(arguments, checkpoint / "parts" / "teacher-1" / "checkpoint.safetensors")
    assert result.code == 130, result.err
    assert "--resume" in result.error_line
    assert not (checkpoint / "checkpoint.safetensors").exists()
    resumed = leapts(*arguments, "--resume")
    assert (resumed.code, resumed.err) == (0, "")
    assert "knowledge distillation from 2 models" in resumed.out
    assert "2 teachers" in (tmp_path / "m" / "README.md").read_text()


def test_resume_without_checkpoint_starts_at_step_0(leapts: Leapts, data: Path, tmp_path: Path) -> None:
    arguments = ["fit", data, "--horizon", 6, "--max-steps", 3, "--out", tmp_path / "m"]
    result = leapts(*arguments, "--checkpoint", tmp_path / "run", "--resume")
    assert result.code == 0
    assert "step 0" in result.err


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs the list of loaded libraries of Linux")
@pytest.mark.parametrize("library", ["pydantic_core", "_multiarray_umath", "libtorch"])
def test_an_interrupt_during_an_import_ends_with_one_line(data: Path, tmp_path: Path, library: str) -> None:
    command = [sys.executable, "-m", "leapts", "fit", str(data), *LONG, "--out", str(tmp_path / "m")]
    process = subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    until, maps = time.monotonic() + 60, Path(f"/proc/{process.pid}/maps")
    while library not in maps.read_text() and time.monotonic() < until:
        time.sleep(0.002)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, b"")
    assert err.splitlines() == [b"interrupted"]
