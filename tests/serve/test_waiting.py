"""Nobody waits for more work than the largest request makes; who would is told so at once."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pandas as pd
import pytest

from leapts.forecaster.arrays import ArrayForecaster
from leapts.serve.models import Shelf
from leapts.serve.problems import Problem
from leapts.serve.waiting import Queue
from tests.serve.conftest import client_of, histories

MOST = 0.02


@pytest.fixture
def arrays(shelf: Shelf) -> ArrayForecaster:
    return shelf.find("apart").arrays


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
    shelf: Shelf, frame: pd.DataFrame, arrays: ArrayForecaster, monkeypatch: pytest.MonkeyPatch
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
    with client_of(shelf) as client, ThreadPoolExecutor(6) as pool:
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
