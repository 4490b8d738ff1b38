"""Speed measurements: all candidates in one process, with one thread and with two; ratios first."""

from leapts_bench.speed.measuring import FILE, POINTS, measure
from leapts_bench.speed.plan import Plan

__all__ = ["FILE", "POINTS", "Plan", "measure"]
