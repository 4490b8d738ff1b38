"""What goes over a connection, byte by byte."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest
import uvicorn
from uvicorn.server import ServerState

from leapts.serve.connections import ImpatientProtocol, _Joined
from leapts.serve.guard import send_bytes
from leapts.serve.intake import WHOLE
from leapts.serve.models import Shelf
from tests.serve.conftest import histories, served
from tests.serve.test_limits import HEAD, _answer, _connected

LAST = "Connection: close\r\n\r\n"


class Wire:
    """A transport that notes what is written."""

    def __init__(self) -> None:
        self.writes: list[bytes] = []
        self.is_closed = False
        self.is_aborted = False
        self.waiting = 0  # bytes that were not read yet

    def write(self, data: bytes) -> None:
        self.writes.append(data)

    def close(self) -> None:
        self.is_closed = True

    def abort(self) -> None:
        self.is_aborted = True

    def get_write_buffer_size(self) -> int:
        return self.waiting

    def is_closing(self) -> bool:
        return self.is_closed

    def pause_reading(self) -> None:
        """It comes all the same."""

    def resume_reading(self) -> None:
        """It never stopped."""

    def get_extra_info(self, _: str) -> None:
        """It has no address."""


GET = b"GET /here HTTP/1.1\r\nHost: x\r\n\r\n"


class Connection(ImpatientProtocol):
    """A connection whose requests are noted, and answered with their addresses."""

    seconds = 0.05
    reading_seconds = 0.05

    def __init__(self) -> None:
        self.wholes: list[Any] = []
        config = uvicorn.Config(self._answer, interface="asgi3", ws="none", lifespan="off", log_config=None)
        config.load()
        super().__init__(config, ServerState(), {}, asyncio.get_running_loop())
        self.wire = Wire()
        self.connection_made(self.wire)

    async def _answer(self, scope: Any, _: Any, send: Any) -> None:
        self.wholes.append(scope.get(WHOLE))
        await send_bytes(scope["path"].encode(), "text/plain", send)

    @property
    def has_stopped_waiting(self) -> bool:
        return self._patience is None


def test_a_caller_is_waited_for_until_it_has_said_what_it_wants() -> None:
    async def main() -> None:
        connection = Connection()
        ends: list[Callable[[], object]] = [
            lambda: connection.data_received(GET[10:]),
            lambda: connection.connection_lost(None),
        ]
        for end in ends:
            connection.data_received(GET[:10])
            waiting = connection._patience
            assert waiting is not None
            assert not waiting.cancelled()
            end()
            assert waiting.cancelled()
            assert connection.has_stopped_waiting
            await asyncio.sleep(0.2)
            assert len(connection.wire.writes) == 1
            assert connection.wire.writes[0].endswith(b"\r\n\r\n/here")
            assert connection.wire.is_closed == (end is ends[1])

    asyncio.run(main())


def test_a_caller_is_waited_for_before_it_says_anything() -> None:
    async def main() -> None:
        waiting = Connection()._patience
        assert waiting is not None
        assert not waiting.cancelled()

    asyncio.run(main())


def test_a_caller_that_says_nothing_is_closed_once() -> None:
    async def main() -> None:
        silent, gone = Connection(), Connection()
        gone.wire.is_closed = True
        gone.wire.close = lambda: gone.wire.writes.append(b"closed twice")  # type: ignore[method-assign]
        await asyncio.sleep(0.2)
        assert silent.wire.is_closed
        assert silent.has_stopped_waiting
        assert gone.wire.writes == []

    asyncio.run(main())


@pytest.mark.parametrize("rest", [b"\r\n", b"b"])
def test_bytes_that_begin_no_request_do_not_keep_a_connection(rest: bytes) -> None:
    """A blank line, or the rest of a body whose answer is out."""

    async def main() -> None:
        connection = Connection()
        connection.data_received(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\n" if rest == b"b" else GET)
        await asyncio.sleep(0.02)
        assert len(connection.wire.writes) == 1
        for _ in range(10):
            connection.data_received(rest)
            await asyncio.sleep(0.02)
        assert connection.wire.is_closed

    asyncio.run(main())


def test_a_connection_goes_on_after_blank_lines() -> None:
    async def main() -> None:
        connection = Connection()
        for _ in range(3):
            connection.data_received(GET + b"\r\n")
            await asyncio.sleep(0.02)
            connection.data_received(b"\r\n" + GET)
            assert connection.has_stopped_waiting
            await asyncio.sleep(0.02)
        assert len(connection.wire.writes) == 6
        assert not connection.wire.is_closed

    asyncio.run(main())


LONGEST = 65_536
LONG = GET[:-2] + b"X-Long: "


def test_a_head_may_have_so_many_bytes_and_no_more() -> None:
    async def main() -> None:
        connection = Connection()
        for _ in range(2):  # each head for itself
            connection.data_received(LONG + b"a" * (LONGEST - len(LONG)))
            assert not connection.wire.is_closed
            connection.data_received(b"\r\n\r\n")
            await asyncio.sleep(0.02)
        connection.data_received(LONG + b"a" * (LONGEST - len(LONG)))
        connection.data_received(b"a")
        assert connection.wire.is_closed
        assert [write[9:12] for write in connection.wire.writes] == [b"200", b"200", b"431"]

    asyncio.run(main())


def test_the_rest_of_a_body_is_no_head() -> None:
    async def main() -> None:
        connection = Connection()
        connection.data_received(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n")
        await asyncio.sleep(0.02)
        assert len(connection.wire.writes) == 1  # answered before the body is here
        for _ in range(100):
            connection.data_received(b"a" * 1000)
        assert not connection.wire.is_closed
        connection.data_received(LONG + b"a" * LONGEST)
        assert connection.wire.writes[1].startswith(b"HTTP/1.1 431 ")

    asyncio.run(main())


def test_who_does_not_read_its_answer_is_dropped() -> None:
    async def main() -> None:
        deaf, quick = Connection(), Connection()
        deaf.wire.waiting = 100_000
        for connection in (deaf, quick):
            connection.data_received(GET)
        await asyncio.sleep(0.2)
        assert [connection.wire.is_aborted for connection in (deaf, quick)] == [True, False]

    asyncio.run(main())


def test_who_reads_is_given_time_for_the_rest() -> None:
    async def main() -> None:
        connection = Connection()
        connection.wire.waiting = 100_000
        connection.data_received(GET)
        await asyncio.sleep(0.01)
        connection.pause_writing()
        first = connection._unread
        assert first is not None
        connection.wire.waiting = 10
        connection.resume_writing()
        second = connection._unread
        assert not connection.flow.write_paused
        assert first.cancelled()
        assert second is not None
        assert not second.cancelled()
        connection.wire.waiting = 0
        connection.data_received(GET)
        await asyncio.sleep(0.01)
        assert second.cancelled()
        connection.wire.waiting = 10
        connection.data_received(GET)
        await asyncio.sleep(0.01)
        third = connection._unread
        assert third is not None
        connection.connection_lost(None)
        assert third.cancelled()

    asyncio.run(main())


def test_a_request_that_came_whole_is_known_to_be() -> None:
    async def main() -> None:
        connection = Connection()
        connection.data_received(GET)
        await asyncio.sleep(0.05)
        head = b"POST /there HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\n"
        connection.data_received(head + b"ab")
        await asyncio.sleep(0.05)
        connection.data_received(b"c" + GET)
        await asyncio.sleep(0.05)
        assert connection.wholes == [True, None, True]
        assert [write.rpartition(b"\n")[2] for write in connection.wire.writes] == [b"/here", b"/there", b"/here"]

    asyncio.run(main())


def test_only_a_head_is_kept_and_only_until_its_body() -> None:
    wire = Wire()
    joined = _Joined(wire)  # type: ignore[arg-type]
    parts = (b"body\r\n\r\n", b"HTTP/1.1 is a protocol", b"HTTP/1.1 100 Continue\r\n\r\n", b"more")
    for part in parts:
        joined.write(part)
    assert wire.writes == list(parts)
    joined.write(b"HTTP/1.1 200 OK\r\n\r\n")
    joined.write(b"1")
    joined.write(b"2")
    assert wire.writes[4:] == [b"HTTP/1.1 200 OK\r\n\r\n1", b"2"]
    joined.flush()
    assert len(wire.writes) == 6
    joined.write(b"HTTP/1.1 200 OK\r\n\r\n")
    wire.is_closed = True
    joined.write(b"")
    wire.is_closed = False
    joined.flush()
    assert len(wire.writes) == 6
    assert joined.is_closed is False


def test_an_answer_is_written_in_one_piece() -> None:
    wire = Wire()
    joined = _Joined(wire)  # type: ignore[arg-type]
    for answer in ((b"HTTP/1.1 200 OK\r\nx: y\r\n\r\n", b"body"), (b"HTTP/1.1 503 Busy\r\n\r\n", b"")):
        for part in answer:
            joined.write(part)
    assert wire.writes == [b"HTTP/1.1 200 OK\r\nx: y\r\n\r\nbody", b"HTTP/1.1 503 Busy\r\n\r\n"]


@pytest.mark.parametrize("last", ["flush", "close"])
def test_a_head_without_a_body_is_written_at_the_end(last: str) -> None:
    wire = Wire()
    joined = _Joined(wire)  # type: ignore[arg-type]
    joined.write(b"HTTP/1.1 200 OK\r\n\r\n")
    assert wire.writes == []
    getattr(joined, last)()
    joined.flush()
    assert wire.writes == [b"HTTP/1.1 200 OK\r\n\r\n"]
    assert wire.is_closed == (last == "close")


def test_nothing_is_written_to_who_has_gone() -> None:
    """The server underneath would try, and fail, for requests that were waiting in line."""
    wire = Wire()
    joined = _Joined(wire)  # type: ignore[arg-type]
    joined.write(b"HTTP/1.1 200 OK\r\n\r\n")
    wire.close()
    joined.write(b"body")
    joined.close()
    assert wire.writes == []


def test_a_caller_that_asks_for_the_head_alone_gets_it(shelf: Shelf) -> None:
    with served(shelf) as address, _connected(address) as connection:
        connection.sendall(b"HEAD /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        head = connection.recv(65536)
        assert head.startswith(b"HTTP/1.1 200 ")
        assert head.endswith(b"\r\n\r\n")
        connection.sendall(f"HEAD /nowhere HTTP/1.1\r\nHost: 127.0.0.1\r\n{LAST}".encode())
        assert _answer(connection).count(b"HTTP/1.1 404 ") == 1


def test_a_caller_that_waits_to_be_told_to_go_on_is_told(shelf: Shelf, frame: pd.DataFrame) -> None:
    body = json.dumps({"model": "apart", "series": histories(frame)}).encode()
    with served(shelf) as address, _connected(address) as connection:
        connection.sendall(f"{HEAD}Content-Length: {len(body)}\r\nExpect: 100-continue\r\n{LAST}".encode())
        assert connection.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(body)
        assert _answer(connection).startswith(b"HTTP/1.1 200 ")


def test_requests_sent_at_once_are_answered_one_after_the_other(shelf: Shelf, frame: pd.DataFrame) -> None:
    bodies = [json.dumps({"model": "apart", "series": [one]}).encode() for one in histories(frame)]
    heads = [f"{HEAD}Content-Length: {len(body)}\r\n\r\n".encode() for body in bodies]
    with served(shelf) as address, _connected(address) as connection:
        connection.sendall(b"".join(head + body for head, body in zip(heads, bodies, strict=True)))
        content = b""
        while content.count(b'"forecasts"') < len(bodies):
            part = connection.recv(65536)
            assert part, content
            content += part
    names = [one["id"] for one in histories(frame)]
    places = [content.index(json.dumps({"id": name})[1:-1].replace(": ", ":").encode()) for name in names]
    assert places == sorted(places)
