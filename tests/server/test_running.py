"""`leapts serve` as a process: where it listens, and how it ends."""

import asyncio
import concurrent.futures
import contextlib
import json
import re
import signal
import socket
import sys
import time
from pathlib import Path

import httpx
import pandas as pd
import pytest

from leapts import ConfigError
from leapts.server import Limits
from leapts.server.connections import LimitedProtocol
from leapts.server.running import Server, bound_socket, hosts_of, is_loopback, read_token, serve
from tests.cli.conftest import outside
from tests.server.conftest import histories, running
from tests.server.test_middleware import TOKEN

LISTENING = "0A"


def test_a_token_needs_sixteen_characters() -> None:
    assert read_token(None, {"LEAPTS_TOKEN": f" {'a' * 16}\n"}) == "a" * 16
    with pytest.raises(ConfigError, match="LEAPTS_TOKEN is not 16 or more plain letters"):
        read_token(None, {"LEAPTS_TOKEN": "a" * 15})


def test_an_invalid_token_file_is_named(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_bytes(b"\xff" * 20)
    with pytest.raises(ConfigError, match="token cannot be read as a token; give a text file"):
        read_token(file, {})
    file.write_text("a b" * 10)
    with pytest.raises(ConfigError, match=f"the token in {file} is not 16"):
        read_token(file, {})


def test_loopback_has_several_host_names() -> None:
    assert hosts_of("127.0.0.2") == frozenset({"127.0.0.1", "127.0.0.2", "localhost", "[::1]"})
    assert [is_loopback(host) for host in ("127.9.9.9", "::1", "localhost", "1.127.0.0", "::")] == [True] * 3 + [
        False
    ] * 2


def test_a_port_can_be_used_again_after_it_was_closed() -> None:
    with bound_socket("127.0.0.1", 0) as listening:
        assert listening.getsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR) == 1
        assert listening.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) == 1
        assert listening.family == socket.AF_INET
    with pytest.raises(ConfigError, match="port 70000"):
        bound_socket("127.0.0.1", 70000)


async def _nothing(*_: object) -> None:
    """An application that answers nothing."""


def test_the_server_sends_no_server_header_and_waits_for_requests_in_progress(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(LimitedProtocol, "header_seconds", 1.0, raising=False)
    monkeypatch.setattr(LimitedProtocol, "response_seconds", 1.0, raising=False)
    config = Server(_nothing, Limits(seconds=7.6, header_seconds=3.0), lambda: None).config
    assert (LimitedProtocol.header_seconds, LimitedProtocol.response_seconds) == (3.0, 7.6)
    assert config.timeout_graceful_shutdown == 16
    assert config.timeout_keep_alive == 30
    assert (config.access_log, config.server_header, config.proxy_headers) == (False, False, False)


@pytest.mark.parametrize("started", [True, False])
def test_readiness_is_reported_after_the_start(monkeypatch: pytest.MonkeyPatch, started: bool) -> None:
    async def startup(server: Server, _: object = None) -> None:
        server.started = started

    monkeypatch.setattr("uvicorn.Server.startup", startup)
    said: list[bool] = []
    server = Server(_nothing, Limits(), lambda: said.append(True))
    asyncio.run(server.startup())
    assert said == [True] * started


def test_serve_leaves_old_objects_out_of_garbage_collection(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[object] = []
    for name in ("collect", "freeze"):
        monkeypatch.setattr(f"leapts.server.running.gc.{name}", lambda name=name: called.append(name))
    monkeypatch.setattr("leapts.server.running.signal.signal", lambda number, _: called.append(number))
    monkeypatch.setattr(Server, "run", lambda _, sockets: called.append(sockets))
    with bound_socket("127.0.0.1", 0) as listening:
        serve(_nothing, listening, Limits(), ready=lambda: None)
        assert called == ["collect", "freeze", signal.SIGINT, signal.SIGTERM, [listening]]


def _addresses(port: int) -> set[str]:
    """List the addresses that listen at a port, according to the kernel."""
    found = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            fields = line.split()
            address, _, number = fields[1].partition(":")
            if int(number, 16) == port and fields[3] == LISTENING:
                found.add(address)
    return found


def _takes_callers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
    except OSError:
        return False
    return True


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_by_default_the_server_listens_on_loopback_only(folders: Path, frame: pd.DataFrame) -> None:
    with running(folders / "univariate", variables={"LEAPTS_TOKEN": TOKEN}) as server:
        assert _addresses(server.port) == {"0100007F"}
        asked = {"series": histories(frame)}
        assert httpx.post(f"{server.address}/v1/forecast", json=asked, timeout=30).status_code == 401
        headers = {"Authorization": f"Bearer {TOKEN}"}
        assert httpx.post(f"{server.address}/v1/forecast", json=asked, headers=headers, timeout=30).status_code == 200
        assert server.stop(signal.SIGINT) == 0


def test_requests_in_progress_end_after_a_signal(folders: Path, frame: pd.DataFrame) -> None:
    """Requests in progress at the signal, one of them half sent, are answered."""
    body = json.dumps({"series": histories(frame)}).encode()
    head = f"POST /v1/forecast HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n"
    with running(folders / "univariate") as server, concurrent.futures.ThreadPoolExecutor(1) as pool:
        with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
            connection.sendall(f"{head}Content-Type: application/json\r\n\r\n".encode() + body[:100])
            httpx.get(f"{server.address}/healthz")
            stopping = pool.submit(server.stop)
            while _takes_callers(server.port):
                time.sleep(0.01)
            assert not stopping.done()
            connection.sendall(body[100:])
            answer = b""
            while part := connection.recv(65536):
                answer += part
        assert answer.startswith(b"HTTP/1.1 200 ")
        assert len(json.loads(answer.partition(b"\r\n\r\n")[2])["forecasts"]) == 3
        assert stopping.result(30) == 0


@pytest.mark.slow
def test_forecasts_in_progress_survive_a_signal(folders: Path) -> None:
    """Forecasts that the thread computes, or that wait for it, are answered before the server stops."""
    values = [float(step % 7) for step in range(12)]
    asked = {"series": [{"id": number, "values": values} for number in range(2000)], "trace": True}
    body = json.dumps(asked).encode()
    head = f"POST /v1/forecast HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n"
    request = f"{head}Content-Type: application/json\r\nConnection: close\r\n\r\n".encode() + body
    with running(folders / "univariate", "--max-wait", 1000) as server, contextlib.ExitStack() as stack:
        connections = [
            stack.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=60)) for _ in range(6)
        ]
        for connection in connections:
            connection.sendall(request)
        in_progress, deadline = "0.0", time.monotonic() + 60
        while in_progress == "0.0":
            assert time.monotonic() < deadline
            text = httpx.get(f"{server.address}/metrics", timeout=60).text
            found = re.search(r'leapts_requests_in_work{kind="forecast"} (\S+)', text)
            assert found
            in_progress = found[1]
        code = server.stop()
        for connection in connections:
            answer = b""
            while part := connection.recv(1_000_000):
                answer += part
            assert answer.startswith(b"HTTP/1.1 200 ")
            assert len(json.loads(answer.partition(b"\r\n\r\n")[2])["forecasts"]) == 2000
        assert code == 0


def test_a_model_that_cannot_be_served_is_refused_in_one_line(tmp_path: Path) -> None:
    result = outside(["serve", tmp_path / "nothing"])
    assert result.code == 2
    assert "does not exist" in result.error_line


def test_a_port_that_is_taken_is_refused() -> None:
    with bound_socket("127.0.0.1", 0) as taken, pytest.raises(ConfigError, match="--port"):
        bound_socket("127.0.0.1", taken.getsockname()[1])
    with pytest.raises(ConfigError, match="--host"):
        bound_socket("192.0.2.1", 0)
