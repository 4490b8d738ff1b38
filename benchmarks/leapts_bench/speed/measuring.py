"""The points to measure, and their results file."""

import os
import platform
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from leapts_bench import results
from leapts_bench.results import Line
from leapts_bench.speed.growth import growth
from leapts_bench.speed.inference import inference
from leapts_bench.speed.limit import limit
from leapts_bench.speed.mass import mass
from leapts_bench.speed.plan import Plan, described
from leapts_bench.speed.startup import startup
from leapts_bench.speed.training import training

FILE = "speed.jsonl"

POINTS: dict[str, Callable[[Plan], Line]] = {
    "inference": inference,
    "training": training,
    "limit": limit,
    "growth": growth,
    "mass": mass,
    "startup": startup,
}


def measure(
    points: Sequence[str], threads: Sequence[int], plan: Plan, folder: Path, *, tell: Callable[[str], None]
) -> None:
    """Measure each point with each number of threads, and append a result line for each.

    Args:
        points: The points.
        threads: Numbers of threads, one after the other.
        plan: How thoroughly to measure.
        folder: The folder of the results.
        tell: Called with progress messages.
    """
    before = torch.get_num_threads()
    try:
        for count in threads:
            torch.set_num_threads(count)
            for point in points:
                tell(f"{point}, {count} thread{'s' if count > 1 else ''}")
                found = POINTS[point](plan)
                results.append(folder / FILE, {**_description(point, count, plan), "figures": found})
    finally:
        torch.set_num_threads(before)


def _description(point: str, threads: int, plan: Plan) -> Line:
    return {
        "point": point,
        "threads": threads,
        "plan": plan.to_dict(),
        "seed": plan.seed,
        "runs": described(plan),
        **results.provenance(),
        "machine": {"processor": _processor(), "cores": os.cpu_count(), "system": sys.platform},
        # Shows whether the machine was busy, which makes measurements unreliable.
        "load": round(os.getloadavg()[0], 2),
    }


def _processor() -> str:
    """Return the name of the processor on Linux."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
