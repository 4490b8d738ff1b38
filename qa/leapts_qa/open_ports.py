"""Listening sockets while each command runs, according to the kernel."""

import contextlib
import importlib.util
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import leapts
from leapts.errors import ConfigError
from leapts_qa.outcome import Outcome
from leapts_qa.samples import LOOKBACK, H, forecaster, waves

_LISTENING = "0A"
_LOOPBACK = ("0100007F", "00000000000000000000000001000000", "0000000000000000FFFF00000100007F")
_FIT = ("--horizon", str(H), "--input-size", str(LOOKBACK), "--max-steps", "2")
_COMMANDS = {
    "serve": ("serve", "model", "--port", "0"),
    "demo": ("demo", "--max-steps", "2"),
    "fit": ("fit", "data.csv", *_FIT, "--out", "fitted"),
    "predict": ("predict", "model", "data.csv"),
    "backtest": ("backtest", "data.csv", *_FIT, "--windows", "2"),
    "tune": ("tune", "data.csv", "--horizon", str(H), "--trials", "2", "--max-steps", "2"),
    "export": ("export", "model", "--format", "pt2", "--out", "model.pt2"),
    "report": ("report", "model", "data.csv"),
    "analyse": ("analyse", "model", "data.csv"),
    "datasets": ("datasets", "list"),
    "fit in two processes": ("fit", "data.csv", *_FIT, "--out", "fitted"),
    "predict on Ray": ("predict", "model", "data", "--engine", "ray", "-o", "forecasts"),
}
_TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
UNITS = tuple(_COMMANDS)
_SECONDS = 300.0


def run(unit: str, place: Path) -> Outcome:
    """Run one command with its defaults, and watch its sockets.

    Raises:
        ConfigError: When Ray is needed and not installed.
    """
    if unit.endswith("Ray") and importlib.util.find_spec("ray") is None:
        raise ConfigError("this needs Ray; install it: pip install 'leapts[ray]'")
    frame = waves()
    frame.to_csv(place / "data.csv", index=False)
    (place / "data").mkdir()
    frame.to_parquet(place / "data" / "waves.parquet")
    forecaster().fit(frame).save(place / "model")
    launcher = _TORCHRUN if unit.endswith("processes") else ()
    return watched(unit, [*launcher, "-m", "leapts", *_COMMANDS[unit]], place)


def watched(unit: str, arguments: list[str], place: Path) -> Outcome:
    """Run Python with these arguments, and list listening sockets until it ends or a server is ready.

    If another program starts LeapTS several times, as torchrun does, the sockets of that program are ignored.
    """
    outcome = Outcome()
    found: set[str] = set()
    looks = 0
    # Workers of Ray have a low priority, and would not finish on a busy machine.
    code = str(Path(leapts.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": code, "RAY_worker_niceness": "0"}
    with (
        (place / "said").open("wb") as said,
        subprocess.Popen(
            [sys.executable, *arguments],
            cwd=place,
            stdout=said,
            stderr=said,
            start_new_session=True,
            env=environment,
        ) as process,
    ):
        end = time.monotonic() + _SECONDS
        while process.poll() is None and time.monotonic() < end:
            found |= listening(process.pid, but=None if arguments[1] == "leapts" else process.pid)
            looks += 1
            if "serve" in arguments and found:
                break
            time.sleep(0.05)
        if process.poll() is None:
            process.terminate()
        _end(process)
    judge(unit, found, looks, outcome)
    # A server may get the signal before it can handle it.
    if process.returncode and not (unit == "serve" and process.returncode == -signal.SIGTERM):
        outcome.fail(f"{unit}: ended with {process.returncode}: {(place / 'said').read_text()[-200:]}")
    if "serve" in arguments and not found:
        outcome.fail(f"{unit}: nothing listened at all")
    return outcome


def judge(unit: str, addresses: set[str], looks: int, outcome: Outcome) -> None:
    """Check that only this machine can connect."""
    outcome.most("checks of the open ports", looks)
    wide = sorted(address for address in addresses if address not in _LOOPBACK)
    if wide:
        outcome.fail(f"{unit}: listens at {', '.join(wide)}")
    else:
        outcome.count("listens on loopback only" if addresses else "does not listen")


def listening(session: int, *, but: int | None = None) -> set[str]:
    """List the listening addresses of a session and its child processes, except one."""
    inodes = {inode for process in _processes(session) if process != but for inode in _sockets(process)}
    found = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == _LISTENING and fields[9] in inodes:
                found.add(fields[1].partition(":")[0])
    return found


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Wait for a process with a limit, and end its child processes."""
    try:
        process.wait(60)
    except subprocess.TimeoutExpired:
        process.kill()
    for left in _processes(process.pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(left, signal.SIGKILL)


def _processes(first: int) -> set[int]:
    """List the processes of a session and their children, also in other sessions."""
    parents: dict[int, int] = {}
    found = set()
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(folder.name)] = int(fields[1])
            if int(fields[3]) == first:
                found.add(int(folder.name))
    while more := {process for process, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def _sockets(process: int) -> set[str]:
    found = set()
    try:
        for descriptor in Path(f"/proc/{process}/fd").iterdir():
            target = str(descriptor.readlink())
            if target.startswith("socket:["):
                found.add(target[8:-1])
    except OSError:
        pass  # it has just ended
    return found
