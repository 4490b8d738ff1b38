"""Who may come in, and what every answer carries."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pandas as pd
import pytest

from leapts import ConfigError
from leapts.server.metrics import Metrics
from leapts.server.middleware import ServerMiddleware, send_bytes
from leapts.server.problems import busy
from leapts.server.registry import ModelRegistry
from leapts.server.request_body import Disconnected
from leapts.server.running import hosts_of, is_loopback, read_token
from tests.server.conftest import client_of, histories

TOKEN = "0123456789abcdefXYZ"
GUARDED = [("POST", "/v1/forecast"), ("POST", "/v1/report"), ("POST", "/v1/forecast/csv"), ("GET", "/v1/models")]
GUARDED += [("GET", "/metrics"), ("GET", "/elsewhere")]
OPEN = ["/", "/docs", "/openapi.json", "/healthz", "/readyz"]


class Inside:
    """What is guarded: answers, or raises what it is told to."""

    def __init__(self, error: Exception | None = None, *, begins: int = 0) -> None:
        self.error, self.begins, self.calls = error, begins, list[str]()

    async def __call__(self, scope: Any, _: Any, send: Any) -> None:
        self.calls.append(scope["type"])
        if self.begins:
            await send({"type": "http.response.start", "status": self.begins, "headers": [(b"x", b"y")]})
        if self.error is not None:
            raise self.error
        await send_bytes(b"fine", "text/plain", send)


def _sent(
    guard: ServerMiddleware, path: str = "/here", kind: str = "http", *headers: tuple[bytes, bytes]
) -> list[dict[str, Any]]:
    sent: list[dict[str, Any]] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    asyncio.run(guard({"type": kind, "path": path, "headers": headers}, receive, send))
    return sent


def _middleware(inside: Inside, **options: Any) -> ServerMiddleware:
    given = {"metrics": Metrics(), "token": None, "paths": frozenset({"/here", "/open"}), "open_paths": frozenset()}
    return ServerMiddleware(inside, **{**given, **options})


def test_every_answer_is_counted_and_carries_what_all_do() -> None:
    metrics = Metrics()
    guard = _middleware(Inside(), metrics=metrics)
    start, body = _sent(guard)
    assert dict(start["headers"]) == {
        b"content-type": b"text/plain",
        b"content-length": b"4",
        b"cache-control": b"no-store",
        b"x-content-type-options": b"nosniff",
        b"referrer-policy": b"no-referrer",
    }
    assert (start["status"], body["body"]) == (200, b"fine")
    _sent(guard, "/made/up")
    assert metrics.requests.counts == {("/here", "200"): 1, ("other", "200"): 1}
    assert set(metrics.seconds.sums) == {("/here",), ("other",)}
    assert 0 <= metrics.seconds.sums["/here",] < 10


def test_the_beginning_of_an_application_goes_through_and_web_sockets_do_not() -> None:
    inside, metrics = Inside(), Metrics()
    guard = _middleware(inside, metrics=metrics)
    assert _sent(guard, kind="lifespan")
    assert _sent(guard, kind="websocket") == []
    assert inside.calls == ["lifespan"]
    assert metrics.requests.counts == {}


def test_a_problem_is_answered_as_one() -> None:
    metrics = Metrics()
    start, body = _sent(_middleware(Inside(busy("much to do", 7)), metrics=metrics))
    assert (start["status"], dict(start["headers"])[b"retry-after"]) == (503, b"7")
    assert dict(start["headers"])[b"content-length"] == str(len(body["body"])).encode()
    assert metrics.requests.counts == {("/here", "503"): 1}


def test_who_has_gone_is_counted_and_not_answered() -> None:
    metrics, told = Metrics(), list[str]()
    assert _sent(_middleware(Inside(Disconnected()), metrics=metrics, log=told.append)) == []
    assert metrics.requests.counts == {("/here", "499"): 1}
    assert told == []


@pytest.mark.parametrize("tells", [True, False])
def test_what_is_unexpected_is_answered_and_told_to_the_keeper(tells: bool) -> None:
    metrics, told = Metrics(), list[str]()
    guard = _middleware(Inside(ValueError("secret")), metrics=metrics, log=told.append if tells else None)
    start, body = _sent(guard)
    assert start["status"] == 500
    assert b"secret" not in body["body"]
    assert told == (["unexpected ValueError('secret') at '/here'"] if tells else [])
    assert metrics.requests.counts == {("/here", "500"): 1}


def test_an_answer_that_breaks_off_is_not_made_to_look_whole() -> None:
    metrics = Metrics()
    with pytest.raises(ValueError, match="broken"):
        _sent(_middleware(Inside(ValueError("broken"), begins=200), metrics=metrics))
    assert metrics.requests.counts == {("/here", "200"): 1}
    # The framework answers for its own errors, and passes them on for the record.
    (start,) = _sent(_middleware(Inside(ValueError("broken"), begins=500), metrics=metrics))
    assert start["status"] == 500


def test_a_token_is_looked_for_wherever_it_stands_among_the_headers() -> None:
    guard = _middleware(Inside(), token=TOKEN, open_paths=frozenset({"/open"}))
    shown = (b"authorization", f"Bearer  {TOKEN} ".encode())
    for headers, status in (((), 401), ((shown,), 200), (((b"x", b"y"), shown), 200), ((shown[::-1],), 401)):
        assert _sent(guard, "/here", "http", *headers)[0]["status"] == status
    assert _sent(guard, "/open")[0]["status"] == 200


def test_a_host_is_looked_at_before_the_token_is() -> None:
    guard = _middleware(Inside(), token=TOKEN, hosts=frozenset({"here", "also"}))
    assert _sent(guard, "/here", "http", (b"host", b"here:80"))[0]["status"] == 401
    start, body = _sent(guard, "/here", "http", (b"x", b"y"), (b"host", b"else:80"))
    assert start["status"] == 421
    assert b"call it by one of these: also, here;" in body["body"]
    assert b"'else'" in body["body"]


@pytest.fixture(scope="module")
def guarded(registry: ModelRegistry) -> Iterator[httpx.Client]:
    with client_of(registry, token=TOKEN) as client:
        yield client


@pytest.mark.parametrize(("method", "path"), GUARDED)
@pytest.mark.parametrize("given", [None, "Bearer", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", f"Basic {TOKEN}", TOKEN])
def test_without_the_token_there_is_no_answer(guarded: httpx.Client, method: str, path: str, given: str | None) -> None:
    headers = {} if given is None else {"Authorization": given}
    answer = guarded.request(method, path, headers=headers)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert answer.headers["content-type"] == "application/problem+json"
    assert TOKEN not in answer.text


def test_the_token_opens(guarded: httpx.Client, frame: pd.DataFrame) -> None:
    asked = {"model": "apart", "series": histories(frame)}
    for scheme in ("Bearer", "bearer"):
        answer = guarded.post("/v1/forecast", json=asked, headers={"Authorization": f"{scheme} {TOKEN}"})
        assert answer.status_code == 200


@pytest.mark.parametrize("path", OPEN)
def test_pages_and_probes_are_open_and_harmless(guarded: httpx.Client, path: str) -> None:
    answer = guarded.get(path)
    assert answer.status_code == 200
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cache-control"] == "no-store"
    assert "server" not in answer.headers


@pytest.mark.parametrize("path", ["/", "/docs"])
def test_pages_allow_nothing_from_elsewhere(guarded: httpx.Client, path: str) -> None:
    answer = guarded.get(path)
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy.replace("https://", "")
    assert "//" not in answer.text.replace("http://www.w3.org", "").split("<style>")[0]


def test_the_token_comes_from_a_file_or_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    assert read_token(file, {"LEAPTS_TOKEN": "b" * 20}) == TOKEN
    assert read_token(None, {"LEAPTS_TOKEN": TOKEN}) == TOKEN
    assert read_token(None, {}) is None


@pytest.mark.parametrize("token", ["", "short", "with space in the middle", "ünïcödé-ünïcödé-ü"])
def test_a_poor_token_is_refused_and_not_repeated(token: str) -> None:
    with pytest.raises(ConfigError, match="secrets") as error:
        read_token(None, {"LEAPTS_TOKEN": token})
    assert not token or token not in str(error.value)


def test_a_token_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nowhere"):
        read_token(tmp_path / "nowhere", {})


@pytest.mark.parametrize("name", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "", "localhost@evil"])
def test_a_server_of_this_computer_answers_to_no_other_name(own: httpx.Client, name: str) -> None:
    for path in ("/", "/v1/models", "/healthz"):
        answer = own.get(path, headers={"Host": name})
        assert answer.status_code == 421
        assert "127.0.0.1" in answer.json()["cure"]


@pytest.mark.parametrize("name", ["127.0.0.1", "127.0.0.1:8080", "localhost:1", "LOCALHOST", "[::1]", "[::1]:8080"])
def test_a_server_of_this_computer_answers_to_its_own_names(own: httpx.Client, name: str) -> None:
    assert own.get("/v1/models", headers={"Host": name}).status_code == 200


@pytest.fixture(scope="module")
def own(registry: ModelRegistry) -> Iterator[httpx.Client]:
    with client_of(registry, hosts=hosts_of("127.0.0.1")) as client:
        yield client


def test_a_server_for_others_answers_to_any_name() -> None:
    assert hosts_of("0.0.0.0") is None


@pytest.mark.parametrize(
    ("host", "is_own"), [("127.0.0.1", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("::", False)]
)
def test_loopback_is_told_from_the_world(host: str, is_own: bool) -> None:
    assert is_loopback(host) is is_own
