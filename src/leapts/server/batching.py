"""Forecasts that are asked for together are made together, in one pass through the model.

What is over in a moment is made on the event loop itself, with whatever else has arrived by then: handing it to a
thread and back would cost more than the pass. What takes longer is made by one thread, which computes and nothing else;
whoever comes while a pass is under way shares the next one. Nobody waits for company.
"""

import asyncio
import math
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from leapts.forecasting.arrays import ArrayForecast, ArrayForecaster, Histories
from leapts.model.network import Record
from leapts.server.admission import Queue

MAX_ROWS = 4096  # windows of single series in one pass


@dataclass(eq=False, slots=True)
class _Job:
    forecaster: ArrayForecaster
    record: Record
    histories: Histories
    done: "asyncio.Future[ArrayForecast]"
    deadline: float


_Outcome = list[ArrayForecast] | Exception


class Batcher:
    """Makes forecasts, the quick ones between other events and the others in a thread."""

    def __init__(
        self, seconds: float, observe: Callable[[int], None] | None = None, *, most_wait: float = math.inf
    ) -> None:
        """Prepares the thread; `start` sets it going.

        Args:
            seconds: How long a forecast may take, the waiting included.
            observe: Told, on the event loop, how many requests shared a pass.
            most_wait: Seconds of work that anyone may be asked to wait for; see `Queue`.
        """
        self.queue = Queue(most_wait)
        self._seconds = seconds
        self._observe = observe
        self._quick: list[_Job] = []
        self._drained = 0
        self._pending: list[_Job] = []
        self._under_way: list[_Job] = []
        self._batches: queue.SimpleQueue[list[_Job] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="leapts-forecasts", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self) -> None:
        """Begin, on the event loop that runs now."""
        self._loop = asyncio.get_running_loop()
        self._thread.start()
        self._look_at_the_clock()

    def stop(self) -> None:
        """End the thread once it is done with what it has."""
        self._clock.cancel()
        self._batches.put(None)
        self._thread.join()

    async def forecast(self, forecaster: ArrayForecaster, histories: Histories, record: Record) -> ArrayForecast:
        """Forecast, together with whatever else is asked for at the time.

        Raises:
            Problem: When too much is waiting already.
            TimeoutError: When it takes too long.
        """
        assert self._loop is not None, "start first"
        work = self.queue.estimate(forecaster, record, len(histories))
        self.queue.join(work)
        job = _Job(forecaster, record, histories, self._loop.create_future(), self._loop.time() + self._seconds)
        if record == "nothing" and len(histories) <= forecaster.quick_rows:
            self._quick.append(job)
            if len(self._quick) == 1:
                self._loop.call_soon(self._drain)
        else:
            self._pending.append(job)
            if len(self._pending) == 1 and not self._under_way:
                # Not at once: what arrived in the same moment is still being read, and shall come along.
                self._loop.call_soon(self._hand_over)
        try:
            return await job.done
        finally:
            self.queue.leave(work)

    def _drain(self) -> None:
        """Make the quick forecasts, once a look at all connections brings no more of them."""
        assert self._loop is not None
        if len(self._quick) > self._drained:
            self._drained = len(self._quick)
        else:
            self._drained = 0
            batch, self._quick = _next_batch(self._quick, self._quick[0].forecaster.quick_rows)
            self._settle(batch, _made(batch))
        if self._quick:
            self._loop.call_soon(self._drain)

    def _hand_over(self) -> None:
        """Give the thread its next pass."""
        if self._under_way:
            return
        waiting = [job for job in self._pending if not job.done.done()]
        self._under_way, self._pending = _next_batch(waiting, MAX_ROWS)
        if self._under_way:
            self._batches.put(self._under_way)

    def _look_at_the_clock(self) -> None:
        """Give up on what takes too long: one look at all of them now and then, instead of an alarm for each."""
        assert self._loop is not None
        now = self._loop.time()
        for job in (*self._under_way, *self._pending):
            if job.deadline < now and not job.done.done():
                job.done.set_exception(TimeoutError())
        self._clock = self._loop.call_later(min(0.25, self._seconds), self._look_at_the_clock)

    def _work(self) -> None:
        assert self._loop is not None
        while (batch := self._batches.get()) is not None:
            started = time.thread_time()
            outcome = _made(batch)
            seconds = time.thread_time() - started
            try:
                self._loop.call_soon_threadsafe(self._finish, batch, outcome, seconds)
            except RuntimeError:  # the loop is closed: nobody waits any more
                return

    def _finish(self, batch: list[_Job], outcome: _Outcome, seconds: float) -> None:
        first, rows = batch[0], sum(len(job.histories) for job in batch)
        self.queue.learn(first.forecaster, first.record, rows, seconds)
        self._under_way = []
        self._hand_over()
        self._settle(batch, outcome)

    def _settle(self, batch: list[_Job], outcome: _Outcome) -> None:
        if self._observe is not None:
            self._observe(len(batch))
        for number, job in enumerate(batch):
            if job.done.done():
                continue
            if isinstance(outcome, Exception):
                job.done.set_exception(outcome)
            else:
                job.done.set_result(outcome[number])


def _next_batch(waiting: list[_Job], max_rows: int) -> tuple[list[_Job], list[_Job]]:
    """The next pass (one model, one kind of record, so many rows), and what is left for later ones."""
    batch: list[_Job] = []
    later: list[_Job] = []
    rows = 0
    for job in waiting:
        alike = not batch or (job.forecaster is batch[0].forecaster and job.record == batch[0].record)
        if alike and (not batch or rows + len(job.histories) <= max_rows):
            batch.append(job)
            rows += len(job.histories)
        else:
            later.append(job)
    return batch, later


def _made(batch: list[_Job]) -> _Outcome:
    try:
        return batch[0].forecaster.forecast([job.histories for job in batch], batch[0].record)
    except Exception as error:
        return error
