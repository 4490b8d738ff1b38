"""Nobody waits for more work than the largest request makes; who would is told so at once."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import cast

import httpx
import pandas as pd
import pytest

from leapts.forecasting.arrays import ArrayForecaster
from leapts.server.admission import Queue
from leapts.server.problems import Problem
from leapts.server.registry import ModelRegistry
from tests.server.conftest import client_of, histories

MOST = 0.02


class Forecaster:
    """What a queue knows of one."""

    row_seconds = 0.5


def _forecaster() -> ArrayForecaster:
    return cast("ArrayForecaster", Forecaster())


def test_what_is_waiting_is_what_came_and_did_not_leave() -> None:
    queue = Queue(10.0)
    assert queue.ahead == 0
    for seconds in (1.0, 2.0):
        queue.join(seconds)
    queue.leave(1.0)
    assert queue.ahead == 2.0


def test_who_is_refused_is_not_waiting_and_is_told_how_long_the_others_are() -> None:
    queue = Queue(1.0)
    queue.ahead = 2.5
    with pytest.raises(Problem, match=r"requests that take 2\.50 s are waiting already") as refused:
        queue.join(1.0)
    assert refused.value.headers["Retry-After"] == "3"
    assert queue.ahead == 2.5


@pytest.mark.parametrize(("ahead", "is_refused"), [(1.01, False), (1.0101, True)])
def test_the_limit_is_kept_but_for_rounding(ahead: float, is_refused: bool) -> None:
    queue = Queue(1.0)
    queue.ahead = ahead
    if is_refused:
        with pytest.raises(Problem):
            queue.require_room()
    else:
        queue.require_room()


def test_the_largest_request_of_late_fades_by_a_two_hundredth_each() -> None:
    queue = Queue(MOST)
    queue.join(1.0)
    queue.leave(1.0)
    for _ in range(2):
        queue.join(0.5)
        queue.leave(0.5)
    largest = 0.995**2
    queue.ahead = 1.009 * largest
    queue.require_room()
    queue.ahead = 1.011 * largest
    with pytest.raises(Problem):
        queue.require_room()


def test_a_pace_is_learnt_by_three_tenths_at_a_time() -> None:
    queue, forecaster = Queue(MOST), _forecaster()
    assert queue.estimate(forecaster, "leaps", 4) == 2.0
    queue.learn(forecaster, "leaps", 10, 1.0)
    assert queue.estimate(forecaster, "leaps", 10) == pytest.approx(1.0)
    queue.learn(forecaster, "leaps", 10, 2.0)
    assert queue.estimate(forecaster, "leaps", 10) == pytest.approx(1.3)
    queue.learn(forecaster, "nothing", 10, 3.0)
    assert queue.estimate(forecaster, "nothing", 10) == pytest.approx(3.0)
    assert queue.estimate(_forecaster(), "leaps", 4) == 2.0


def test_passes_of_less_than_five_milliseconds_teach_nothing() -> None:
    queue, forecaster = Queue(MOST), _forecaster()
    queue.learn(forecaster, "leaps", 1, 0.0049)
    assert queue.estimate(forecaster, "leaps", 1) == 0.5
    queue.learn(forecaster, "leaps", 1, 0.005)
    assert queue.estimate(forecaster, "leaps", 1) == pytest.approx(0.005)


@pytest.fixture
def arrays(registry: ModelRegistry) -> ArrayForecaster:
    return registry.find("apart").arrays


def test_small_requests_may_wait_for_so_much_work() -> None:
    queue = Queue(MOST)
    for _ in range(21):
        queue.join(0.001)
    with pytest.raises(Problem, match="waiting") as refused:
        queue.join(0.001)
    assert refused.value.headers["Retry-After"] == "1"
    assert "--max-wait" in refused.value.cure
    with pytest.raises(Problem):
        queue.require_room()
    queue.leave(0.001)
    queue.leave(0.001)
    queue.join(0.001)


def test_a_large_request_may_wait_for_one_like_it() -> None:
    queue = Queue(MOST)
    queue.join(3.0)
    queue.join(3.0)
    with pytest.raises(Problem) as refused:
        queue.join(3.0)
    assert refused.value.headers["Retry-After"] == "6"


def test_small_requests_may_wait_for_a_large_one_until_large_ones_are_long_ago() -> None:
    queue = Queue(MOST)
    queue.join(1.0)
    queue.join(0.001)
    queue.leave(0.001)
    queue.leave(1.0)
    for _ in range(2000):
        queue.join(0.001)
        queue.leave(0.001)
    for _ in range(21):
        queue.join(0.001)
    with pytest.raises(Problem):
        queue.join(0.001)


def test_what_a_row_takes_is_measured_and_then_learnt(arrays: ArrayForecaster) -> None:
    queue = Queue(MOST)
    assert queue.estimate(arrays, "nothing", 10) == pytest.approx(10 * arrays.row_seconds)
    assert arrays.row_seconds > 0
    queue.learn(arrays, "leaps", 100, 1.0)
    assert queue.estimate(arrays, "leaps", 10) == pytest.approx(0.1)
    queue.learn(arrays, "leaps", 100, 2.0)
    assert 0.1 < queue.estimate(arrays, "leaps", 10) < 0.2
    before = queue.estimate(arrays, "leaps", 10)
    queue.learn(arrays, "leaps", 1, 0.001)
    assert queue.estimate(arrays, "leaps", 10) == before
    assert queue.estimate(arrays, "nothing", 10) == pytest.approx(10 * arrays.row_seconds)


def test_overloaded_the_server_refuses_the_rest_at_once_and_recovers(
    registry: ModelRegistry, frame: pd.DataFrame, arrays: ArrayForecaster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One is made, one waits, and the others are told to come again while both are under way."""
    asked = {"model": "apart", "series": histories(frame)}
    may_go, forecast = threading.Event(), ArrayForecaster.forecast

    def waiting(self: ArrayForecaster, *arguments: object) -> object:
        assert may_go.wait(20)
        return forecast(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(ArrayForecaster, "forecast", waiting)
    monkeypatch.setattr(arrays, "quick_rows", 0)
    monkeypatch.setattr(arrays, "row_seconds", 1.0)
    with client_of(registry) as client, ThreadPoolExecutor(6) as pool:
        calls = [pool.submit(client.post, "/v1/forecast", json=asked) for _ in range(6)]
        refused: list[httpx.Response] = []
        deadline = time.monotonic() + 20
        while len(refused) < 4 and time.monotonic() < deadline:
            refused = [call.result() for call in calls if call.done()]
            time.sleep(0.01)
        assert [answer.status_code for answer in refused] == [503] * 4
        assert {answer.json()["type"] for answer in refused} == {"/docs#busy"}
        may_go.set()
        assert sorted(call.result(20).status_code for call in calls) == [200] * 2 + [503] * 4
        assert client.post("/v1/forecast", json=asked).status_code == 200
