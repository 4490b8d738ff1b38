"""The application: addresses and what is behind them."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.routing import Route

from leapts import __version__
from leapts.messages import printable
from leapts.server import description
from leapts.server.batching import Batcher
from leapts.server.limits import Limits
from leapts.server.metrics import Gauge, Metrics
from leapts.server.middleware import Send, ServerMiddleware, send_bytes
from leapts.server.pages import READING, add_pages
from leapts.server.problems import BAD_DATA, MEDIA_TYPE, Problem, by_status, too_slow, unexpected
from leapts.server.registry import ModelRegistry
from leapts.server.request_body import NOBODY_THERE, BodyReader, Disconnected, Receive, Scope
from leapts.server.schemas import ModelsOut, answer, decode, described, encode
from leapts.server.tables import add_tables

JSON = "application/json"
FORECAST = "/v1/forecast"
_OPEN = frozenset({"/", "/docs", "/openapi.json", "/healthz", "/readyz"})


def create_app(
    registry: ModelRegistry,
    *,
    limits: Limits | None = None,
    token: str | None = None,
    hosts: frozenset[str] | None = None,
    reload_every: float = 1.0,
    log: Callable[[str], None] | None = None,
) -> ServerMiddleware:
    """The server's application.

    Args:
        registry: The models.
        limits: What is refused beyond.
        token: What callers have to show; none: anyone may call.
        hosts: The names the server answers to; None: any.
        reload_every: Seconds between looks at the model folders.
        log: Called with each line for the operator; control characters in names are escaped.
    """
    limits = limits or Limits()
    metrics = Metrics()
    batcher = Batcher(limits.seconds, metrics.shared.observe, most_wait=limits.wait)
    reader = BodyReader(limits)

    def log_line(line: str) -> None:
        if log is not None:
            # Where nobody reads the log any more, lines are lost, not the service: a broken pipe may come as an exit.
            with suppress(Exception, SystemExit):
                log(printable(line))

    def on_reload(name: str, outcome: str, line: str) -> None:
        metrics.reloads.add(name, outcome)
        log_line(line)

    @asynccontextmanager
    async def living(app: FastAPI) -> AsyncIterator[None]:
        batcher.start()
        watching = asyncio.create_task(registry.watch(reload_every, on_reload))
        app.state.ready = True
        yield
        app.state.ready = False
        watching.cancel()
        batcher.stop()
        stop_tables()

    app = FastAPI(title="LeapTS", version=__version__, docs_url=None, redoc_url=None, openapi_url=None, lifespan=living)
    app.state.ready = False
    app.router.redirect_slashes = False
    _add_states(app, registry, reader, metrics)
    stop_tables = add_tables(app, registry, reader)
    add_pages(app)
    for error in (HTTPException, RequestValidationError, Problem, Disconnected, Exception):
        app.add_exception_handler(error, _as_problem)
    app.openapi = lambda: description.openapi(limits, needs_token=token is not None)  # type: ignore[method-assign]
    forecasting = Forecasting(registry, batcher, reader)
    paths = frozenset({FORECAST, *(route.path for route in app.routes if isinstance(route, Route))})

    async def front(scope: Scope, receive: Receive, send: Send) -> None:
        await (forecasting if scope.get("path") == FORECAST else app)(scope, receive, send)

    access = {"token": token, "paths": paths, "open_paths": _OPEN, "hosts": hosts}
    return ServerMiddleware(front, metrics=metrics, log=log_line, **access)  # type: ignore[arg-type]


class Forecasting:
    """`POST /v1/forecast`.

    It stands beside the framework, not inside: at thousands of requests a second, what a framework does around one
    costs more than the forecast.
    """

    def __init__(self, registry: ModelRegistry, batcher: Batcher, reader: BodyReader) -> None:
        self._registry = registry
        self._batcher = batcher
        self._reader = reader

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        reader = self._reader
        if scope["method"] != "POST":
            raise by_status(405, None, {"Allow": "POST"})
        reader.require_place("forecast")
        self._batcher.queue.require_room()
        body = await reader.body(scope, receive, JSON)
        with reader.place("forecast"):
            asked = decode(body, self._registry, reader.limits)
            try:
                forecast = await self._batcher.forecast(asked.served.arrays, asked.histories, asked.record)
            except TimeoutError:
                raise too_slow(reader.limits.seconds) from None
            content = answer(asked, forecast)
        await send_bytes(content, JSON, send)


def _add_states(app: FastAPI, registry: ModelRegistry, reader: BodyReader, metrics: Metrics) -> None:
    @app.api_route("/v1/models", methods=READING)
    async def models() -> Response:
        return Response(encode(ModelsOut([described(served) for served in registry])), media_type=JSON)

    @app.api_route("/healthz", methods=READING)
    async def healthz() -> Response:
        return Response(b'{"status":"alive"}', media_type=JSON)

    @app.api_route("/readyz", methods=READING)
    async def readyz() -> Response:
        ready = bool(app.state.ready)
        return Response(
            b'{"status":"ready"}' if ready else b'{"status":"starting"}', 200 if ready else 503, media_type=JSON
        )

    @app.api_route("/metrics", methods=READING)
    async def prometheus() -> Response:
        in_work = {(kind,): count for kind, count in reader.in_work.items()}
        served = {(one.name, one.version): 1 for one in registry}
        gauges = (
            Gauge("leapts_requests_in_work", "Requests being worked on.", ("kind",), in_work),
            Gauge("leapts_body_bytes_held", "Bytes of requests being read.", (), {(): reader.held}),
            Gauge("leapts_model_info", "Models being served.", ("model", "version"), served),
        )
        return Response(metrics.text(gauges), media_type="text/plain; version=0.0.4; charset=utf-8")


async def _as_problem(_: Request, error: Exception) -> Response:
    """What goes wrong inside the framework; the guard answers for what does outside."""
    match error:
        case Disconnected():
            return Response(status_code=NOBODY_THERE)
        case Problem():
            problem = error
        case RequestValidationError():
            first = error.errors()[0]
            place = ".".join(str(part) for part in first["loc"][1:])
            problem = Problem(BAD_DATA, f"{place}: {first['msg']}", "see /docs for what is expected")
        case HTTPException():
            problem = by_status(error.status_code, str(error.detail), error.headers)
        case _:
            problem = unexpected()
    return Response(problem.body(), problem.kind.status, headers=problem.headers, media_type=MEDIA_TYPE)
