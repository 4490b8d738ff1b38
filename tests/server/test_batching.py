"""What is asked for together is forecast together, and nobody waits for ever."""

import asyncio
import math
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar, cast

import numpy as np
import pandas as pd
import pytest

from leapts.forecasting.arrays import ArrayForecast, ArrayForecaster, Histories
from leapts.model.network import Record
from leapts.server.batching import MAX_ROWS, Batcher, _Job, _next_batch
from leapts.server.problems import Problem
from leapts.server.registry import ModelRegistry
from tests.server.conftest import histories

T = TypeVar("T")


class Rows(Histories):
    """So many rows of nothing."""

    def __init__(self, count: int) -> None:
        object.__setattr__(self, "count", count)

    def __len__(self) -> int:
        return int(self.__dict__["count"])


class Plain(ArrayForecaster):
    """Gives back what it is asked for, and notes how many rows came together."""

    def __init__(self, *, quick_rows: int = 0, row_seconds: float = 0.0) -> None:
        self.quick_rows, self.row_seconds = quick_rows, row_seconds
        self.passes: list[tuple[int, ...]] = []
        self.records: list[Record] = []
        self.may_go = threading.Event()
        self.may_go.set()

    def forecast(self, requests: Any, record: Any = "nothing") -> list[Any]:
        assert self.may_go.wait(LONG)
        self.passes.append(tuple(map(len, requests)))
        self.records.append(record)
        return list(requests)


LONG = 5  # seconds, after which something is stuck


def _with_batcher(work: "Coroutine[Any, Any, T]", batcher: Batcher) -> T:
    async def main() -> T:
        batcher.start()
        return await asyncio.wait_for(work, LONG)

    stopping = threading.Thread(target=batcher.stop, daemon=True)
    try:
        return asyncio.run(main())
    finally:
        stopping.start()
        stopping.join(2 * LONG)
        assert not stopping.is_alive()


def _jobs(*asked: tuple[ArrayForecaster, Record, int]) -> list[_Job]:
    return [_Job(model, record, Rows(rows), cast("Any", None), 0.0) for model, record, rows in asked]


def test_a_pass_holds_so_many_rows_or_one_request() -> None:
    one = Plain()
    batch, later = _next_batch(_jobs(*((one, "nothing", rows) for rows in (3, 5, 1, 2, 1))), 6)
    assert [len(job.histories) for job in batch] == [3, 1, 2]
    assert [len(job.histories) for job in later] == [5, 1]
    batch, later = _next_batch(_jobs((one, "nothing", 9), (one, "nothing", 1)), 6)
    assert [len(job.histories) for job in batch] == [9]
    assert [len(job.histories) for job in later] == [1]
    assert _next_batch([], 6) == ([], [])


def test_a_pass_is_of_one_model_and_one_kind() -> None:
    one, other = Plain(), Plain()
    jobs = _jobs((one, "leaps", 1), (other, "leaps", 1), (one, "nothing", 1), (one, "leaps", 1))
    assert _next_batch(jobs, 6) == ([jobs[0], jobs[3]], [jobs[1], jobs[2]])


@pytest.mark.parametrize(("rows", "passes"), [(MAX_ROWS - 1, 2), (MAX_ROWS, 3)])
def test_a_pass_of_the_thread_holds_4096_rows(rows: int, passes: int) -> None:
    assert MAX_ROWS == 4096
    plain, batcher = Plain(), Batcher(10)
    plain.may_go.clear()

    async def work() -> list[Any]:
        first = asyncio.create_task(batcher.forecast(plain, Rows(1), "nothing"))
        await asyncio.sleep(0.01)
        rest = [asyncio.create_task(batcher.forecast(plain, Rows(count), "nothing")) for count in (rows, 1)]
        await asyncio.sleep(0.01)
        plain.may_go.set()
        return await asyncio.gather(first, *rest)

    assert [len(one) for one in _with_batcher(work(), batcher)] == [1, rows, 1]
    assert len(plain.passes) == passes


def test_everyone_gets_their_own_forecast() -> None:
    for quick_rows in (0, 100):
        plain, batcher = Plain(quick_rows=quick_rows), Batcher(10)

        async def work(plain: Plain = plain, batcher: Batcher = batcher) -> list[Any]:
            asked = (batcher.forecast(plain, Rows(rows), "nothing") for rows in (3, 1, 2))
            return await asyncio.gather(*asked)

        assert [len(one) for one in _with_batcher(work(), batcher)] == [3, 1, 2]
        assert plain.passes == [(3, 1, 2)]


def test_quick_is_what_fits_and_leaves_no_leaps_to_tell() -> None:
    plain, batcher, threads = Plain(quick_rows=2), Batcher(10), set[str]()
    inner = plain.forecast

    def noted(requests: Any, record: Any = "nothing") -> list[Any]:
        threads.add(f"{threading.current_thread().name} {len(requests[0])} {record}")
        return inner(requests, record)

    plain.forecast = noted  # type: ignore[method-assign]

    async def work() -> None:
        for rows, record in ((2, "nothing"), (3, "nothing"), (2, "leaps")):
            await batcher.forecast(plain, Rows(rows), cast("Record", record))

    _with_batcher(work(), batcher)
    here = threading.current_thread().name
    assert threads == {f"{here} 2 nothing", "leapts-forecasts 3 nothing", "leapts-forecasts 2 leaps"}


def test_quick_ones_that_do_not_fit_one_pass_come_in_the_next() -> None:
    plain, observed = Plain(quick_rows=4), list[int]()
    batcher = Batcher(10, observed.append)

    async def work() -> list[Any]:
        return await asyncio.gather(*(batcher.forecast(plain, Rows(2), "nothing") for _ in range(5)))

    assert len(_with_batcher(work(), batcher)) == 5
    assert plain.passes == [(2, 2), (2, 2), (2,)]
    assert observed == [2, 2, 1]


def test_quick_ones_wait_for_those_that_come_with_the_next_look() -> None:
    plain, batcher = Plain(quick_rows=4), Batcher(10)

    async def work() -> None:
        for _ in range(2):
            first = asyncio.create_task(batcher.forecast(plain, Rows(1), "nothing"))
            await asyncio.sleep(0)
            await asyncio.gather(first, batcher.forecast(plain, Rows(2), "nothing"))

    _with_batcher(work(), batcher)
    assert plain.passes == [(1, 2), (1, 2)]


def test_the_work_ahead_is_counted_while_it_waits_and_no_longer() -> None:
    plain, batcher = Plain(row_seconds=0.25), Batcher(10, most_wait=1.0)
    plain.may_go.clear()

    async def work() -> None:
        first = asyncio.create_task(batcher.forecast(plain, Rows(2), "leaps"))
        second = asyncio.create_task(batcher.forecast(plain, Rows(4), "leaps"))
        await asyncio.sleep(0.01)
        assert batcher.queue.ahead == pytest.approx(1.5)
        with pytest.raises(Problem):
            await batcher.forecast(plain, Rows(1), "leaps")
        plain.may_go.set()
        await asyncio.gather(first, second)
        assert batcher.queue.ahead == pytest.approx(0)

    _with_batcher(work(), batcher)
    assert plain.passes == [(2, 4)]
    assert Batcher(10).queue._most == math.inf


def test_what_a_pass_took_is_learnt_by_its_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    plain, batcher = Plain(), Batcher(10)
    clock = iter((5.0, 6.5))
    monkeypatch.setattr("leapts.server.batching.time.thread_time", lambda: next(clock))

    async def work() -> None:
        await asyncio.gather(*(batcher.forecast(plain, Rows(rows), "leaps") for rows in (1, 2)))

    _with_batcher(work(), batcher)
    assert batcher.queue.estimate(plain, "leaps", 2) == pytest.approx(1.0)
    assert batcher.queue.estimate(plain, "nothing", 2) == 0.0


class Clock:
    """An event loop that only tells the time."""

    def __init__(self, now: float) -> None:
        self.now, self.delays = now, list[float]()

    def time(self) -> float:
        return self.now

    def call_later(self, delay: float, _: object) -> None:
        self.delays.append(delay)


@pytest.mark.parametrize(("seconds", "delay"), [(10, 0.25), (0.1, 0.1)])
def test_whose_time_is_over_is_told_within_a_quarter_of_a_second(seconds: float, delay: float) -> None:
    async def work() -> list[bool]:
        loop = asyncio.get_running_loop()
        jobs = [_Job(Plain(), "leaps", Rows(1), loop.create_future(), deadline) for deadline in (1.0, 2.0, 3.0, 1.0)]
        jobs[3].done.set_result(cast("Any", "made"))
        batcher, clock = Batcher(seconds), Clock(2.0)
        batcher._loop, batcher._under_way, batcher._pending = cast("Any", clock), jobs[:2], jobs[2:]
        batcher._look_at_the_clock()
        assert clock.delays == [delay]
        assert isinstance(jobs[0].done.exception(), TimeoutError)
        return [job.done.done() for job in jobs]

    assert asyncio.run(work()) == [True, False, False, True]


def test_who_was_given_up_keeps_nobody_from_theirs() -> None:
    async def work() -> None:
        loop = asyncio.get_running_loop()
        jobs = [_Job(Plain(), "leaps", Rows(1), loop.create_future(), 1.0) for _ in range(2)]
        jobs[0].done.cancel()
        Batcher(10)._settle(jobs, cast("Any", ["first", "second"]))
        assert jobs[0].done.cancelled()
        assert cast("Any", jobs[1].done.result()) == "second"

    asyncio.run(work())


def test_everyone_has_the_time_that_was_given() -> None:
    plain, batcher = Plain(), Batcher(1000)

    async def work() -> float:
        asked = asyncio.create_task(batcher.forecast(plain, Rows(1), "leaps"))
        await asyncio.sleep(0)
        (job,) = batcher._pending
        left = job.deadline - asyncio.get_running_loop().time()
        await asked
        return left

    assert _with_batcher(work(), batcher) == pytest.approx(1000, abs=LONG)


def test_nothing_is_made_for_who_has_been_given_up() -> None:
    plain, batcher = Plain(), Batcher(0.1)
    plain.may_go.clear()

    async def work() -> None:
        asked = [asyncio.create_task(batcher.forecast(plain, Rows(rows), "leaps")) for rows in (1, 2)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        asked.append(asyncio.create_task(batcher.forecast(plain, Rows(3), "leaps")))
        outcomes = await asyncio.gather(*asked, return_exceptions=True)
        assert [type(one) for one in outcomes] == [TimeoutError] * 3
        plain.may_go.set()
        assert len(await batcher.forecast(plain, Rows(4), "leaps")) == 4  # type: ignore[arg-type]

    _with_batcher(work(), batcher)
    assert plain.passes == [(1, 2), (4,)]


def test_stopping_waits_for_the_pass_under_way() -> None:
    plain, batcher = Plain(), Batcher(10)
    plain.may_go.clear()

    async def main() -> None:
        batcher.start()
        asked = asyncio.create_task(batcher.forecast(plain, Rows(1), "leaps"))
        await asyncio.sleep(0.02)
        stopping = threading.Thread(target=batcher.stop, daemon=True)
        stopping.start()
        await asyncio.sleep(0.05)
        assert stopping.is_alive()
        plain.may_go.set()
        await asyncio.wait_for(asked, LONG)
        await asyncio.to_thread(stopping.join, LONG)
        assert not stopping.is_alive()

    asyncio.run(main())


def test_stopped_it_waits_for_nothing_more() -> None:
    batcher = Batcher(10)

    async def work() -> None:
        pass

    _with_batcher(work(), batcher)
    assert batcher._clock.cancelled()
    assert not batcher._thread.is_alive()
    assert batcher._thread.daemon


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
        assert self.may_go.wait(LONG)
        if self._fails:
            raise ValueError("broken")
        return self._inner.forecast(requests, record)


@pytest.fixture
def read(registry: ModelRegistry, frame: pd.DataFrame) -> list[Histories]:
    arrays = registry.find("apart").arrays
    return [arrays.read([one["id"]], [np.array(one["values"])]) for one in histories(frame)]


def test_requests_that_arrive_together_share_a_pass(registry: ModelRegistry, read: list[Histories]) -> None:
    counting, observed = Counting(registry.find("apart").arrays, quick_rows=15), list[int]()
    batcher = Batcher(10, observed.append)

    async def work() -> list[ArrayForecast]:
        return await asyncio.gather(*(batcher.forecast(counting, one, "nothing") for one in read * 5))

    found = _with_batcher(work(), batcher)
    assert counting.passes == [15]
    assert observed == [15]
    for number, forecast in enumerate(found):
        (alone,) = registry.find("apart").arrays.forecast([read[number % 3]])
        np.testing.assert_allclose(forecast.values, alone.values, rtol=1e-5)


def test_those_that_come_during_a_pass_share_the_next(registry: ModelRegistry, read: list[Histories]) -> None:
    counting = Counting(registry.find("apart").arrays)
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
    registry: ModelRegistry, read: list[Histories]
) -> None:
    arrays = registry.find("apart").arrays
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
def test_models_and_traces_are_not_mixed(registry: ModelRegistry, read: list[Histories], quick_rows: int) -> None:
    one, other = (Counting(registry.find("apart").arrays, quick_rows=quick_rows) for _ in range(2))
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


def test_a_pass_that_takes_too_long_is_given_up(registry: ModelRegistry, read: list[Histories]) -> None:
    counting = Counting(registry.find("apart").arrays)
    counting.may_go.clear()
    batcher = Batcher(0.1)

    async def work() -> None:
        waiting = [asyncio.create_task(batcher.forecast(counting, one, "nothing")) for one in read]
        outcomes = await asyncio.gather(*waiting, return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [TimeoutError] * 3
        counting.may_go.set()
        await batcher.forecast(counting, read[0], "nothing")

    _with_batcher(work(), batcher)


def test_an_error_reaches_those_concerned_and_no_one_else(registry: ModelRegistry, read: list[Histories]) -> None:
    good, bad = Counting(registry.find("apart").arrays), Counting(registry.find("apart").arrays, fails=True)
    batcher = Batcher(10)

    async def work() -> list[Any]:
        asked = (batcher.forecast(one, read[0], "nothing") for one in (bad, good, bad))
        return list(await asyncio.gather(*asked, return_exceptions=True))

    found = _with_batcher(work(), batcher)
    assert [isinstance(one, ValueError) for one in found] == [True, False, True]
