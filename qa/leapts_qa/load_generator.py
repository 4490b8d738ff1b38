"""An open-loop load generator: clients send at their own rate, independently of responses.

A closed-loop generator waits for a response before the next request, slows down with the server, and so hides how long
clients would have waited.
"""

import asyncio
import re
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

GONE = 0  # status of a connection that was closed without a response
_HEAD = re.compile(rb"HTTP/1\.1 (\d{3}) .*?content-length: (\d+)\r\n.*?\r\n\r\n", re.DOTALL | re.IGNORECASE)


@dataclass(frozen=True)
class Answer:
    """The response to a client.

    Attributes:
        status: The status code; `GONE` without a response.
        seconds: From the request to the complete response, with the time to connect.
        content: The complete response.
    """

    status: int
    seconds: float
    content: bytes


def request(path: str, body: bytes, *headers: str, media_type: str = "application/json") -> bytes:
    """Encode a request."""
    lines = [f"POST {path} HTTP/1.1", "Host: 127.0.0.1", f"Content-Type: {media_type}"]
    lines += [f"Content-Length: {len(body)}", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + body


class Connection(asyncio.Protocol):
    """One connection, for one request at a time."""

    def __init__(self) -> None:
        self._content = b""
        self._answered: asyncio.Future[int] | None = None
        self._transport: asyncio.Transport | None = None

    @property
    def is_open(self) -> bool:
        """Check whether it can be used again."""
        return self._transport is not None and not self._transport.is_closing()

    async def ask(self, content: bytes) -> tuple[int, bytes]:
        """Send a request, and wait for the complete response."""
        assert self._transport is not None
        self._content = b""
        self._answered = asyncio.get_running_loop().create_future()
        self._transport.write(content)
        return await self._answered, self._content

    def close(self) -> None:
        """Close the connection."""
        if self._transport is not None:
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport of a new connection."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Add a part of a response."""
        self._content += data
        head = _HEAD.match(self._content)
        if head is not None and len(self._content) >= head.end() + int(head[2]):
            self._settle(int(head[1]))

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """Resolve a pending request without a response."""
        self._settle(GONE)

    def _settle(self, status: int) -> None:
        if self._answered is not None and not self._answered.done():
            self._answered.set_result(status)


async def connected(port: int) -> Connection:
    """Open a connection to this machine."""
    _, connection = await asyncio.get_running_loop().create_connection(Connection, "127.0.0.1", port)
    return connection


async def arriving(port: int, content: bytes, *, rate: float, seconds: float, seed: int) -> list[Answer]:
    """Send requests at random times with a given rate, over as many connections as needed."""
    idle: deque[Connection] = deque()
    dues = np.cumsum(np.random.default_rng(seed).exponential(1 / rate, max(1, round(rate * seconds))))
    started = time.perf_counter()
    asked: list[asyncio.Task[Answer]] = []
    for due in dues.tolist():
        pause = started + due - time.perf_counter()
        if pause > 0 or not len(asked) % 10:  # when late, send at once, but let responses be processed
            await asyncio.sleep(max(0.0, pause))
        asked.append(asyncio.create_task(_asked(port, idle, content)))
    answers = await asyncio.gather(*asked)
    for connection in idle:
        connection.close()
    return answers


async def _asked(port: int, idle: "deque[Connection]", content: bytes) -> Answer:
    started = time.perf_counter()
    while idle:
        connection = idle.pop()
        if connection.is_open:
            break
    else:
        try:
            connection = await connected(port)
        except OSError:
            return Answer(GONE, time.perf_counter() - started, b"")
    status, found = await connection.ask(content)
    if connection.is_open:
        idle.append(connection)
    return Answer(status, time.perf_counter() - started, found)


async def in_turns(port: int, content: bytes, *, callers: int, until: float) -> list[Answer]:
    """Run clients that wait for each response, until a time or until the server is gone."""

    async def calling() -> list[Answer]:
        try:
            connection = await connected(port)
        except OSError:
            return []
        answers = []
        while time.perf_counter() < until and connection.is_open:
            started = time.perf_counter()
            status, found = await connection.ask(content)
            answers.append(Answer(status, time.perf_counter() - started, found))
        connection.close()
        return answers

    return [answer for one in await asyncio.gather(*(calling() for _ in range(callers))) for answer in one]


def percentile(answers: Sequence[Answer], share: float) -> float:
    """Return a percentile of the times, in milliseconds."""
    return float(np.percentile([answer.seconds for answer in answers], share)) * 1000
