"""Run a function in a fork of this process, so that it may hang, crash or be killed."""

import json
import os
import resource
import select
import signal
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Ended:
    """The end of a fork.

    Attributes:
        value: The return value, if there is one.
        signal: The signal that killed it, if any.
        error: The traceback, if it raised.
        hung: Whether it exceeded its time.
        cpu: Seconds of processor time.
        megabytes: Peak memory above that at its start.
    """

    value: Any = None
    signal: int = 0
    error: str = ""
    hung: bool = False
    cpu: float = 0.0
    megabytes: float = 0.0


def in_fork(function: Callable[[], Any], *, seconds: float = 60.0) -> Ended:
    """Call a function in a fork of this process; its result must be JSON."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _report(function, writing)
    os.close(writing)
    try:
        content, hung = _read_all(reading, seconds)
    finally:
        os.close(reading)
    if hung:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if hung:
        return Ended(hung=True)
    if os.WIFSIGNALED(status):
        return Ended(signal=os.WTERMSIG(status))
    return Ended(**json.loads(content))


def _report(function: Callable[[], Any], writing: int) -> None:
    """Call the function in the fork, report, and exit without cleanup of the parent's resources."""
    before, cpu = resident(), time.process_time()
    try:
        found: dict[str, Any] = {"value": function()}
    except BaseException:
        found = {"error": traceback.format_exc()}
    found |= {"cpu": time.process_time() - cpu, "megabytes": max(0.0, _most_resident() - before)}
    os.write(writing, json.dumps(found).encode())
    os._exit(0)


def _read_all(descriptor: int, seconds: float) -> tuple[bytes, bool]:
    parts: list[bytes] = []
    end = time.monotonic() + seconds
    while select.select([descriptor], [], [], max(0.0, end - time.monotonic()))[0]:
        part = os.read(descriptor, 1 << 16)
        if not part:
            return b"".join(parts), False
        parts.append(part)
    return b"", True


def resident() -> float:
    """Return the resident memory of this process in megabytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def _most_resident() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
