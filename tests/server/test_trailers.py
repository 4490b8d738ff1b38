"""Trailers of chunked requests over real sockets: they cost no memory, and never count as headers."""

import contextlib
import json
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pandas as pd
import pytest

from leapts.server.registry import ModelRegistry
from leapts.server.running import hosts_of
from tests.server.conftest import histories, served
from tests.server.test_limits import _answer, _connected
from tests.server.test_middleware import TOKEN

MEGABYTE = 1_000_000
TRAILERS = b"a:b\r\n" * 20_000
AUTHORIZATION = f"Authorization: Bearer {TOKEN}\r\n"


@pytest.fixture(scope="module")
def address(registry: ModelRegistry) -> Iterator[str]:
    with served(registry, token=TOKEN, hosts=hosts_of("127.0.0.1")) as address:
        yield address


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def _send_trailers(connection: socket.socket, most: int) -> None:
    """Send trailers until the server closes the connection, or `most` bytes are sent."""
    for _ in range(most // len(TRAILERS)):
        try:
            connection.sendall(TRAILERS)
        except (BrokenPipeError, ConnectionResetError):
            return


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("authorization", ["", AUTHORIZATION], ids=["no token", "token"])
@pytest.mark.parametrize("target", ["POST /v1/forecast", "POST /v1/report", "GET /v1/models", "POST /nowhere"])
def test_endless_trailers_cost_no_memory(address: str, target: str, authorization: str) -> None:
    head = f"{target} HTTP/1.1\r\nHost: 127.0.0.1\r\n{authorization}Content-Type: application/json\r\n"
    before = _resident_bytes()
    with contextlib.ExitStack() as stack:
        connections = [stack.enter_context(_connected(address)) for _ in range(20)]
        for connection in connections:
            connection.sendall(f"{head}Transfer-Encoding: chunked\r\n\r\n2\r\n{{}}\r\n0\r\n".encode())
        for connection in connections:
            _send_trailers(connection, 10 * MEGABYTE)
        assert _resident_bytes() - before < 50 * MEGABYTE
        for connection in connections:
            _answer(connection)  # which ends only when the server has closed the connection
    assert httpx.get(f"{address}/healthz").status_code == 200


def _chunked(address: str, body: bytes, headers: str, trailers: str) -> bytes:
    with _connected(address) as connection:
        head = f"POST /v1/forecast HTTP/1.1\r\n{headers}Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
        chunk = b"%x\r\n%s\r\n0\r\n" % (len(body), body)
        connection.sendall(head.encode() + chunk + f"{trailers}\r\n".encode())
        return _answer(connection)


@pytest.mark.parametrize(
    ("late", "status"),
    [
        (AUTHORIZATION, b"401"),
        ("Host: 127.0.0.1\r\n", b"421"),
        ("Content-Type: application/json\r\n", b"415"),
        ("X-Other: 1\r\n", b"200"),
    ],
)
def test_headers_sent_as_trailers_do_not_count(address: str, frame: pd.DataFrame, late: str, status: bytes) -> None:
    body = json.dumps({"model": "univariate", "series": histories(frame)}).encode()
    headers = f"Host: 127.0.0.1\r\n{AUTHORIZATION}Content-Type: application/json\r\n".replace(late, "")
    assert _chunked(address, body, headers, late).startswith(b"HTTP/1.1 %s " % status)


def test_trailers_replace_no_header(address: str, frame: pd.DataFrame) -> None:
    body = json.dumps({"model": "univariate", "series": histories(frame)}).encode()
    headers = f"Host: 127.0.0.1\r\n{AUTHORIZATION}Content-Type: application/json\r\n"
    late = "Host: evil.example\r\nAuthorization: Bearer wrong\r\nContent-Type: text/csv\r\nContent-Encoding: gzip\r\n"
    assert _chunked(address, body, headers, late).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize(
    ("target", "hosts", "status"),
    [
        ("/v1/models", ["127.0.0.1", "127.0.0.1"], b"400"),
        ("/v1/models", ["127.0.0.1", "evil.example"], b"400"),
        ("http://evil.example/v1/models", ["127.0.0.1"], b"421"),
        ("http://127.0.0.1/v1/models", ["evil.example"], b"200"),
        ("http://127.0.0.1:80/v1/models", [], b"200"),
    ],
)
def test_exactly_one_host_counts(address: str, target: str, hosts: list[str], status: bytes) -> None:
    lines = "".join(f"Host: {host}\r\n" for host in hosts)
    with _connected(address) as connection:
        connection.sendall(f"GET {target} HTTP/1.1\r\n{lines}{AUTHORIZATION}Connection: close\r\n\r\n".encode())
        assert _answer(connection).startswith(b"HTTP/1.1 %s " % status)


def test_a_long_host_is_not_echoed_whole(address: str) -> None:
    answer = httpx.get(address, headers={"Host": "a" * 60_000})
    assert answer.status_code == 421
    assert len(answer.content) < 1000
