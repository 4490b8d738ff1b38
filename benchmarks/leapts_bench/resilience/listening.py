"""Where anything listens while each command runs, as the kernel tells it."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import leapts
from leapts_bench.resilience.outcome import Outcome
from leapts_bench.resilience.samples import LOOKBACK, H, forecaster, waves

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
}
UNITS = tuple(_COMMANDS)
_SECONDS = 300.0


def run(unit: str, place: Path) -> Outcome:
    """Run one command with its defaults, and look all the while."""
    frame = waves()
    frame.to_csv(place / "data.csv", index=False)
    forecaster().fit(frame).save(place / "model")
    command = [sys.executable, "-m", "leapts", *_COMMANDS[unit]]
    process = subprocess.Popen(
        command,
        cwd=place,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": str(Path(leapts.__file__).parents[1])},
    )
    outcome = Outcome()
    found: set[str] = set()
    end = time.monotonic() + _SECONDS
    looks = 0
    while process.poll() is None and time.monotonic() < end:
        found |= listening(process.pid)
        looks += 1
        if unit == "serve" and found:
            break
        time.sleep(0.02)
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=120)
    judge(unit, found, looks, outcome)
    # A server may be told to stop before it is ready to be told.
    if process.returncode and not (unit == "serve" and process.returncode == -signal.SIGTERM):
        outcome.fail(f"{unit}: ended with {process.returncode}: {said.decode()[-200:]}")
    if unit == "serve" and not found:
        outcome.fail("serve: nothing listened at all")
    return outcome


def judge(unit: str, addresses: set[str], looks: int, outcome: Outcome) -> None:
    """Only this computer may be able to call."""
    outcome.most("looks", looks)
    wide = sorted(address for address in addresses if address not in _LOOPBACK)
    if wide:
        outcome.fail(f"{unit}: listens at {', '.join(wide)}")
    else:
        outcome.count("listens for this computer alone" if addresses else "does not listen")


def listening(session: int) -> set[str]:
    """The addresses, as the kernel writes them, where any process of a session listens."""
    inodes = {inode for process in _processes(session) for inode in _sockets(process)}
    found = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == _LISTENING and fields[9] in inodes:
                found.add(fields[1].partition(":")[0])
    return found


def _processes(session: int) -> list[int]:
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[3]) == session:
                found.append(int(folder.name))
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
