"""`leapts serve` as a process: where it listens, and how it ends."""

import concurrent.futures
import json
import signal
import socket
import sys
import time
from pathlib import Path

import httpx
import pandas as pd
import pytest

from leapts import ConfigError
from leapts.serve.running import bound_socket
from tests.cli.conftest import outside
from tests.serve.conftest import histories, running
from tests.serve.test_guard import TOKEN

LISTENING = "0A"


def _addresses(port: int) -> set[str]:
    """Where something listens at that port, as the kernel writes it."""
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
def test_by_default_only_this_computer_can_call(folders: Path, frame: pd.DataFrame) -> None:
    with running(folders / "apart", variables={"LEAPTS_TOKEN": TOKEN}) as server:
        assert _addresses(server.port) == {"0100007F"}
        asked = {"series": histories(frame)}
        assert httpx.post(f"{server.address}/v1/forecast", json=asked, timeout=30).status_code == 401
        headers = {"Authorization": f"Bearer {TOKEN}"}
        assert httpx.post(f"{server.address}/v1/forecast", json=asked, headers=headers, timeout=30).status_code == 200
        assert server.stop(signal.SIGINT) == 0


def test_a_signal_lets_what_was_begun_end_well(folders: Path, frame: pd.DataFrame) -> None:
    """Requests that are under way when the signal comes, one of them half sent, get their answers."""
    body = json.dumps({"series": histories(frame)}).encode()
    head = f"POST /v1/forecast HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n"
    with running(folders / "apart") as server, concurrent.futures.ThreadPoolExecutor(1) as pool:
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


def test_what_cannot_be_served_is_said_in_a_line(tmp_path: Path) -> None:
    result = outside(["serve", tmp_path / "nothing"])
    assert result.code == 2
    assert "does not exist" in result.error_line


def test_a_port_that_is_taken_is_refused() -> None:
    with bound_socket("127.0.0.1", 0) as taken, pytest.raises(ConfigError, match="--port"):
        bound_socket("127.0.0.1", taken.getsockname()[1])
    with pytest.raises(ConfigError, match="--host"):
        bound_socket("192.0.2.1", 0)
