"""Seconds, bytes and exponents."""

import ctypes
import gc
import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

Action = Callable[[], object]

# A round of a candidate lasts at least so long, so that a single hiccup, and caches still full of the candidate before,
# do not show.
_LEAST_SECONDS = 0.2
# One that takes longer than this is called twice and no more: what disturbs a clock is little beside it.
_SLOW_SECONDS = 10.0


def fastest(candidates: Mapping[str, Action], rounds: int) -> dict[str, float]:
    """Seconds of one call of each candidate.

    Rounds alternate between the candidates, so that a machine that slows down slows them all; each one's fastest round
    counts, as other work only ever adds time.
    """
    warm = {name: _warm(action) for name, action in candidates.items()}
    times: dict[str, list[float]] = {name: [seconds] for name, seconds in warm.items()}
    for _ in range(rounds):
        for name, action in candidates.items():
            if warm[name] > _SLOW_SECONDS:
                continue
            repeats = max(1, math.ceil(_LEAST_SECONDS / warm[name]))
            begin = time.perf_counter()
            for _ in range(repeats):
                action()
            times[name].append((time.perf_counter() - begin) / repeats)
    return {name: min(values) for name, values in times.items()}


def once(action: Action) -> float:
    """Seconds of a single call."""
    begin = time.perf_counter()
    action()
    return time.perf_counter() - begin


def peak_memory(action: Action) -> int | None:
    """Bytes held at the most during a call, above what was held before; none where the system does not tell.

    Linux can forget a process's highest mark; memory freed before is first given back, so that it does not hide any.
    """
    gc.collect()
    try:
        ctypes.CDLL(None).malloc_trim(0)
        Path("/proc/self/clear_refs").write_text("5")
        before = _status("VmRSS")
        action()
        return max(0, _status("VmHWM") - before)
    except (OSError, AttributeError):
        return None


def exponent(sizes: Sequence[float], values: Sequence[float]) -> float:
    """The power of the size that the values grow with: the slope of a line through their logarithms."""
    slope: float = statistics.linear_regression(
        [math.log(size) for size in sizes], [math.log(value) for value in values]
    ).slope
    return slope


def _warm(action: Action) -> float:
    """Call once to warm up, once to see how long it takes."""
    action()
    return max(once(action), 1e-7)


def _status(name: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise OSError(f"/proc/self/status has no {name}")
