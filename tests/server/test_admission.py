"""Requests beyond the limits are refused at once, and the server recovers."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pandas as pd
import pytest

from leapts.server import Limits
from leapts.server.admission import Admission
from leapts.server.model import ServedModel
from leapts.server.problems import Problem
from leapts.server.registry import ModelRegistry
from tests.server.conftest import client_of, histories


def _admission(wait: float = 0.02, **limits: int) -> Admission:
    return Admission(Limits(wait=wait, **limits))


@pytest.mark.parametrize(("kind", "seconds"), [("forecast", "1"), ("table", "5")])
def test_requests_in_progress_have_a_limit(kind: str, seconds: str) -> None:
    admission = _admission(concurrency=2, tables=2)
    with admission.slot(kind):
        with admission.slot(kind):
            with pytest.raises(Problem, match="2 requests") as refused, admission.slot(kind):
                pass
            assert refused.value.headers == {"Retry-After": seconds}
            assert admission.in_progress[kind] == 2
        admission.check(kind)
    assert admission.in_progress == {"forecast": 0, "table": 0}


def test_a_slot_is_free_again_after_an_error() -> None:
    admission = _admission()
    with pytest.raises(ZeroDivisionError), admission.slot("forecast", 1.0):
        raise ZeroDivisionError
    assert (admission.in_progress["forecast"], admission.queued_seconds) == (0, 0.0)


def test_queued_work_above_the_limit_is_refused_with_its_seconds() -> None:
    admission = _admission(wait=1.0)
    admission.queued_seconds = 2.5
    with pytest.raises(Problem, match=r"2\.50 s") as refused:
        admission.check("forecast", 1.0)
    assert refused.value.headers == {"Retry-After": "3"}
    assert "--max-wait" in refused.value.hint
    admission.check("table")


@pytest.mark.parametrize(("queued", "is_refused"), [(1.01, False), (1.0101, True)])
def test_rounding_does_not_refuse(queued: float, is_refused: bool) -> None:
    admission = _admission(wait=1.0)
    admission.queued_seconds = queued
    if is_refused:
        with pytest.raises(Problem):
            admission.check("forecast")
    else:
        admission.check("forecast")


def test_a_large_request_may_wait_for_one_as_large() -> None:
    admission = _admission()
    with admission.slot("forecast", 3.0), admission.slot("forecast", 3.0):
        with pytest.raises(Problem) as refused:
            admission.check("forecast", 3.0)
        assert refused.value.headers == {"Retry-After": "6"}


def test_the_largest_recent_request_is_forgotten_by_half_a_percent_at_a_time() -> None:
    admission = _admission()
    for seconds in (1.0, 0.5, 0.5):
        with admission.slot("forecast", seconds):
            pass
    largest = 0.995**2
    admission.queued_seconds = 1.009 * largest
    admission.check("forecast")
    admission.queued_seconds = 1.011 * largest
    with pytest.raises(Problem):
        admission.check("forecast")


def test_the_cost_of_a_row_is_learned_from_long_batches_and_lowered_by_short_ones() -> None:
    admission = _admission()
    assert admission.estimate("a", 4, 0.5) == 2.0
    admission.learn("a", 1, 0.004)
    assert admission.estimate("a", 4, 0.5) == 2.0
    admission.learn("a", 10, 1.0)
    assert admission.estimate("a", 10, 0.5) == pytest.approx(1.0)
    admission.learn("a", 10, 2.0)
    assert admission.estimate("a", 10, 0.5) == pytest.approx(1.3)
    assert admission.estimate("b", 4, 0.5) == 2.0
    admission.learn("a", 1, 0.004)
    assert admission.estimate("a", 10, 0.5) == pytest.approx(0.04)
    admission.learn("a", 1, 0.0049)
    assert admission.estimate("a", 10, 0.5) == pytest.approx(0.04)


def test_an_overloaded_server_refuses_the_rest_at_once_and_recovers(
    registry: ModelRegistry, frame: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One forecast is in progress, one waits, and the others are refused meanwhile."""
    asked = {"model": "univariate", "series": histories(frame)}
    may_go, forecast = threading.Event(), ServedModel.forecast

    def slow(self: ServedModel, requests: object) -> object:
        assert may_go.wait(20)
        return forecast(self, requests)  # type: ignore[arg-type]

    monkeypatch.setattr(ServedModel, "forecast", slow)
    for served in registry:
        monkeypatch.setitem(vars(served), "row_seconds", 1.0)
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
