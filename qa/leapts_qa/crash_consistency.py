"""Crash consistency: kill or fail a writer at every system call, with strace.

Each case is a fork of this process that waits for strace, then writes one version after the other until the Nth call of
one kind, at which it is killed or gets an error of a full or broken disk. What is then read must be one of the
versions: the last finished one, or the one being written.
"""

import gc
import os
import shutil
import signal
import subprocess
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from leapts import LeapTSError
from leapts_qa.outcome import Outcome
from leapts_qa.writers import FEW, MANY, OPERATIONS, Operation

CALLS = (
    *("openat", "write", "pwrite64", "sendfile", "copy_file_range", "fsync", "fdatasync", "ftruncate", "flock"),
    *("mkdir", "rename", "renameat", "renameat2", "unlink", "unlinkat", "rmdir", "close"),
)
FAILING = ("write", "sendfile", "copy_file_range", "fsync", "ftruncate", "mkdir", "rename", "renameat2")
ERRORS = ("ENOSPC", "EIO", "EDQUOT")
KILL_UNITS = tuple(OPERATIONS)
FAIL_UNITS = tuple(f"{name} {error}" for name in OPERATIONS for error in ERRORS)


@dataclass(frozen=True)
class Struck:
    """The end of a forked writer: the versions it finished, and the error it raised, if any."""

    killed: bool
    finished: int
    error: str
    is_plain: bool


def run_kills(unit: str, folder: Path, *, versions: int = MANY, stride: int = 1) -> Outcome:
    """Kill at every call, or every few calls, of every kind."""
    outcome = Outcome()
    operation = OPERATIONS[unit](versions)
    expected = _expected(operation, folder)
    for call, count in calls_of(operation, folder).items():
        for number in range(1, count + 1, stride):
            place = prepared(operation, folder)
            struck = strike(operation, place, f"inject={call}:signal=SIGKILL:when={number}")
            # A run may make a call less than the counted one; then it ends undisturbed, and is judged as such.
            _judge(operation, place, expected, struck, f"{unit} killed at {call} {number}", outcome)
    killed = outcome.ends["old or new version, and the next one written"]
    if killed < 0.8 * outcome.cases:
        outcome.fail(f"{unit}: only {killed} of {outcome.cases} writers were killed")
    return outcome


def run_failures(unit: str, folder: Path, *, stride: int = 1) -> Outcome:
    """Fail every call, or every few calls, that can fail on a full disk: once, and from then on."""
    outcome = Outcome()
    name, error = unit.split()
    operation = OPERATIONS[name](FEW)
    expected = _expected(operation, folder)
    counts = calls_of(operation, folder)
    for call in FAILING:
        for number in range(1, counts[call] + 1, stride):
            for lasting in ("", "+"):
                place = prepared(operation, folder)
                struck = strike(operation, place, f"inject={call}:error={error}:when={number}{lasting}")
                _judge(operation, place, expected, struck, f"{name}: {error} at {call} {number}{lasting}", outcome)
    return outcome


def calls_of(operation: Operation, folder: Path) -> Counter[str]:
    """Count the calls of an undisturbed writer."""
    log = folder / "calls.log"
    strike(operation, prepared(operation, folder), f"trace={','.join(CALLS)}", log)
    return Counter(line.partition("(")[0].split()[-1] for line in log.read_text().splitlines() if "(" in line)


def strike(
    operation: Operation, place: Path, rule: str, log: Path = Path(os.devnull), *, options: tuple[str, ...] = ()
) -> Struck:
    """Write all versions but the first in a fork of this process, under a rule of strace."""
    reading, writing = os.pipe()
    waiting, starting = os.pipe()
    child = os.fork()
    if child == 0:
        # No counted call before strace is attached, since it would be counted or not at random.
        os.read(waiting, 1)
        _write_versions(operation, place, writing)
    os.close(writing)
    # Stop only at relevant calls; a rule of injection limits the trace to its own calls.
    tracer = subprocess.Popen(
        ["strace", "-f", "-qq", *options, "-o", str(log), "-e", rule, "-p", str(child)], stderr=subprocess.DEVNULL
    )
    try:
        _wait_for_tracer(child, tracer)
        os.write(starting, b"!")
        _, status = os.waitpid(child, 0)
    finally:
        tracer.wait(30)
        told = os.read(reading, 1 << 16).decode()
        for descriptor in (reading, waiting, starting):
            os.close(descriptor)
    finished, _, error = told.partition("\n")[0].partition("|")
    return Struck(os.WIFSIGNALED(status), len(finished), error, "|unexpected" not in told and "\\n" not in error)


def _write_versions(operation: Operation, place: Path, writing: int) -> None:
    """Write versions in the fork; reports go to memory and then through the pipe by a call that is never struck."""
    gc.disable()  # files left open by the parent would be closed by some forks and not by others
    told = ""
    try:
        for version in range(1, operation.versions):
            operation.put(place, version)
            told += "."
    except (OSError, LeapTSError) as error:
        told += f"|{str(error)!r}"
    except BaseException as error:
        told += f"|unexpected {error!r}"
    os.writev(writing, [told.encode()])
    os._exit(0)


def _wait_for_tracer(child: int, tracer: subprocess.Popen[bytes]) -> None:
    for _ in range(10_000):
        if "TracerPid:\t0" not in Path(f"/proc/{child}/status").read_text():
            return
        if tracer.poll() is not None:
            break
        time.sleep(0.001)
    os.kill(child, signal.SIGKILL)
    raise RuntimeError("strace could not attach; it needs to be installed, and to be allowed to trace")


def _expected(operation: Operation, folder: Path) -> list[str]:
    place = folder / "expected"
    place.mkdir()
    return operation.states(place)


def prepared(operation: Operation, folder: Path) -> Path:
    """Create a folder with the first version."""
    place = folder / "place"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    operation.put(place, 0)
    return place


def _judge(operation: Operation, place: Path, expected: list[str], struck: Struck, name: str, outcome: Outcome) -> None:
    """Check for one of the versions after a kill, and for the old one and a clear message after an error."""
    try:
        found = operation.state(place)
    except Exception as error:
        outcome.fail(f"{name}: damaged: {error}")
        return
    if found not in expected[1:]:
        outcome.fail(f"{name}: neither old nor new: {found}")
        return
    if not struck.killed:
        if not struck.is_plain:
            outcome.fail(f"{name}: {struck.error}")
        elif found != expected[1 + struck.finished]:
            outcome.fail(f"{name}: {struck.finished} versions finished, then {struck.error}, but {found} is there")
        elif operation.leftovers(place):
            outcome.fail(f"{name}: left {operation.leftovers(place)}")
        else:
            outcome.count("old version kept, error reported" if struck.error else "written successfully")
        return
    try:
        operation.put(place, operation.versions - 1)
        recovers = not operation.replaces or operation.state(place) == expected[-1]
    except Exception as error:
        outcome.fail(f"{name}: cannot go on afterwards: {error}")
        return
    if not recovers:
        outcome.fail(f"{name}: not the new version afterwards")
        return
    outcome.count("old or new version, and the next one written")
