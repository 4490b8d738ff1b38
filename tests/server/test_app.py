"""The application from its beginning to its end, called as a server calls it."""

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, TypeVar, cast

import httpx
import pytest

from leapts.server import Limits, app
from leapts.server.app import Forecasting, create_app
from leapts.server.batching import Batcher
from leapts.server.problems import Problem
from leapts.server.registry import ModelRegistry, Served
from leapts.server.request_body import BodyReader

T = TypeVar("T")


class NoModels(ModelRegistry):
    """A registry that notes how it is watched."""

    def __init__(self) -> None:
        self.every, self.is_watched = 0.0, False

    def __iter__(self) -> Iterator[Served]:
        return iter([cast("Served", SimpleNamespace(name="m", version="v1"))])

    def find(self, name: str | None) -> Served:
        return cast("Served", name)

    async def watch(self, every: float, log: Callable[[str, str, str], None]) -> None:
        self.every, self.is_watched = every, True
        log("m", "loaded", "red \x1b[31m")
        try:
            await asyncio.Event().wait()
        finally:
            self.is_watched = False


@asynccontextmanager
async def _alive(guard: Any) -> AsyncIterator[None]:
    asked: asyncio.Queue[Any] = asyncio.Queue()
    told: asyncio.Queue[Any] = asyncio.Queue()
    life = asyncio.create_task(guard({"type": "lifespan", "asgi": {"version": "3.0"}}, asked.get, told.put))
    for step in ("startup", "shutdown"):
        await asked.put({"type": f"lifespan.{step}"})
        assert (await asyncio.wait_for(told.get(), 5))["type"] == f"lifespan.{step}.complete"
        if step == "startup":
            await asyncio.sleep(0)
            yield
    await life


def _client(guard: Any) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(guard), base_url="http://here")


def _called(work: Callable[[httpx.AsyncClient], Awaitable[T]], **options: Any) -> T:
    guard = create_app(NoModels(), **options)

    async def main() -> T:
        async with _alive(guard), _client(guard) as client:
            return await work(client)

    return asyncio.run(main())


def test_it_is_ready_while_it_lives_and_leaves_nothing_running() -> None:
    registry = NoModels()
    guard = create_app(registry)
    before = set(threading.enumerate())

    async def readiness(client: httpx.AsyncClient) -> tuple[int, Any]:
        answer = await client.get("/readyz")
        return answer.status_code, answer.json()

    async def main() -> None:
        async with _client(guard) as client:
            assert await readiness(client) == (503, {"status": "starting"})
            async with _alive(guard):
                assert await readiness(client) == (200, {"status": "ready"})
                assert (registry.every, registry.is_watched) == (1.0, True)
                assert "leapts-forecasts" in {thread.name for thread in set(threading.enumerate()) - before}
            await asyncio.sleep(0)
            assert not registry.is_watched
            assert await readiness(client) == (503, {"status": "starting"})

    asyncio.run(main())
    assert "leapts-forecasts" not in {thread.name for thread in set(threading.enumerate()) - before}


def test_a_replaced_model_is_counted_and_told_of_on_one_plain_line() -> None:
    told: list[str] = []

    async def work(client: httpx.AsyncClient) -> list[str]:
        return (await client.get("/metrics")).text.splitlines()

    lines = _called(work, log=told.append)
    assert 'leapts_model_reloads_total{model="m",outcome="loaded"} 1' in lines
    assert 'leapts_model_info{model="m",version="v1"} 1' in lines
    assert told == ["red \\x1b[31m"]
    assert _called(work) == lines


@pytest.mark.parametrize("token", [None, "t" * 20])
def test_the_description_tells_of_a_token_where_there_is_one(token: str | None) -> None:
    async def work(client: httpx.AsyncClient) -> Any:
        return (await client.get("/openapi.json")).json()

    assert ("securitySchemes" in _called(work, token=token)["components"]) == (token is not None)


def test_addresses_are_counted_by_their_names_and_lead_nowhere_else() -> None:
    async def work(client: httpx.AsyncClient) -> str:
        for path, status in (("/healthz", 200), ("/healthz/", 404), ("/docs", 200), ("/", 200)):
            answer = await client.get(path)
            assert answer.status_code == status
            if path == "/healthz":
                assert answer.json() == {"status": "alive"}
        wrong = await client.get("/v1/forecast")
        assert (wrong.status_code, wrong.headers["allow"]) == (405, "POST")
        return (await client.get("/metrics")).text

    text = _called(work)
    for path, status in (("/healthz", 200), ("/docs", 200), ("/", 200), ("other", 404), ("/v1/forecast", 405)):
        assert f'leapts_requests_total{{path="{path}",status="{status}"}} 1' in text


def test_what_goes_wrong_in_the_framework_is_a_problem_like_any_other() -> None:
    async def work(client: httpx.AsyncClient) -> list[tuple[int, str]]:
        answers = [
            await client.get("/nowhere"),
            await client.delete("/healthz"),
            await client.post("/v1/report?layout=tall", headers={"Content-Type": "text/csv"}),
            await client.post("/v1/forecast/csv?level=80&level=0", headers={"Content-Type": "text/csv"}),
            await client.post("/v1/report", headers={"Content-Type": "text/plain"}),
        ]
        assert {answer.headers["content-type"] for answer in answers} == {"application/problem+json"}
        assert set(answers[1].headers["allow"].split(", ")) == {"GET", "HEAD"}
        return [(answer.status_code, answer.json()["detail"].partition(": ")[0]) for answer in answers]

    assert _called(work) == [
        (404, "Not Found"),
        (405, "Method Not Allowed"),
        (422, "layout"),
        (422, "level.1"),
        (415, "the content is text/plain, and text/csv is wanted"),
    ]


def test_who_leaves_while_a_table_is_read_is_counted() -> None:
    guard = create_app(NoModels())
    headers = [(b"content-type", b"text/csv")]
    scope = {"type": "http", "method": "POST", "path": "/v1/report", "query_string": b"", "headers": headers}

    async def gone() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    async def nobody(_: Any) -> None:
        pass

    async def main() -> str:
        async with _alive(guard), _client(guard) as client:
            await guard(scope, gone, nobody)
            return (await client.get("/metrics")).text

    assert 'leapts_requests_total{path="/v1/report",status="499"} 1' in asyncio.run(main())


class Quick(Batcher):
    """Answers at once, or not in time."""

    def __init__(self, reader: BodyReader, *, is_late: bool = False) -> None:
        super().__init__(1.0, most_wait=1.0)
        self.reader, self.is_late, self.in_work = reader, is_late, 0

    async def forecast(self, *_: Any) -> Any:
        self.in_work = self.reader.in_work["forecast"]
        if self.is_late:
            raise TimeoutError
        return "made"


def _forecast(monkeypatch: pytest.MonkeyPatch, batcher: Quick) -> list[Any]:
    """Send a request through `Forecasting`, whose reading and writing are left out; gives what was sent back."""
    asked = SimpleNamespace(served=SimpleNamespace(arrays=None), histories=None, record="nothing")
    monkeypatch.setattr(app, "decode", lambda body, *_: asked if body == b"{}" else None)
    monkeypatch.setattr(
        app, "answer", lambda found, forecast: b"answer" if (found, forecast) == (asked, "made") else b""
    )
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"{}"}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"method": "POST", "headers": [(b"content-type", b"application/json")]}
    asyncio.run(Forecasting(NoModels(), batcher, batcher.reader)(scope, receive, send))
    return sent


def test_a_forecast_takes_a_place_and_gives_it_back(monkeypatch: pytest.MonkeyPatch) -> None:
    batcher = Quick(BodyReader(Limits()))
    start, body = _forecast(monkeypatch, batcher)
    assert (start["status"], body["body"]) == (200, b"answer")
    assert (batcher.in_work, batcher.reader.in_work["forecast"]) == (1, 0)
    late = Quick(BodyReader(Limits(seconds=2.0)), is_late=True)
    with pytest.raises(Problem, match="the answer took longer than 2 s"):
        _forecast(monkeypatch, late)
    assert late.reader.in_work["forecast"] == 0


@pytest.mark.parametrize("full", ["places", "queue"])
def test_who_would_be_refused_is_refused_before_anything_is_read(full: str) -> None:
    reader = BodyReader(Limits(concurrency=1))
    batcher = Quick(reader)
    if full == "places":
        reader.in_work["forecast"] = 1
    else:
        batcher.queue.ahead = 5.0

    async def receive() -> dict[str, Any]:
        raise AssertionError("nothing is to be read")

    forecasting = Forecasting(NoModels(), batcher, reader)
    scope = {"method": "POST", "headers": [(b"content-type", b"application/json")]}
    with pytest.raises(Problem) as refused:
        asyncio.run(forecasting(scope, receive, cast("Any", None)))
    assert refused.value.kind.name == "busy"
