"""What goes over a connection, byte by byte."""

import json

import pandas as pd
import pytest

from leapts.serve.connections import _Joined
from leapts.serve.models import Shelf
from tests.serve.conftest import histories, served
from tests.serve.test_limits import HEAD, _answer, _connected

LAST = "Connection: close\r\n\r\n"


class Wire:
    """A transport that notes what is written."""

    def __init__(self) -> None:
        self.writes: list[bytes] = []
        self.is_closed = False

    def write(self, data: bytes) -> None:
        self.writes.append(data)

    def close(self) -> None:
        self.is_closed = True

    def is_closing(self) -> bool:
        return self.is_closed


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
        assert connection.recv(65536).startswith(b"HTTP/1.1 405 ")
        connection.sendall(f"HEAD /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n{LAST}".encode())
        assert _answer(connection).count(b"HTTP/1.1 405 ") == 1


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
