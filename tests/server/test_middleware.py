"""Host and token are checked before every request; every response has its headers and is counted."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pandas as pd
import pytest
from starlette.responses import PlainTextResponse

from leapts import ConfigError
from leapts.server.middleware import ServerMiddleware
from leapts.server.problems import busy
from leapts.server.registry import ModelRegistry
from leapts.server.running import hosts_of, is_loopback, read_token
from tests.server.conftest import client_of, histories
from tests.server.test_metrics import metrics_of

TOKEN = "0123456789abcdefXYZ"
GUARDED = [("POST", "/v1/forecast"), ("POST", "/v1/report"), ("POST", "/v1/forecast/csv"), ("GET", "/v1/models")]
GUARDED += [("GET", "/metrics"), ("GET", "/elsewhere")]
OPEN = ["/", "/docs", "/openapi.json", "/healthz", "/readyz"]


class Inside:
    """An application that responds, or raises an error, perhaps after it has begun to respond."""

    def __init__(self, error: Exception | None = None, *, begins: int = 0) -> None:
        self.error, self.begins, self.calls = error, begins, list[str]()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.calls.append(f"{scope['type']} {scope['method']}")
        if self.begins:
            await send({"type": "http.response.start", "status": self.begins, "headers": [(b"x", b"y")]})
        if self.error is not None:
            raise self.error
        await PlainTextResponse("fine")(scope, receive, send)


class Sent:
    """The response to one request through the middleware, and what was counted and logged."""

    def __init__(self, inside: Inside, path: str = "/here", *headers: tuple[bytes, bytes], **options: Any) -> None:
        self.messages: list[dict[str, Any]] = []
        self.logged: list[str] = []
        metrics = metrics_of()
        given = {"metrics": metrics, "paths": frozenset({"/here"}), "log": self.logged.append}
        scope = {"type": "http", "method": "GET", "path": path, "headers": headers, **options.pop("scope", {})}
        middleware = ServerMiddleware(inside, **{**given, **options})

        async def send(message: Any) -> None:
            self.messages.append(message)

        async def receive() -> dict[str, Any]:
            return {"type": "http.disconnect"}

        try:
            asyncio.run(middleware(scope, receive, send))
        finally:
            (family,) = metrics.requests.collect()
            self.counted = {tuple(one.labels.values()): one.value for one in family.samples}

    @property
    def status(self) -> int:
        return int(self.messages[0]["status"])

    @property
    def headers(self) -> dict[bytes, bytes]:
        return dict(self.messages[0]["headers"])


def test_every_response_is_counted_and_has_the_common_headers() -> None:
    sent = Sent(Inside())
    assert sent.headers.items() >= {
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"cache-control", b"no-store"),
        (b"x-content-type-options", b"nosniff"),
        (b"referrer-policy", b"no-referrer"),
    }
    assert (sent.status, sent.messages[1]["body"]) == (200, b"fine")
    assert sent.counted == {("/here", "200"): 1}
    assert Sent(Inside(), "/made/up").counted == {("other", "200"): 1}


def test_lifespan_passes_web_sockets_do_not_and_head_is_get() -> None:
    inside = Inside()
    assert Sent(inside, scope={"type": "lifespan"}).messages
    assert Sent(inside, scope={"type": "websocket"}).messages == []
    Sent(inside, scope={"method": "HEAD"})
    assert inside.calls == ["lifespan GET", "http GET"]


def test_a_problem_is_answered_and_not_logged() -> None:
    sent = Sent(Inside(busy("much to do", 7)))
    assert (sent.status, sent.headers[b"retry-after"]) == (503, b"7")
    assert (sent.counted, sent.logged) == ({("/here", "503"): 1}, [])


def test_an_unexpected_error_is_logged_and_not_shown() -> None:
    sent = Sent(Inside(ValueError("secret")))
    assert sent.status == 500
    assert b"secret" not in sent.messages[1]["body"]
    assert len(sent.logged) == 1
    assert "secret" in sent.logged[0]
    assert sent.counted == {("/here", "500"): 1}


def test_an_incomplete_response_is_not_made_to_look_complete() -> None:
    with pytest.raises(ValueError, match="broken"):
        Sent(Inside(ValueError("broken"), begins=200))


def test_the_token_may_be_anywhere_among_the_headers() -> None:
    shown = (b"authorization", f"Bearer  {TOKEN} ".encode())
    for headers, status in (((), 401), ((shown,), 200), (((b"x", b"y"), shown), 200), ((shown[::-1],), 401)):
        assert Sent(Inside(), "/here", *headers, token=TOKEN).status == status
    assert Sent(Inside(), "/healthz", token=TOKEN).status == 200


def test_the_host_is_checked_before_the_token() -> None:
    hosts = frozenset({"here", "also"})
    assert Sent(Inside(), "/here", (b"host", b"here:80"), token=TOKEN, hosts=hosts).status == 401
    sent = Sent(Inside(), "/here", (b"x", b"y"), (b"host", b"else:80"), token=TOKEN, hosts=hosts)
    assert sent.status == 421
    assert b"also, here" in sent.messages[1]["body"]
    assert b"else" in sent.messages[1]["body"]
    assert Sent(Inside(), "/here", (b"host", b"here"), (b"host", b"here")).status == 400


@pytest.fixture(scope="module")
def guarded(registry: ModelRegistry) -> Iterator[httpx.Client]:
    with client_of(registry, token=TOKEN) as client:
        yield client


@pytest.mark.parametrize(("method", "path"), GUARDED)
@pytest.mark.parametrize("given", [None, "Bearer", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", f"Basic {TOKEN}", TOKEN])
def test_requests_without_the_token_are_refused(
    guarded: httpx.Client, method: str, path: str, given: str | None
) -> None:
    headers = {} if given is None else {"Authorization": given}
    answer = guarded.request(method, path, headers=headers)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert answer.headers["content-type"] == "application/problem+json"
    assert TOKEN not in answer.text


def test_requests_with_the_token_are_answered(guarded: httpx.Client, frame: pd.DataFrame) -> None:
    asked = {"model": "univariate", "series": histories(frame)}
    for scheme in ("Bearer", "bearer"):
        answer = guarded.post("/v1/forecast", json=asked, headers={"Authorization": f"{scheme} {TOKEN}"})
        assert answer.status_code == 200


@pytest.mark.parametrize("path", OPEN)
def test_pages_and_probes_need_no_token(guarded: httpx.Client, path: str) -> None:
    answer = guarded.get(path)
    assert answer.status_code == 200
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cache-control"] == "no-store"
    assert "server" not in answer.headers


@pytest.mark.parametrize("path", ["/", "/docs"])
def test_pages_load_nothing_from_other_hosts(guarded: httpx.Client, path: str) -> None:
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
def test_a_weak_token_is_refused_and_not_shown(token: str) -> None:
    with pytest.raises(ConfigError, match="secrets") as error:
        read_token(None, {"LEAPTS_TOKEN": token})
    assert not token or token not in str(error.value)


def test_a_missing_token_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nowhere"):
        read_token(tmp_path / "nowhere", {})


@pytest.mark.parametrize("name", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "", "localhost@evil"])
def test_a_loopback_server_refuses_other_host_names(own: httpx.Client, name: str) -> None:
    for path in ("/", "/v1/models", "/healthz"):
        answer = own.get(path, headers={"Host": name})
        assert answer.status_code == 421
        assert "127.0.0.1" in answer.json()["hint"]


@pytest.mark.parametrize("name", ["127.0.0.1", "127.0.0.1:8080", "localhost:1", "LOCALHOST", "[::1]", "[::1]:8080"])
def test_a_loopback_server_accepts_its_own_host_names(own: httpx.Client, name: str) -> None:
    assert own.get("/v1/models", headers={"Host": name}).status_code == 200


@pytest.fixture(scope="module")
def own(registry: ModelRegistry) -> Iterator[httpx.Client]:
    with client_of(registry, hosts=hosts_of("127.0.0.1")) as client:
        yield client


def test_a_public_server_accepts_any_host_name() -> None:
    assert hosts_of("0.0.0.0") is None


@pytest.mark.parametrize(
    ("host", "is_own"), [("127.0.0.1", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("::", False)]
)
def test_loopback_addresses_are_recognized(host: str, is_own: bool) -> None:
    assert is_loopback(host) is is_own
