"""Requests that wait for the same model share a pass."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, cast

import numpy as np
import pandas as pd
import pytest

from leapts.model.network import Record
from leapts.server import Limits
from leapts.server.admission import Admission
from leapts.server.batching import MAX_ROWS, Batcher, _Job, next_batch
from leapts.server.model import CheckedRequest, ServedModel
from leapts.server.problems import Problem
from leapts.server.registry import ModelRegistry
from leapts.server.schemas import ForecastIn
from tests.server.conftest import histories

T = TypeVar("T")
LONG = 5  # seconds, after which something hangs


def _rows(count: int, record: Record = "nothing") -> CheckedRequest:
    return CheckedRequest(cast("Any", None), cast("Any", range(count)), record)


class FakeModel:
    """Returns its requests as forecasts, and records the size of each batch."""

    row_seconds = 0.0

    def __init__(self, name: str = "m") -> None:
        self.name = name
        self.passes: list[tuple[int, ...]] = []
        self.threads: set[str] = set()
        self.may_go = threading.Event()
        self.may_go.set()
        self.error: Exception | None = None

    def forecast(self, requests: Any) -> list[Any]:
        assert self.may_go.wait(LONG)
        self.passes.append(tuple(len(one.windows) for one in requests))
        self.threads.add(threading.current_thread().name)
        if self.error is not None:
            raise self.error
        return list(requests)


def _run(work: Callable[[Batcher], Awaitable[T]], limits: Limits | None = None) -> tuple[T, list[int], Admission]:
    """Run work with a batcher; gives its result, the sizes of the batches, and the admission control."""
    sizes, admission = list[int](), Admission(limits or Limits(wait=1000.0))
    batcher = Batcher(admission, sizes.append)

    async def main() -> T:
        return await asyncio.wait_for(work(batcher), LONG)

    try:
        return asyncio.run(main()), sizes, admission
    finally:
        batcher.stop()


def _jobs(*asked: tuple[FakeModel, Record, int]) -> list[_Job]:
    return [_Job(cast("Any", model), _rows(rows, record), cast("Any", None)) for model, record, rows in asked]


def test_a_batch_has_a_limit_in_rows_or_one_request() -> None:
    one = FakeModel()
    batch, later = next_batch(_jobs(*((one, "nothing", rows) for rows in (3, 5, 1, 2, 1))), 6)
    assert ([job.rows for job in batch], [job.rows for job in later]) == ([3, 1, 2], [5, 1])
    batch, later = next_batch(_jobs((one, "nothing", 9), (one, "nothing", 1)), 6)
    assert ([job.rows for job in batch], [job.rows for job in later]) == ([9], [1])
    assert next_batch([], 6) == ([], [])


def test_a_batch_has_one_model_and_one_kind_of_record() -> None:
    one, other = FakeModel(), FakeModel()
    jobs = _jobs((one, "leaps", 1), (other, "leaps", 1), (one, "nothing", 1), (one, "leaps", 1))
    assert next_batch(jobs, 6) == ([jobs[0], jobs[3]], [jobs[1], jobs[2]])


def test_requests_that_arrive_together_share_a_pass_in_the_thread() -> None:
    model = FakeModel()

    async def work(batcher: Batcher) -> list[Any]:
        return await asyncio.gather(*(batcher.forecast(cast("Any", model), _rows(rows)) for rows in (3, 1, 2)))

    found, sizes, admission = _run(work)
    assert [len(one.windows) for one in found] == [3, 1, 2]
    assert (model.passes, sizes) == ([(3, 1, 2)], [3])
    assert all(name.startswith("leapts-forecasts") for name in model.threads)
    assert (admission.in_progress["forecast"], admission.queued_seconds) == (0, 0.0)


@pytest.mark.parametrize(("rows", "passes"), [(MAX_ROWS - 1, 2), (MAX_ROWS, 3)])
def test_requests_that_arrive_during_a_pass_share_the_next(rows: int, passes: int) -> None:
    model = FakeModel()
    model.may_go.clear()

    async def work(batcher: Batcher) -> list[Any]:
        first = asyncio.create_task(batcher.forecast(cast("Any", model), _rows(1)))
        await asyncio.sleep(0.01)
        rest = [asyncio.create_task(batcher.forecast(cast("Any", model), _rows(count))) for count in (rows, 1)]
        await asyncio.sleep(0.01)
        model.may_go.set()
        return await asyncio.gather(first, *rest)

    found, sizes, _ = _run(work)
    assert [len(one.windows) for one in found] == [1, rows, 1]
    assert len(model.passes) == len(sizes) == passes


def test_queued_work_is_counted_and_learned() -> None:
    model = FakeModel()
    model.row_seconds = 0.25
    model.may_go.clear()

    async def work(batcher: Batcher) -> None:
        asked = [asyncio.create_task(batcher.forecast(cast("Any", model), _rows(rows))) for rows in (2, 4)]
        await asyncio.sleep(0.01)
        assert batcher._admission.queued_seconds == pytest.approx(1.5)
        with pytest.raises(Problem):
            await batcher.forecast(cast("Any", model), _rows(1))
        model.may_go.set()
        await asyncio.gather(*asked)

    _, _, admission = _run(work, Limits(wait=1.0))
    assert admission.queued_seconds == pytest.approx(0)
    assert model.passes == [(2, 4)]


def test_an_error_reaches_every_request_of_the_batch_and_no_other() -> None:
    model = FakeModel()
    model.error = ValueError("broken")

    async def work(batcher: Batcher) -> Any:
        failed = await asyncio.gather(
            *(batcher.forecast(cast("Any", model), _rows(1)) for _ in range(2)), return_exceptions=True
        )
        assert [repr(one) for one in failed] == ["ValueError('broken')"] * 2
        model.error = None
        return await batcher.forecast(cast("Any", model), _rows(3))

    assert len(_run(work)[0].windows) == 3


def test_nothing_is_computed_for_a_client_that_gave_up() -> None:
    model = FakeModel()
    model.may_go.clear()

    async def work(batcher: Batcher) -> None:
        asked = [asyncio.create_task(batcher.forecast(cast("Any", model), _rows(1)))]
        await asyncio.sleep(0.01)
        asked.append(asyncio.create_task(batcher.forecast(cast("Any", model), _rows(2))))
        await asyncio.sleep(0.01)
        for one in asked:
            one.cancel()
        await asyncio.gather(*asked, return_exceptions=True)
        assert batcher._admission.in_progress["forecast"] == 0
        model.may_go.set()
        await batcher.forecast(cast("Any", model), _rows(4))

    _run(work)
    assert model.passes == [(1,), (4,)]


def test_stopping_waits_for_the_pass_in_progress() -> None:
    model = FakeModel()
    model.may_go.clear()

    async def work(batcher: Batcher) -> None:
        asked = asyncio.create_task(batcher.forecast(cast("Any", model), _rows(1)))
        await asyncio.sleep(0.02)
        stopping = asyncio.create_task(asyncio.to_thread(batcher.stop))
        await asyncio.sleep(0.05)
        assert not stopping.done()
        model.may_go.set()
        await asyncio.gather(asked, stopping)

    _run(work)


def test_a_forecast_does_not_depend_on_its_batch(registry: ModelRegistry, frame: pd.DataFrame) -> None:
    model: ServedModel = registry.find("univariate")
    requests = [model.check(ForecastIn.model_validate({"series": [one]}), Limits()) for one in histories(frame)]
    alone = [model.forecast([one])[0] for one in requests]

    async def work(batcher: Batcher) -> list[Any]:
        return await asyncio.gather(*(batcher.forecast(model, one) for one in requests * 5))

    found, sizes, _ = _run(work)
    assert sizes == [15]
    for number, forecast in enumerate(found):
        np.testing.assert_allclose(forecast.values, alone[number % 3].values, rtol=1e-5)
