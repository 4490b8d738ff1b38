"""Running something in a copy of this process, so that it may hang, crash or be killed, and cost nothing to start."""

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
    """How a copy ended.

    Attributes:
        value: What the function gave back, if it came to its end.
        signal: What killed it, if anything did.
        error: What it raised, with the way there, if it did.
        hung: Whether it was still going when its time was over.
        cpu: Seconds of processor time it took.
        megabytes: How much memory it took beyond what it started with, at the most.
    """

    value: Any = None
    signal: int = 0
    error: str = ""
    hung: bool = False
    cpu: float = 0.0
    megabytes: float = 0.0


def in_fork(function: Callable[[], Any], *, seconds: float = 60.0) -> Ended:
    """Call a function in a copy of this process; what it returns must be JSON."""
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
    """In the copy: call, tell, and leave without any of the original's cleaning up."""
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
    """How many megabytes this process holds."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def _most_resident() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
