"""Admission control: requests beyond the limits are refused at once (load shedding)."""

import math
from collections.abc import Hashable, Iterator
from contextlib import contextmanager

from leapts.server.limits import Limits
from leapts.server.problems import busy

_SMOOTHING = 0.7  # weight of the former estimate of the seconds per row
_DECAY = 0.995  # of the largest recent request, with every further request
_MIN_SECONDS = 0.005  # shorter batches overestimate the cost of a row, so they may only lower it
_ROUNDING = 1.01


class Admission:
    """Counts requests in progress, and estimates the seconds of work that are queued.

    Under overload an unlimited queue makes every client wait longer and longer. So a forecast is refused if more work
    is queued than `Limits.wait`, or than the largest recent request takes by itself.
    """

    def __init__(self, limits: Limits) -> None:
        self.in_progress = {"forecast": 0, "table": 0}
        self.queued_seconds = 0.0
        self._max = {"forecast": limits.concurrency, "table": limits.tables}
        self._max_seconds = limits.wait
        self._largest = 0.0
        self._row_seconds: dict[Hashable, float] = {}  # by kind of batch: a model and a kind of record

    def check(self, kind: str, seconds: float = 0.0) -> None:
        """Check whether a request of this kind, and with this work, may begin.

        Raises:
            Problem: If too many requests are in progress, or too much work is queued.
        """
        if self.in_progress[kind] >= self._max[kind]:
            raise busy(f"{self._max[kind]} requests are in progress", 1 if kind == "forecast" else 5)
        if kind == "forecast" and self.queued_seconds > _ROUNDING * max(self._max_seconds, self._largest, seconds):
            wait = max(1, math.ceil(self.queued_seconds))
            raise busy(f"requests of {self.queued_seconds:.2f} s are queued", wait, limit="a higher --max-wait")

    @contextmanager
    def slot(self, kind: str, seconds: float = 0.0) -> Iterator[None]:
        """Count a request as in progress, and its work as queued; refuse it as `check` does."""
        self.check(kind, seconds)
        if kind == "forecast":
            self._largest = max(seconds, self._largest * _DECAY)
        self.in_progress[kind] += 1
        self.queued_seconds += seconds
        try:
            yield
        finally:
            self.in_progress[kind] -= 1
            self.queued_seconds -= seconds

    def estimate(self, batch: Hashable, rows: int, row_seconds: float) -> float:
        """Estimate the seconds of work for these rows; `row_seconds` is used until `learn` has a better figure."""
        return rows * self._row_seconds.get(batch, row_seconds)

    def learn(self, batch: Hashable, rows: int, seconds: float) -> None:
        """Update the estimate with the processor time of a batch."""
        measured = seconds / rows
        known = self._row_seconds.get(batch, measured)
        if seconds >= _MIN_SECONDS:
            self._row_seconds[batch] = measured + _SMOOTHING * (known - measured)
        elif batch in self._row_seconds:
            self._row_seconds[batch] = min(known, measured)
