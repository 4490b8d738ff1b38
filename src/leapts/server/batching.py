"""Batches of forecasts: requests that wait for the same model share one pass through it.

One thread computes; requests that arrive during a pass share the next one. No request waits for others to arrive.
"""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from leapts.forecasting.forecast import Forecast
from leapts.server.admission import Admission
from leapts.server.model import CheckedRequest, ServedModel

MAX_ROWS = 4096  # windows of single series in one pass


@dataclass(eq=False, slots=True)
class _Job:
    model: ServedModel
    request: CheckedRequest
    result: "asyncio.Future[Forecast]"

    @property
    def rows(self) -> int:
        return len(self.request.windows)


class Batcher:
    """Computes forecasts in a thread, several requests at a time."""

    def __init__(self, admission: Admission, on_batch: Callable[[int], None]) -> None:
        """Prepare the thread.

        Args:
            admission: Limits the queued work, and learns what a batch costs.
            on_batch: Called with the number of requests of each batch.
        """
        self._admission = admission
        self._on_batch = on_batch
        self._waiting: list[_Job] = []
        self._is_running = False
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="leapts-forecasts")

    def stop(self) -> None:
        """Wait for the pass in progress, and end the thread."""
        self._thread.shutdown()

    async def forecast(self, model: ServedModel, request: CheckedRequest) -> Forecast:
        """Forecast a request, together with others that wait.

        Raises:
            Problem: If too much work is queued.
        """
        loop = asyncio.get_running_loop()
        job = _Job(model, request, loop.create_future())
        work = self._admission.estimate((model.name, request.record), job.rows, model.row_seconds)
        with self._admission.slot("forecast", work):
            self._waiting.append(job)
            if not self._is_running:
                self._is_running = True
                loop.call_soon(self._start_batch)  # after the other requests that arrived at the same time
            return await job.result

    def _start_batch(self) -> None:
        """Compute the next batch, if there is one; requests whose clients gave up are dropped."""
        waiting = [job for job in self._waiting if not job.result.done()]
        batch, self._waiting = next_batch(waiting, MAX_ROWS)
        self._is_running = bool(batch)
        if batch:
            computed = asyncio.get_running_loop().run_in_executor(self._thread, _compute, batch)
            computed.add_done_callback(lambda done: self._finish(batch, done))

    def _finish(self, batch: list[_Job], done: "asyncio.Future[tuple[list[Forecast], float]]") -> None:
        self._start_batch()
        self._on_batch(len(batch))
        if error := done.exception():
            for job in batch:
                if not job.result.done():
                    job.result.set_exception(error)
            return
        forecasts, seconds = done.result()
        first = batch[0]
        self._admission.learn((first.model.name, first.request.record), sum(job.rows for job in batch), seconds)
        for job, forecast in zip(batch, forecasts, strict=True):
            if not job.result.done():
                job.result.set_result(forecast)


def next_batch(waiting: list[_Job], max_rows: int) -> tuple[list[_Job], list[_Job]]:
    """Split the waiting jobs into the next batch (one model, one kind of record) and the rest."""
    batch: list[_Job] = []
    later: list[_Job] = []
    rows = 0
    for job in waiting:
        is_alike = not batch or (job.model is batch[0].model and job.request.record == batch[0].request.record)
        if is_alike and (not batch or rows + job.rows <= max_rows):
            batch.append(job)
            rows += job.rows
        else:
            later.append(job)
    return batch, later


def _compute(batch: list[_Job]) -> tuple[list[Forecast], float]:
    """Forecast a batch; return the forecasts and the processor time."""
    started = time.thread_time()
    forecasts = batch[0].model.forecast([job.request for job in batch])
    return forecasts, time.thread_time() - started
