"""The application from start to stop, called as a server calls it."""

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, TypeVar, cast

import httpx
import pytest

from leapts import __version__
from leapts.server import Limits
from leapts.server.app import create_app
from leapts.server.model import ServedModel
from leapts.server.registry import ModelRegistry

T = TypeVar("T")
GUARDED = ("/v1/forecast", "/v1/forecast/csv", "/v1/report", "/v1/models", "/metrics")
OPEN = ("/healthz", "/readyz")


class NoModels(ModelRegistry):
    """A registry that records how it is watched."""

    def __init__(self) -> None:
        self.every, self.is_watched = 0.0, False

    def __iter__(self) -> Iterator[ServedModel]:
        return iter([cast("ServedModel", SimpleNamespace(name="m", version="v1"))])

    def find(self, name: str | None) -> ServedModel:
        return cast("ServedModel", name)

    async def watch(self, every: float, log: Callable[[str, str, str], None]) -> None:
        self.every, self.is_watched = every, True
        log("m", "loaded", "red \x1b[31m")
        try:
            await asyncio.Event().wait()
        finally:
            self.is_watched = False


@asynccontextmanager
async def _alive(app: Any) -> AsyncIterator[None]:
    asked: asyncio.Queue[Any] = asyncio.Queue()
    told: asyncio.Queue[Any] = asyncio.Queue()
    life = asyncio.create_task(app({"type": "lifespan", "asgi": {"version": "3.0"}}, asked.get, told.put))
    for step in ("startup", "shutdown"):
        await asked.put({"type": f"lifespan.{step}"})
        assert (await asyncio.wait_for(told.get(), 5))["type"] == f"lifespan.{step}.complete"
        if step == "startup":
            await asyncio.sleep(0)
            yield
    await life


def _client(app: Any) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://here")


def _called(work: Callable[[httpx.AsyncClient], Awaitable[T]], **options: Any) -> T:
    app = create_app(NoModels(), **options)

    async def main() -> T:
        async with _alive(app), _client(app) as client:
            return await work(client)

    return asyncio.run(main())


def _document(**options: Any) -> Any:
    async def work(client: httpx.AsyncClient) -> Any:
        return (await client.get("/openapi.json")).json()

    return _called(work, **options)


def test_the_server_is_ready_while_it_lives_and_leaves_no_thread() -> None:
    models = NoModels()
    app = create_app(models)

    async def readiness(client: httpx.AsyncClient) -> tuple[int, Any]:
        answer = await client.get("/readyz")
        return answer.status_code, answer.json()

    async def main() -> None:
        async with _client(app) as client:
            assert await readiness(client) == (503, {"status": "starting"})
            async with _alive(app):
                assert await readiness(client) == (200, {"status": "ready"})
                assert (models.every, models.is_watched) == (1.0, True)
            await asyncio.sleep(0)
            assert not models.is_watched
            assert await readiness(client) == (503, {"status": "starting"})

    before = set(threading.enumerate())
    asyncio.run(main())
    assert set(threading.enumerate()) <= before


def test_a_replaced_model_is_counted_and_logged_on_one_printable_line() -> None:
    logged: list[str] = []

    async def work(client: httpx.AsyncClient) -> list[str]:
        return (await client.get("/metrics")).text.splitlines()

    lines = _called(work, log=logged.append)
    assert 'leapts_model_reloads_total{model="m",outcome="loaded"} 1.0' in lines
    assert 'leapts_model_info{model="m",version="v1"} 1.0' in lines
    assert logged == ["red \\x1b[31m"]
    assert _called(work) == lines


def test_paths_are_counted_by_name_and_lead_nowhere_else() -> None:
    async def work(client: httpx.AsyncClient) -> str:
        for path, status in (("/healthz", 200), ("/healthz/", 404), ("/docs", 200), ("/", 200)):
            assert (await client.get(path)).status_code == status
        wrong = await client.get("/v1/forecast")
        assert (wrong.status_code, wrong.headers["allow"]) == (405, "POST")
        return (await client.get("/metrics")).text

    text = _called(work)
    for path, status in (("/healthz", 200), ("/docs", 200), ("/", 200), ("other", 404), ("/v1/forecast", 405)):
        assert f'leapts_requests_total{{path="{path}",status="{status}"}} 1.0' in text


def test_errors_of_the_framework_are_problem_documents() -> None:
    async def work(client: httpx.AsyncClient) -> list[tuple[int, str]]:
        answers = [
            await client.get("/nowhere"),
            await client.delete("/healthz"),
            await client.post("/v1/report?layout=tall", headers={"Content-Type": "text/csv"}),
            await client.post("/v1/forecast/csv?level=80&level=0", headers={"Content-Type": "text/csv"}),
            await client.post("/v1/report", headers={"Content-Type": "text/plain"}),
        ]
        assert {answer.headers["content-type"] for answer in answers} == {"application/problem+json"}
        assert answers[1].headers["allow"] == "GET"
        return [(answer.status_code, answer.json()["detail"].partition("=")[0]) for answer in answers]

    assert _called(work) == [
        (404, "Not Found"),
        (405, "Method Not Allowed"),
        (422, "layout"),
        (422, "level[1]"),
        (415, "the Content-Type is 'text/plain'"),
    ]


def test_a_client_that_leaves_is_counted() -> None:
    app = create_app(NoModels())
    headers = [(b"content-type", b"text/csv")]
    scope = {"type": "http", "method": "POST", "path": "/v1/report", "query_string": b"", "headers": headers}

    async def gone() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    async def nobody(_: Any) -> None:
        pass

    async def main() -> str:
        async with _alive(app), _client(app) as client:
            await app(scope, gone, nobody)
            return (await client.get("/metrics")).text

    assert 'leapts_requests_total{path="/v1/report",status="499"} 1.0' in asyncio.run(main())


@pytest.mark.parametrize("kind", ["forecast", "table"])
def test_a_request_that_will_be_refused_is_not_received(kind: str) -> None:
    app = create_app(NoModels())
    app.state.services.admission.in_progress[kind] = 1000
    path, media_type = {
        "forecast": ("/v1/forecast", b"application/json"),
        "table": ("/v1/report", b"text/csv"),
    }[kind]
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        raise AssertionError("the body must not be received")

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": path,
        "query_string": b"",
        "headers": [(b"content-type", media_type)],
    }
    asyncio.run(app(scope, receive, send))
    assert sent[0]["status"] == 503


@pytest.mark.parametrize("token", [None, "t" * 20])
def test_the_description_requires_a_token_where_the_server_does(token: str | None) -> None:
    document = _document(token=token)
    operations = {path: one for path, methods in document["paths"].items() for one in methods.values()}
    assert set(operations) == {*GUARDED, *OPEN}
    for path, operation in operations.items():
        assert ("security" in operation) == (token is not None and path in GUARDED)
        assert operation["operationId"] == path.removeprefix("/v1").strip("/").replace("/", "_")
    assert ("securitySchemes" in document["components"]) == (token is not None)


def test_the_description_has_every_refusal_and_the_limits_of_this_server() -> None:
    document = _document(limits=Limits(series=7, length=9))
    assert document["info"]["version"] == __version__
    for path in GUARDED[:3]:
        operation = document["paths"][path]["post"]
        assert operation["requestBody"]["required"] is True
        answers = operation["responses"]
        assert set(answers) == {"200", "400", "401", "404", "408", "413", "415", "422", "503"}
        for status in set(answers) - {"200"}:
            problem = {"schema": {"$ref": "#/components/schemas/Problem"}}
            assert answers[status]["content"] == {"application/problem+json": problem}
            assert ("Retry-After" in answers[status].get("headers", {})) == (status == "503")
    schemas = document["components"]["schemas"]
    assert schemas["ForecastIn"]["properties"]["series"]["maxItems"] == 7
    assert schemas["SeriesIn"]["properties"]["values"]["maxItems"] == 9
    assert set(schemas["Problem"]["properties"]) == {"type", "title", "status", "detail", "hint"}
    assert not any("Validation" in name for name in schemas)


def test_the_description_has_the_parameters_of_tables() -> None:
    paths = _document()["paths"]
    by_name = {one["name"]: one for one in paths["/v1/forecast/csv"]["post"]["parameters"]}
    assert list(by_name) == [
        "model",
        "id_col",
        "time_col",
        "target_col",
        "layout",
        "level",
        "quantiles",
        "samples",
        "random_seed",
        "escape_formulas",
    ]
    assert [one["name"] for one in paths["/v1/report"]["post"]["parameters"]] == list(by_name)[:5]
    assert by_name["layout"]["schema"]["enum"] == ["auto", "long", "wide"]
    assert by_name["level"]["schema"]["maxItems"] == 20
    assert all(one["in"] == "query" and one["description"] for one in by_name.values())
