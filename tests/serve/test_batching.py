"""What is asked for together is forecast together, and nobody waits for ever."""

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

import numpy as np
import pandas as pd
import pytest

from leapts.core.fusion import Record
from leapts.forecaster.arrays import ArrayForecast, ArrayForecaster, Histories
from leapts.serve.batching import Batcher
from leapts.serve.models import Shelf
from tests.serve.conftest import histories

T = TypeVar("T")


class Counting(ArrayForecaster):
    """Notes the passes it makes, and waits before each until it may go on."""

    def __init__(self, inner: ArrayForecaster, *, fails: bool = False, quick_rows: int = 0) -> None:
        self._inner = inner
        self.quick_rows, self.row_seconds = quick_rows, 0.0
        self.threads: set[str] = set()
        self._fails = fails
        self.passes: list[int] = []
        self.may_go = threading.Event()
        self.may_go.set()

    def forecast(self, requests: Any, record: Any = "nothing") -> list[ArrayForecast]:
        self.passes.append(len(requests))
        self.threads.add(threading.current_thread().name)
        assert self.may_go.wait(10)
        if self._fails:
            raise ValueError("broken")
        return self._inner.forecast(requests, record)


def _with_batcher(work: "Coroutine[Any, Any, T]", batcher: Batcher) -> T:
    async def main() -> T:
        batcher.start()
        try:
            return await work
        finally:
            await asyncio.to_thread(batcher.stop)

    return asyncio.run(main())


@pytest.fixture
def read(shelf: Shelf, frame: pd.DataFrame) -> list[Histories]:
    arrays = shelf.find("apart").arrays
    return [arrays.read([one["id"]], [np.array(one["values"])]) for one in histories(frame)]


def test_requests_that_arrive_together_share_a_pass(shelf: Shelf, read: list[Histories]) -> None:
    counting, observed = Counting(shelf.find("apart").arrays, quick_rows=15), list[int]()
    batcher = Batcher(10, observed.append)

    async def work() -> list[ArrayForecast]:
        return await asyncio.gather(*(batcher.forecast(counting, one, "nothing") for one in read * 5))

    found = _with_batcher(work(), batcher)
    assert counting.passes == [15]
    assert observed == [15]
    for number, forecast in enumerate(found):
        (alone,) = shelf.find("apart").arrays.forecast([read[number % 3]])
        np.testing.assert_allclose(forecast.values, alone.values, rtol=1e-5)


def test_those_that_come_during_a_pass_share_the_next(shelf: Shelf, read: list[Histories]) -> None:
    counting = Counting(shelf.find("apart").arrays)
    counting.may_go.clear()
    batcher = Batcher(10)

    async def work() -> None:
        first = asyncio.create_task(batcher.forecast(counting, read[0], "nothing"))
        while not counting.passes:
            await asyncio.sleep(0.005)
        rest = [asyncio.create_task(batcher.forecast(counting, one, "nothing")) for one in read]
        await asyncio.sleep(0.05)
        counting.may_go.set()
        await asyncio.gather(first, *rest)

    _with_batcher(work(), batcher)
    assert counting.passes == [1, 3]


def test_what_is_quick_is_made_between_other_events_and_the_rest_in_a_thread(
    shelf: Shelf, read: list[Histories]
) -> None:
    arrays = shelf.find("apart").arrays
    assert arrays.quick_rows
    quick, slow = Counting(arrays, quick_rows=2), Counting(arrays)
    slow.may_go.clear()
    batcher = Batcher(10)

    async def work() -> None:
        waiting = asyncio.create_task(batcher.forecast(slow, read[0], "nothing"))
        await asyncio.gather(*(batcher.forecast(quick, one, "nothing") for one in read))
        assert not waiting.done()
        slow.may_go.set()
        await waiting
        await batcher.forecast(quick, read[0], "leaps")

    _with_batcher(work(), batcher)
    assert quick.passes == [2, 1, 1]
    assert quick.threads == {threading.current_thread().name, "leapts-forecasts"}
    assert slow.threads == {"leapts-forecasts"}


@pytest.mark.parametrize("quick_rows", [0, 12])
def test_models_and_traces_are_not_mixed(shelf: Shelf, read: list[Histories], quick_rows: int) -> None:
    one, other = (Counting(shelf.find("apart").arrays, quick_rows=quick_rows) for _ in range(2))
    batcher = Batcher(10)

    async def work() -> list[ArrayForecast]:
        asked: list[tuple[Counting, int, Record]] = [
            (one, 0, "nothing"),
            (other, 0, "nothing"),
            (one, 1, "leaps"),
            (one, 2, "nothing"),
        ]
        return await asyncio.gather(*(batcher.forecast(model, read[row], record) for model, row, record in asked))

    found = _with_batcher(work(), batcher)
    # Which of the two is first, the event loop's pass or the thread's, is nobody's business.
    assert (sorted(one.passes), other.passes) == ([1, 2], [1])
    assert [forecast.trace is not None for forecast in found] == [False, False, True, False]


def test_a_pass_that_takes_too_long_is_given_up(shelf: Shelf, read: list[Histories]) -> None:
    counting = Counting(shelf.find("apart").arrays)
    counting.may_go.clear()
    batcher = Batcher(0.1)

    async def work() -> None:
        waiting = [asyncio.create_task(batcher.forecast(counting, one, "nothing")) for one in read]
        outcomes = await asyncio.gather(*waiting, return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [TimeoutError] * 3
        counting.may_go.set()
        await batcher.forecast(counting, read[0], "nothing")

    _with_batcher(work(), batcher)


def test_an_error_reaches_those_concerned_and_no_one_else(shelf: Shelf, read: list[Histories]) -> None:
    good, bad = Counting(shelf.find("apart").arrays), Counting(shelf.find("apart").arrays, fails=True)
    batcher = Batcher(10)

    async def work() -> list[Any]:
        asked = (batcher.forecast(one, read[0], "nothing") for one in (bad, good, bad))
        return list(await asyncio.gather(*asked, return_exceptions=True))

    found = _with_batcher(work(), batcher)
    assert [isinstance(one, ValueError) for one in found] == [True, False, True]
