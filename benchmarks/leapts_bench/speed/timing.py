"""Measure time and memory, and fit exponents."""

import ctypes
import gc
import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

Action = Callable[[], object]

# Minimum duration of a round, so that a single interruption, or caches filled by the previous candidate, do not matter.
_LEAST_SECONDS = 0.2
# A call that takes longer than this is made only twice, since disturbances are small relative to it.
_SLOW_SECONDS = 10.0


def fastest(candidates: Mapping[str, Action], rounds: int) -> dict[str, float]:
    """Return the seconds of one call of each candidate.

    Rounds alternate between the candidates, so that a slowdown of the machine affects all; the fastest round of each
    counts, since other work only adds time.
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
    """Return the seconds of a single call."""
    begin = time.perf_counter()
    action()
    return time.perf_counter() - begin


def peak_memory(action: Action) -> int | None:
    """Return the peak memory of a call in bytes, above that before it; None if the system does not report it.

    On Linux the high-water mark of a process can be reset; freed memory is returned first, so that it hides none.
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
    """Fit the exponent of growth: the slope of a line through the logarithms."""
    slope: float = statistics.linear_regression(
        [math.log(size) for size in sizes], [math.log(value) for value in values]
    ).slope
    return slope


def _warm(action: Action) -> float:
    """Call once to warm up, and once to measure the duration."""
    action()
    return max(once(action), 1e-7)


def _status(name: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise OSError(f"/proc/self/status has no {name}")
