"""`torchrun -m leapts fit` with real processes, one of which is killed."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

from leapts import LeapTS
from tests.cli.conftest import Leapts, Result, environment

pytestmark = pytest.mark.slow

FIT = ["--horizon", "6", "--input-size", "12", "--max-steps", "40"]
SETTINGS = "[training]\nval_check_steps = 10\nbatch_size = 33\n"


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("settings") / "run.toml"
    path.write_text(SETTINGS)
    return path


def _start(arguments: list[object], machine: Sequence[str] = ("--nproc-per-node", "2")) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "torch.distributed.run", *machine, "-m", "leapts"]
    return subprocess.Popen(
        [*command, *map(str, arguments)], env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def _finished(process: "subprocess.Popen[bytes]") -> Result:
    out, err = process.communicate(timeout=120)
    return Result(process.returncode, out.decode(), err.decode())


def _process_of_rank(launcher: int, rank: int) -> int:
    """The process that a launcher started as the one of this rank."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            told = (folder / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if parent == launcher and f"RANK={rank}".encode() in told:
            return int(folder.name)
    raise AssertionError(f"no process of rank {rank}")


def _assert_close(one: Path, other: Path) -> None:
    ours, theirs = (LeapTS.load(path).predictor_.model.state_dict() for path in (one, other))
    for name, value in ours.items():
        torch.testing.assert_close(value, theirs[name], rtol=1e-4, atol=1e-5)


@pytest.fixture(scope="module")
def alone(data: Path, settings: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from leapts.cli import run

    path = tmp_path_factory.mktemp("alone") / "model"
    assert run(["fit", str(data), *FIT, "--config", str(settings), "--out", str(path)]) == 0
    return path


def test_two_processes_give_the_model_of_one(data: Path, settings: Path, alone: Path, tmp_path: Path) -> None:
    result = _finished(_start(["fit", data, *FIT, "--config", settings, "--out", tmp_path / "model"]))
    assert result.code == 0, result.err
    assert len(re.findall("^trained ", result.out, re.MULTILINE)) == 1
    _assert_close(tmp_path / "model", alone)


def test_two_machines_give_the_model_of_one(data: Path, settings: Path, alone: Path, tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    arguments: list[object] = ["fit", data, *FIT, "--config", settings, "--out", tmp_path / "model"]
    common = ("--nnodes", "2", "--nproc-per-node", "1", "--master-addr", "127.0.0.1", "--master-port", port)
    agents = [_start(arguments, (*common, "--node-rank", rank)) for rank in ("0", "1")]
    first, second = (_finished(agent) for agent in agents)
    assert (first.code, second.code) == (0, 0), first.err + second.err
    assert len(re.findall("^trained ", first.out, re.MULTILINE)) == 1
    assert second.out == ""
    _assert_close(tmp_path / "model", alone)


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="finds the process of a rank through /proc")
@pytest.mark.parametrize("rank", [0, 1])
def test_killed_rank_ends_the_run_and_it_can_be_resumed(
    data: Path, settings: Path, alone: Path, tmp_path: Path, leapts: Leapts, rank: int
) -> None:
    folder, out = tmp_path / "run", tmp_path / "model"
    arguments: list[object] = ["fit", data, *FIT, "--config", settings, "--out", out, "--checkpoint", folder]
    process = _start(arguments)
    deadline = time.monotonic() + 60
    while not (folder / "checkpoint.safetensors").exists() and time.monotonic() < deadline:
        time.sleep(0.002)
    os.kill(_process_of_rank(process.pid, rank), signal.SIGKILL)
    result = _finished(process)
    assert result.code != 0
    ours = [line for line in result.err.splitlines() if line.startswith("error: ")]
    assert len(ours) == 1, result.err
    assert f"the checkpoint is in {folder}: run the same command with --resume" in ours[0]
    # Whoever is killed cannot tidy up the folder that it had claimed; but nothing is in it.
    assert not out.exists() or not list(out.iterdir())

    # The state does not depend on the number of processes: here, one goes on.
    resumed = leapts(*arguments, "--resume")
    assert (resumed.code, resumed.err) == (0, "")
    _assert_close(out, alone)


@pytest.mark.parametrize(("rank", "heard"), [("0", 1), ("1", 0)])
def test_invalid_input_is_reported_by_rank_0_only(
    tmp_path: Path, leapts: Leapts, monkeypatch: pytest.MonkeyPatch, rank: str, heard: int
) -> None:
    told = {"RANK": rank, "WORLD_SIZE": "2", "MASTER_ADDR": "localhost", "MASTER_PORT": "1"}
    for name, value in told.items():
        monkeypatch.setenv(name, value)
    result = leapts("fit", tmp_path / "nowhere.csv", *FIT, "--out", tmp_path / "model")
    assert (result.code, result.err.count("error: ")) == (2, heard)
