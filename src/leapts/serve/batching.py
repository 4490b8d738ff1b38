"""Forecasts that are asked for together are made together, in one pass through the model.

The event loop collects what arrives and hands it to one thread as soon as that is free: nobody waits for company, and
whoever comes while a pass is under way shares the next one. The thread computes and nothing else.
"""

import asyncio
import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass

from leapts.core.fusion import Record
from leapts.forecaster.arrays import ArrayForecast, ArrayForecaster, Histories

MOST_ROWS = 4096  # windows of single series in one pass


@dataclass(frozen=True, eq=False)
class _Job:
    forecaster: ArrayForecaster
    record: Record
    histories: Histories
    done: "asyncio.Future[ArrayForecast]"
    deadline: float


_Outcome = list[ArrayForecast] | Exception


class Batcher:
    """One thread that forecasts."""

    def __init__(self, seconds: float, observe: Callable[[int], None] | None = None) -> None:
        """Prepares the thread; `start` sets it going.

        Args:
            seconds: How long a forecast may take, the waiting included.
            observe: Told, on the event loop, how many requests shared a pass.
        """
        self._seconds = seconds
        self._observe = observe
        self._under_way: list[_Job] = []
        self._pending: list[_Job] = []
        self._is_idle = True
        self._is_flushing = False
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
            TimeoutError: When it takes too long.
        """
        assert self._loop is not None, "start first"
        job = _Job(forecaster, record, histories, self._loop.create_future(), self._loop.time() + self._seconds)
        self._pending.append(job)
        if self._is_idle and not self._is_flushing:
            # Not at once: what arrived in the same moment is still being read, and shall come along.
            self._is_flushing = True
            self._loop.call_soon(self._flush)
        return await job.done

    def _flush(self) -> None:
        self._is_flushing = False
        if self._is_idle:
            self._hand_over()

    def _hand_over(self) -> None:
        """Give the thread the next pass: one model, one kind of record, so many rows."""
        waiting = [job for job in self._pending if not job.done.done()]
        batch: list[_Job] = []
        later: list[_Job] = []
        rows = 0
        for job in waiting:
            alike = not batch or (job.forecaster is batch[0].forecaster and job.record == batch[0].record)
            if alike and (not batch or rows + len(job.histories) <= MOST_ROWS):
                batch.append(job)
                rows += len(job.histories)
            else:
                later.append(job)
        self._pending = later
        self._is_idle = not batch
        self._under_way = batch
        if batch:
            self._batches.put(batch)

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
            outcome: _Outcome
            try:
                outcome = batch[0].forecaster.forecast([job.histories for job in batch], batch[0].record)
            except Exception as error:
                outcome = error
            try:
                self._loop.call_soon_threadsafe(self._settle, batch, outcome)
            except RuntimeError:  # the loop is closed: nobody waits any more
                return

    def _settle(self, batch: list[_Job], outcome: _Outcome) -> None:
        self._hand_over()
        if self._observe is not None:
            self._observe(len(batch))
        for number, job in enumerate(batch):
            if job.done.done():
                continue
            if isinstance(outcome, Exception):
                job.done.set_exception(outcome)
            else:
                job.done.set_result(outcome[number])
