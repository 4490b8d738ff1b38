"""Adversarial clients: endless bodies, silent sockets, and content that is expensive to parse.

Meanwhile the server has to answer health checks, and its memory must not grow.
"""

import gzip
import http.client
import json
import re
import socket
import threading
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from leapts_bench.server_process import ServerProcess, server_process
from leapts_qa.load_generator import request
from leapts_qa.outcome import INNARDS, Outcome
from leapts_qa.samples import LOOKBACK, forecaster, waves

MAX_MEGABYTES = 100
ENDLESS = 10_000_000_000
_JSON, _CSV = "application/json", "text/csv"
_CHUNK = b"%x\r\n%s\r\n" % (1 << 20, b" " * (1 << 20))
_TRAILERS = b"a:b\r\n" * 200_000
_DOORS = {"/v1/forecast": _JSON, "/v1/forecast/csv": _CSV, "/v1/report": _CSV}


class Watch:
    """Sends health checks repeatedly, and records the memory of the server."""

    def __init__(self, server: ServerProcess) -> None:
        self._server = server
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self.before = self.most = server.megabytes()
        self.looks = 0
        self.slowest = 0.0
        self.trouble: list[str] = []

    def __enter__(self) -> "Watch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._end.wait(0.05):
            started = time.perf_counter()
            try:
                connection = http.client.HTTPConnection("127.0.0.1", self._server.port, timeout=10)
                connection.request("GET", "/healthz")
                status = connection.getresponse().status
                connection.close()
                if status != 200:
                    self.trouble.append(f"health: {status}")
            except OSError as error:
                self.trouble.append(f"health: {error!r}")
            self.looks += 1
            self.slowest = max(self.slowest, time.perf_counter() - started)
            self.most = max(self.most, self._server.megabytes())


def run(unit: str, place: Path) -> Outcome:
    """Run one unit against a new server."""
    forecaster().fit(waves()).save(place / "model")
    with server_process("-m", "leapts", "serve", str(place / "model")) as server:
        return attacked(unit, server)


def attacked(unit: str, server: ServerProcess, *, share: float = 1.0) -> Outcome:
    """Run one unit, or a part of it, and check the property."""
    outcome = Outcome()
    _settle(server)
    with Watch(server) as watch:
        kind, _, seed = unit.partition(", seed ")
        if kind == "junk":
            _junk(server, outcome, seed=int(seed), count=round(500 * share))
        elif kind == "slow sockets":
            _slow(server, outcome, count=round(500 * share), seconds=15 * share)
        elif kind == "endless bodies":
            _endless(server, outcome)
        else:
            for name, content in _CONTENTS[kind]():
                _judge(f"{kind}, {name}", _answer(server, content), outcome)
    grown = watch.most - watch.before
    outcome.most("MB of memory growth", grown)
    outcome.most("s until the health check answered", watch.slowest)
    outcome.count("health check answered", watch.looks)
    for message in watch.trouble:
        outcome.fail(f"{unit}: {message}")
    if grown > MAX_MEGABYTES:
        outcome.fail(f"{unit}: the server grew by {grown:.0f} MB")
    return outcome


def _settle(server: ServerProcess) -> None:
    """Make one forecast of each kind, to fill all caches."""
    for path, media_type in _DOORS.items():
        body = _valid_table() if media_type == _CSV else json.dumps(_valid()).encode()
        status = _answer(server, request(path, body, "Connection: close", media_type=media_type))[:12]
        assert status == b"HTTP/1.1 200", (path, status)


def _valid() -> dict[str, object]:
    values = waves(("a",), LOOKBACK)["y"].tolist()
    return {"series": [{"id": "a", "values": values}]}


def _valid_table() -> bytes:
    return waves().to_csv(index=False).encode()


def _answer(server: ServerProcess, content: bytes, *, seconds: float = 60) -> bytes:
    """Read until the server closes or the response is complete; return nothing if it only closes."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=seconds) as connection:
        found = b""
        try:
            connection.sendall(content)
            while not _is_whole(found) and (part := connection.recv(1 << 16)):
                found += part
        except (ConnectionResetError, BrokenPipeError):
            pass
        return found


def _is_whole(found: bytes) -> bool:
    head, _, body = found.partition(b"\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
    return length is not None and len(body) >= int(length[1])


def _judge(name: str, answer: bytes, outcome: Outcome, *, expected: Sequence[int] = ()) -> None:
    """Check for a forecast, or a refusal that reveals nothing."""
    if not answer:
        outcome.count("cut off")
        return
    status = int(answer[9:12])
    body = answer.partition(b"\r\n\r\n")[2]
    if expected and status not in expected:
        outcome.fail(f"{name}: {status} instead of {expected}: {body[:200]!r}")
    elif status == 200:
        if re.search(rb"\b(nan|inf(inity)?)\b", body, re.IGNORECASE):
            outcome.fail(f"{name}: answered with {body[:200]!r}")
        else:
            outcome.count("answered with a forecast")
    elif status >= 500 and status != 503:
        outcome.fail(f"{name}: {status}: {body[:200]!r}")
    elif INNARDS.search(body.decode("utf-8", "replace")):
        outcome.fail(f"{name}: the answer tells of the server's inside: {body[:300]!r}")
    else:
        outcome.count(f"refused with {status}")


def _endless(server: ServerProcess, outcome: Outcome) -> None:
    """Send endless chunked bodies and trailers, one and many at a time, and a body that only declares its length."""
    for path, media_type in _DOORS.items():
        head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: {media_type}\r\n"
        _judge(path, _answer(server, f"{head}Content-Length: {ENDLESS}\r\n\r\n".encode()), outcome, expected=(413,))
        chunked = f"{head}Transfer-Encoding: chunked\r\n\r\n".encode()
        for what, start, part in (("body", b"", _CHUNK), ("trailers", b"2\r\n{}\r\n0\r\n", _TRAILERS)):
            for callers in (1, 8):
                sent = _pour(server, chunked + start, part, callers)
                outcome.most(f"bytes read of an endless {what}", max(sent))
                for bytes_sent in sent:
                    if bytes_sent < ENDLESS:
                        outcome.count(f"endless request {what} refused")
                    else:
                        outcome.fail(f"{path}: took {bytes_sent:,} bytes of {what}")


def _pour(server: ServerProcess, head: bytes, part: bytes, callers: int) -> list[int]:
    """Send parts over several connections in turn until each is refused; return the bytes accepted by each."""
    sent = [0] * callers
    with ExitStack() as stack:
        open_ones = {}
        for number in range(callers):
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=10))
            connection.sendall(head)
            open_ones[number] = connection
        while open_ones:
            for number, connection in list(open_ones.items()):
                try:
                    connection.sendall(part)
                    sent[number] += len(part)
                except OSError:  # refused: closed, or no longer read
                    del open_ones[number]
                if sent[number] > ENDLESS:
                    open_ones.pop(number, None)
    return sent


def _slow(server: ServerProcess, outcome: Outcome, *, count: int, seconds: float) -> None:
    """Open sockets that send nothing, or send head or body byte by byte; others are served meanwhile."""
    head = b"POST /v1/forecast HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    starts = (b"", b"POST /v1/fo", head + b"Content-Length: 100000\r\n\r\n{")
    with ExitStack() as stack:
        sockets = []
        for number in range(count):
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=10))
            connection.sendall(starts[number % 3])
            sockets.append((connection, number % 3 > 0))
        end = time.monotonic() + seconds
        valid = request("/v1/forecast", json.dumps(_valid()).encode())
        while time.monotonic() < end:
            for connection, speaks in sockets:
                if speaks:
                    try:
                        connection.sendall(b" ")
                    except OSError:
                        continue
            _judge("another caller", _answer(server, valid), outcome, expected=(200,))
            time.sleep(0.25)
    outcome.count("slow sockets held open", count)


def _junk(server: ServerProcess, outcome: Outcome, *, seed: int, count: int) -> None:
    """Return a valid request with bytes changed, removed, doubled or inserted."""
    random = np.random.default_rng(seed)
    valid = request("/v1/forecast", json.dumps(_valid()).encode(), "Connection: close")
    for number in range(count):
        content = bytearray(valid)
        for _ in range(int(random.integers(1, 6))):
            place, length = int(random.integers(len(content))), int(random.integers(1, 12))
            piece = random.integers(0, 256, length, dtype=np.uint8).tobytes()
            content[place : place + int(random.integers(0, 12))] = piece
        try:
            _judge(f"junk {seed}, {number}", _answer(server, bytes(content), seconds=2), outcome)
        except TimeoutError:
            outcome.count("incomplete request, server waits")


def _nested() -> Iterator[tuple[str, bytes]]:
    million = 1_000_000
    bodies = {
        "lists": b"[" * million,
        "lists, closed": b"[" * million + b"]" * million,
        "objects": b'{"a":' * million,
        "values": b'{"series":[{"id":"a","values":' + b"[" * million,
        "unknown field": b'{"x":' + b"[" * million + b"]" * million + b"}",
        "identifier": b'{"series":[{"id":' + b'{"a":' * million,
    }
    for name, body in bodies.items():
        yield name, request("/v1/forecast", body, "Connection: close")


def _bombs() -> Iterator[tuple[str, bytes]]:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    bomb = b"".join(packer.compress(b" " * (1 << 20)) for _ in range(1000)) + packer.flush()
    for path, media_type in _DOORS.items():
        for encoding in ("gzip", "x-gzip", "deflate", "br", "zstd", "gzip, gzip"):
            content = request(path, bomb, f"Content-Encoding: {encoding}", "Connection: close", media_type=media_type)
            yield f"{path}, {encoding}", content
        yield f"{path}, unannounced", request(path, bomb, "Connection: close", media_type=media_type)
        small = gzip.compress(_valid_table())
        yield f"{path}, small", request(path, small, "Connection: close", media_type="application/gzip")


def _tokens() -> Iterator[tuple[str, bytes]]:
    tokens = ["NaN", "Infinity", "-Infinity", "nan", "inf", "1e999", "-1e999", "1e308", "5e-324", "null", "true", '"1"']
    tokens += ["1" + "0" * 5000, "0." + "1" * 5000, "1e" + "9" * 100, "[]", "{}", "-", "01", "+1", ".5", "0x10", "1_0"]
    for token in tokens:
        values = ",".join(["1.5"] * (LOOKBACK - 1) + [token])
        for place, body in (
            ("a value", f'{{"series":[{{"id":"a","values":[{values}]}}]}}'),
            ("the name", f'{{"series":[{{"id":{token},"values":[{",".join(["1.5"] * LOOKBACK)}]}}]}}'),
            ("a level", f'{{"level":[{token}],{json.dumps(_valid())[1:]}'),
            ("the stamp", f'{{"last":{token},{json.dumps(_valid())[1:]}'),
        ):
            yield f"{token[:20]} as {place}", request("/v1/forecast", body.encode(), "Connection: close")
        table = _valid_table() + f"b,2024-02-18,{token}\n".encode()
        yield f"{token[:20]} in a table", request("/v1/forecast/csv", table, "Connection: close", media_type=_CSV)


def _options() -> Iterator[tuple[str, bytes]]:
    """Ask for too many, too few and impossible levels, quantiles and sample paths."""
    shares = [0.0, 5e-324, 1e-12, 0.5, 1 - 1e-16, 99.99999999999999, 100]
    numbers: tuple[Any, ...] = (0, 20, 1000, 1001, 10**9, 10**30, -1, 1.5, "1", True, None, [1], {})
    options: list[dict[str, Any]] = [{"samples": number} for number in numbers]
    options += [{"random_seed": number, "samples": 1} for number in numbers]
    options += [{name: [share]} for name in ("level", "quantiles") for share in shares]
    odd: tuple[Any, ...] = ([80] * 1_000_000, [0.5, 0.5], 80, {}, [[1]])
    options += [{name: value} for name in ("level", "quantiles") for value in odd]
    options += [{"level": [80], "quantiles": [0.5]}, {"quantiles": [n / 21 for n in range(1, 21)], "samples": 1000}]
    for option in options:
        name = json.dumps(option)[:40]
        body = json.dumps({**_valid(), **option}).encode()
        yield name, request("/v1/forecast", body, "Connection: close")
        ((key, value), *_) = option.items()
        query = "&".join(f"{key}={one}" for one in (value[:3000] if isinstance(value, list) else [value]))
        table = _valid_table()
        yield (
            f"{name}, table",
            request(f"/v1/forecast/csv?{query}".replace(" ", ""), table, "Connection: close", media_type=_CSV),
        )
    many = [{"id": str(number), "values": [1.0] * LOOKBACK} for number in range(2000)]
    wide: list[dict[str, Any]] = [{"samples": 1000}, {"samples": 33}, {"level": list(range(5, 100, 5))}]
    for option in wide:
        yield (
            f"2,000 series, {option}",
            request("/v1/forecast", json.dumps({"series": many, **option}).encode(), "Connection: close"),
        )


def _forms() -> Iterator[tuple[str, bytes]]:
    fields = "&".join(f"field{number}=value" for number in range(100_000)).encode()
    parts = b"".join(b'--x\r\nContent-Disposition: form-data; name="f"\r\n\r\n1\r\n' for _ in range(10_000)) + b"--x--"
    for path in _DOORS:
        for media_type, body in (
            ("application/x-www-form-urlencoded", fields),
            ("multipart/form-data; boundary=x", parts),
            ("text/plain", b"{}"),
            ("application/json, text/csv", b"{}"),
            ("", b"{}"),
        ):
            content = request(path, body, "Connection: close", media_type=media_type)
            yield f"{path}, {media_type or 'no type'}", content


_CONTENTS = {
    "nested brackets": _nested,
    "gzip bombs": _bombs,
    "NaN tokens": _tokens,
    "forms": _forms,
    "levels and samples": _options,
}
UNITS = ("endless bodies", "slow sockets", *_CONTENTS, *(f"junk, seed {seed}" for seed in range(10)))
