"""Limits on connections: time for headers and for reading responses, bytes of headers and trailers."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest
import uvicorn
from starlette.responses import PlainTextResponse
from uvicorn.server import ServerState

from leapts.server.connections import MAX_HEADER_BYTES, LimitedProtocol
from leapts.server.registry import ModelRegistry
from tests.server.conftest import histories, served
from tests.server.test_limits import HEAD, _answer, _connected

LAST = "Connection: close\r\n\r\n"
GET = b"GET /here HTTP/1.1\r\nHost: x\r\n\r\n"
CHUNKED = b"POST /here HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"


class FakeTransport:
    """A transport that records what is written."""

    def __init__(self) -> None:
        self.written = b""
        self.is_closed = False
        self.is_aborted = False
        self.unread = 0  # bytes

    def write(self, data: bytes) -> None:
        self.written += data

    def close(self) -> None:
        self.is_closed = True

    def abort(self) -> None:
        self.is_aborted = True

    def get_write_buffer_size(self) -> int:
        return self.unread

    def is_closing(self) -> bool:
        return self.is_closed

    def pause_reading(self) -> None:
        """Do nothing: the test decides what arrives."""

    def resume_reading(self) -> None:
        """Do nothing: the test decides what arrives."""

    def get_extra_info(self, _: str) -> None:
        """Have no address."""


class Connection(LimitedProtocol):
    """A connection whose requests are recorded, and answered with their paths once their body is there."""

    header_seconds = 0.05
    response_seconds = 0.05

    def __init__(self, *, is_early: bool = False) -> None:
        self.requests: list[Any] = []
        self.is_early = is_early
        config = uvicorn.Config(self._answer, interface="asgi3", ws="none", lifespan="off", log_config=None)
        config.load()
        super().__init__(config, ServerState(), {}, asyncio.get_running_loop())
        self.fake = FakeTransport()
        self.connection_made(self.fake)

    async def _answer(self, scope: Any, receive: Any, send: Any) -> None:
        self.requests.append(scope)
        while not self.is_early and (await receive()).get("more_body"):
            pass
        await PlainTextResponse(scope["path"])(scope, receive, send)

    @property
    def statuses(self) -> list[bytes]:
        """Statuses of all responses, in order."""
        return [part[:3] for part in self.fake.written.split(b"HTTP/1.1 ")[1:]]


def test_the_header_timer_stops_when_headers_end_or_the_client_leaves() -> None:
    async def main() -> None:
        connection = Connection()
        ends: list[Callable[[], object]] = [
            lambda: connection.data_received(GET[10:]),
            lambda: connection.connection_lost(None),
        ]
        for end in ends:
            connection.data_received(GET[:10])
            timer = connection._header_timer
            assert timer is not None
            assert not timer.cancelled()
            end()
            assert timer.cancelled()
            assert connection._header_timer is None
            await asyncio.sleep(0.2)
            assert connection.statuses == [b"200"]
            assert connection.fake.is_closed == (end is ends[1])

    asyncio.run(main())


def test_a_silent_client_is_closed_once() -> None:
    async def main() -> None:
        silent, gone = Connection(), Connection()
        gone.fake.is_closed = True
        gone.fake.close = lambda: gone.fake.write(b"closed twice")  # type: ignore[method-assign]
        await asyncio.sleep(0.2)
        assert silent.fake.is_closed
        assert silent._header_timer is None
        assert gone.fake.written == b""

    asyncio.run(main())


@pytest.mark.parametrize("rest", [b"\r\n", b"b"], ids=["blank lines", "rest of a body"])
def test_bytes_that_begin_no_request_do_not_keep_a_connection(rest: bytes) -> None:
    async def main() -> None:
        connection = Connection(is_early=True)
        connection.data_received(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\n" if rest == b"b" else GET)
        await asyncio.sleep(0.02)
        assert connection.statuses == [b"200"]
        for _ in range(10):
            connection.data_received(rest)
            await asyncio.sleep(0.02)
        assert connection.fake.is_closed

    asyncio.run(main())


def test_a_connection_goes_on_after_blank_lines() -> None:
    async def main() -> None:
        connection = Connection()
        for _ in range(3):
            connection.data_received(GET + b"\r\n")
            await asyncio.sleep(0.02)
            connection.data_received(b"\r\n" + GET)
            assert connection._header_timer is None
            await asyncio.sleep(0.02)
        assert connection.statuses == [b"200"] * 6
        assert not connection.fake.is_closed

    asyncio.run(main())


LONG = GET[:-2] + b"X-Long: "


def test_headers_have_a_limit_in_bytes_for_each_request() -> None:
    async def main() -> None:
        connection = Connection()
        for _ in range(2):
            connection.data_received(LONG + b"a" * (MAX_HEADER_BYTES - len(LONG)))
            assert not connection.fake.is_closed
            connection.data_received(b"\r\n\r\n")
            await asyncio.sleep(0.02)
        connection.data_received(LONG + b"a" * (MAX_HEADER_BYTES - len(LONG)))
        connection.data_received(b"a")
        assert connection.fake.is_closed
        assert connection.statuses == [b"200", b"200", b"431"]

    asyncio.run(main())


def test_the_rest_of_a_body_does_not_count_as_headers() -> None:
    async def main() -> None:
        connection = Connection(is_early=True)
        connection.data_received(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n")
        await asyncio.sleep(0.02)
        assert connection.statuses == [b"200"]  # before the body is there
        for _ in range(100):
            connection.data_received(b"a" * 1000)
        assert not connection.fake.is_closed
        connection.data_received(LONG + b"a" * MAX_HEADER_BYTES)
        assert connection.statuses == [b"200", b"431"]

    asyncio.run(main())


@pytest.mark.parametrize("is_early", [False, True], ids=["unanswered", "answered before the body"])
@pytest.mark.parametrize(
    ("start", "part"),
    [(b"0\r\n", b"a:b\r\n" * 100), (b"0\r\nX-Long: ", b"a" * 500), (b"5;x=", b"a" * 500)],
    ids=["many trailers", "one long trailer", "a long chunk extension"],
)
def test_trailers_and_chunk_extensions_have_the_limit_of_headers(start: bytes, part: bytes, is_early: bool) -> None:
    async def main() -> None:
        connection = Connection(is_early=is_early)
        connection.data_received(CHUNKED)
        await asyncio.sleep(0.01)
        connection.data_received(start)
        received = 0
        while not connection.fake.is_closed and received < 10 * MAX_HEADER_BYTES:
            connection.data_received(part)
            received += len(part)
        assert MAX_HEADER_BYTES - 1000 < received < MAX_HEADER_BYTES + 1000
        assert connection.statuses == [b"200", b"431"] if is_early else [b"431"]
        assert len(connection.requests[0]["headers"]) == 2

    asyncio.run(main())


def test_chunks_of_one_byte_are_a_body_not_headers() -> None:
    async def main() -> None:
        connection = Connection()
        connection.data_received(CHUNKED)
        for _ in range(MAX_HEADER_BYTES // 4):
            connection.data_received(b"1\r\na\r\n")
        connection.data_received(b"0\r\n\r\n")
        await asyncio.sleep(0.02)
        assert connection.statuses == [b"200"]

    asyncio.run(main())


def test_headers_after_trailers_are_headers_again() -> None:
    async def main() -> None:
        connection = Connection()
        connection.data_received(CHUNKED + b"0\r\nHost: y\r\nX: z\r\n\r\n" + GET)
        await asyncio.sleep(0.02)
        first, second = (dict(request["headers"]) for request in connection.requests)
        assert first == {b"host": b"x", b"transfer-encoding": b"chunked"}
        assert second == {b"host": b"x"}

    asyncio.run(main())


@pytest.mark.parametrize(
    ("url", "hosts", "found"),
    [
        (b"http://evil.example/here", [b"x"], [b"evil.example"]),
        (b"http://evil.example:80/here?a=b", [], [b"evil.example"]),
        (b"http://x@evil.example/here", [b"x", b"y"], [b"evil.example"] * 2),
        (b"/here", [b"x", b"y"], [b"x", b"y"]),
    ],
)
def test_the_host_of_an_absolute_url_counts(url: bytes, hosts: list[bytes], found: list[bytes]) -> None:
    async def main() -> None:
        connection = Connection()
        lines = b"".join(b"Host: %s\r\n" % host for host in hosts)
        connection.data_received(b"GET %s HTTP/1.1\r\n%s\r\n" % (url, lines))
        await asyncio.sleep(0.02)
        (request,) = connection.requests
        assert [value for name, value in request["headers"] if name == b"host"] == found
        assert request["path"] == "/here"

    asyncio.run(main())


def test_a_client_that_does_not_read_its_response_is_dropped() -> None:
    async def main() -> None:
        deaf, quick = Connection(), Connection()
        deaf.fake.unread = 100_000
        for connection in (deaf, quick):
            connection.data_received(GET)
        await asyncio.sleep(0.2)
        assert [connection.fake.is_aborted for connection in (deaf, quick)] == [True, False]

    asyncio.run(main())


def test_a_client_that_reads_gets_time_for_the_rest() -> None:
    async def main() -> None:
        connection = Connection()
        connection.fake.unread = 100_000
        connection.data_received(GET)
        await asyncio.sleep(0.01)
        connection.pause_writing()
        first = connection._response_timer
        assert first is not None
        connection.fake.unread = 10
        connection.resume_writing()
        second = connection._response_timer
        assert not connection.flow.write_paused
        assert first.cancelled()
        assert second is not None
        assert not second.cancelled()
        connection.fake.unread = 0
        connection.data_received(GET)
        await asyncio.sleep(0.01)
        assert second.cancelled()
        connection.fake.unread = 10
        connection.data_received(GET)
        await asyncio.sleep(0.01)
        third = connection._response_timer
        assert third is not None
        connection.connection_lost(None)
        assert third.cancelled()

    asyncio.run(main())


def test_head_requests_are_answered_without_a_body(registry: ModelRegistry) -> None:
    with served(registry) as address, _connected(address) as connection:
        connection.sendall(b"HEAD /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        head = connection.recv(65536)
        assert head.startswith(b"HTTP/1.1 200 ")
        assert head.endswith(b"\r\n\r\n")
        connection.sendall(f"HEAD /nowhere HTTP/1.1\r\nHost: 127.0.0.1\r\n{LAST}".encode())
        assert _answer(connection).count(b"HTTP/1.1 404 ") == 1


def test_a_client_that_expects_100_continue_gets_it(registry: ModelRegistry, frame: pd.DataFrame) -> None:
    body = json.dumps({"model": "univariate", "series": histories(frame)}).encode()
    with served(registry) as address, _connected(address) as connection:
        connection.sendall(f"{HEAD}Content-Length: {len(body)}\r\nExpect: 100-continue\r\n{LAST}".encode())
        assert connection.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(body)
        assert _answer(connection).startswith(b"HTTP/1.1 200 ")


def test_pipelined_requests_are_answered_in_order(registry: ModelRegistry, frame: pd.DataFrame) -> None:
    bodies = [json.dumps({"model": "univariate", "series": [one]}).encode() for one in histories(frame)]
    heads = [f"{HEAD}Content-Length: {len(body)}\r\n\r\n".encode() for body in bodies]
    with served(registry) as address, _connected(address) as connection:
        connection.sendall(b"".join(head + body for head, body in zip(heads, bodies, strict=True)))
        content = b""
        while content.count(b'"forecasts"') < len(bodies):
            part = connection.recv(65536)
            assert part, content
            content += part
    names = [one["id"] for one in histories(frame)]
    places = [content.index(json.dumps({"id": name})[1:-1].replace(": ", ":").encode()) for name in names]
    assert places == sorted(places)
