"""Speed: everything in one process and one run, with one thread and again with two; ratios first."""

from leapts_bench.speed.measuring import FILE, POINTS, measure
from leapts_bench.speed.page import speed_page
from leapts_bench.speed.plan import Plan

__all__ = ["FILE", "POINTS", "Plan", "measure", "speed_page"]
