"""Requests beyond a limit are refused quickly, and the server keeps working."""

import concurrent.futures
import inspect
import socket
import threading
import time
from collections.abc import Iterator

import httpx
import pandas as pd
import pytest

from leapts import ConfigError
from leapts.cli.serve import serve
from leapts.server import Limits
from leapts.server.model import ServedModel
from leapts.server.registry import ModelRegistry
from tests.server.conftest import client_of, histories, served

URL = "/v1/forecast"
HEAD = "POST /v1/forecast HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"


def _connected(address: str) -> socket.socket:
    host, _, port = address.removeprefix("http://").partition(":")
    return socket.create_connection((host, int(port)), timeout=10)


def _answer(connection: socket.socket) -> bytes:
    """Read until the server closes the connection."""
    content = b""
    try:
        while part := connection.recv(65536):
            content += part
    except ConnectionResetError:
        pass
    return content


def test_default_limits_are_those_of_the_command_line() -> None:
    told = {name: one.default for name, one in inspect.signature(serve).parameters.items()}
    assert Limits() == Limits(
        body=told["max_body"],
        bodies=4 * told["max_body"],
        series=told["max_series"],
        length=told["max_length"],
        concurrency=told["max_concurrent"],
        wait=told["max_wait"],
        tables=4,
        seconds=told["timeout"],
        header_seconds=10.0,
    )


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        ({"body": 0}, "body=0: "),
        ({"seconds": -1.0}, "seconds=-1.0: "),
        ({"seconds": float("nan")}, "seconds=nan: "),
        ({"body": 10, "bodies": 9}, "bodies=9: .* body=10"),
    ],
)
def test_impossible_limits_are_refused(limit: dict[str, float], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        Limits(**limit)  # type: ignore[arg-type]


def test_limits_may_be_as_small_as_one_request_of_one_byte() -> None:
    assert Limits(body=1, bodies=1, seconds=0.5).bodies == 1


@pytest.fixture
def halted(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """An event that forecasts wait for."""
    may_go, forecast = threading.Event(), ServedModel.forecast

    def waiting(self: ServedModel, requests: object) -> object:
        assert may_go.wait(20)
        return forecast(self, requests)  # type: ignore[arg-type]

    monkeypatch.setattr(ServedModel, "forecast", waiting)
    yield may_go
    may_go.set()


def test_a_request_above_the_concurrency_limit_gets_503_with_retry_after(
    registry: ModelRegistry, frame: pd.DataFrame, halted: threading.Event
) -> None:
    asked = {"model": "univariate", "series": histories(frame)}
    with (
        client_of(registry, limits={"concurrency": 3}) as client,
        concurrent.futures.ThreadPoolExecutor(8) as pool,
    ):
        waiting = [pool.submit(client.post, URL, json=asked) for _ in range(8)]
        refused: list[concurrent.futures.Future[httpx.Response]] = []
        deadline = time.monotonic() + 10
        while len(refused) < 5 and time.monotonic() < deadline:
            refused = [one for one in waiting if one.done()]
            time.sleep(0.01)
        assert len(refused) == 5
        assert {one.result().status_code for one in refused} == {503}
        assert {one.result().headers["retry-after"] for one in refused} == {"1"}
        assert client.get("/healthz").status_code == 200
        halted.set()
        served_well = [one.result(20) for one in waiting if one not in refused]
        assert [answer.status_code for answer in served_well] == [200] * 3
        assert client.post(URL, json=asked).status_code == 200


def test_a_response_has_a_time_limit(registry: ModelRegistry, frame: pd.DataFrame, halted: threading.Event) -> None:
    with client_of(registry, limits={"seconds": 0.2}) as client:
        answer = client.post(URL, json={"model": "univariate", "series": histories(frame)})
        assert answer.status_code == 503
        assert answer.json()["type"] == "/docs#too-slow-to-answer"
        assert "retry-after" in answer.headers
        halted.set()


def test_a_request_body_has_a_time_limit(registry: ModelRegistry) -> None:
    with served(registry, limits={"seconds": 0.2}) as address, _connected(address) as connection:
        connection.sendall(f"{HEAD}Content-Length: 100\r\n\r\n{{".encode())
        answer = _answer(connection)
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"application/problem+json" in answer


def test_request_headers_have_a_time_limit(registry: ModelRegistry) -> None:
    with served(registry, limits={"header_seconds": 0.2}) as address:
        for start in (b"", b"POST /v1/forecast HT", b"GET /healthz HTTP/1.1\r\nX: y\r\n"):
            with _connected(address) as connection:
                connection.sendall(start)
                assert _answer(connection) == b""
        # The second request of a connection, too.
        with _connected(address) as connection:
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nGET /healthz HT")
            assert _answer(connection).count(b"HTTP/1.1 200") == 1


@pytest.mark.parametrize("times", [2, 6])
def test_a_client_that_sends_too_much_can_read_the_refusal(registry: ModelRegistry, times: int) -> None:
    body = b" " * (times * 1_000_000)
    with served(registry, limits={"body": 1_000_000}) as address, httpx.Client(base_url=address) as client:
        for _ in range(3):
            answer = client.post("/v1/forecast", content=body, headers={"Content-Type": "application/json"})
            assert answer.status_code == 413


def test_an_endless_body_is_cut_off(registry: ModelRegistry) -> None:
    with (
        served(registry, limits={"body": 50_000, "bodies": 50_000}) as address,
        _connected(address) as connection,
        httpx.Client(base_url=address) as client,
    ):
        connection.sendall(f"{HEAD}Transfer-Encoding: chunked\r\n\r\n".encode())
        sent = 0
        try:
            while sent < 50_000_000:
                connection.sendall(b"2710\r\n" + b" " * 10_000 + b"\r\n")
                sent += 10_000
        except (BrokenPipeError, ConnectionResetError, TimeoutError):
            pass
        assert sent < 50_000_000
        assert client.get("/healthz").status_code == 200
        metrics = client.get("/metrics").text
        assert 'leapts_requests_total{path="/v1/forecast",status="413"} 1.0' in metrics
        assert "leapts_body_bytes_held 0.0" in metrics


def test_many_slow_clients_cannot_fill_the_memory(registry: ModelRegistry) -> None:
    limits = {"body": 50_000, "bodies": 100_000}
    with served(registry, limits=limits) as address, httpx.Client(base_url=address) as client:
        connections = [_connected(address) for _ in range(5)]
        for connection in connections:
            connection.sendall(f"{HEAD}Content-Length: 49000\r\n\r\n".encode() + b" " * 40_000)
        assert _answer(connections[-1]).startswith(b"HTTP/1.1 503 ")
        assert client.get("/healthz").status_code == 200
        for connection in connections:
            connection.close()
        deadline = time.monotonic() + 10
        while "leapts_body_bytes_held 0.0" not in client.get("/metrics").text:
            assert time.monotonic() < deadline
