"""The application: addresses and what is behind them."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.routing import Route

from leapts import __version__
from leapts.serve import description
from leapts.serve.batching import Batcher
from leapts.serve.guard import Guard, Send, send_bytes
from leapts.serve.intake import NOBODY_THERE, Disconnected, Intake, Receive, Scope
from leapts.serve.limits import Limits
from leapts.serve.metrics import Gauge, Metrics
from leapts.serve.models import Shelf
from leapts.serve.problems import BAD_DATA, MEDIA_TYPE, Problem, by_status, too_slow, unexpected
from leapts.serve.tables import add_tables
from leapts.serve.web import READING, add_pages
from leapts.serve.wire import ModelsOut, answer, decode, described, encode
from leapts.wording import printable

JSON = "application/json"
FORECAST = "/v1/forecast"
_OPEN = frozenset({"/", "/docs", "/openapi.json", "/healthz", "/readyz"})


def create_app(
    shelf: Shelf,
    *,
    limits: Limits | None = None,
    token: str | None = None,
    hosts: frozenset[str] | None = None,
    reload_every: float = 1.0,
    tell: Callable[[str], None] | None = None,
) -> Guard:
    """The server's application.

    Args:
        shelf: The models.
        limits: What is refused beyond.
        token: What callers have to show; none: anyone may call.
        hosts: The names the server answers to; None: any.
        reload_every: Seconds between looks at the model folders.
        tell: Told, in one line each, what the server's keeper should know, with whatever callers or folders are called
            escaped, so that nobody can write lines of their own into a log.
    """
    limits = limits or Limits()
    metrics = Metrics()
    batcher = Batcher(limits.seconds, metrics.shared.observe, most_wait=limits.wait)
    intake = Intake(limits)

    def tell_plainly(line: str) -> None:
        if tell is not None:
            # Where nobody reads the log any more, lines are lost, not the service: a broken pipe may come as an exit.
            with suppress(Exception, SystemExit):
                tell(printable(line))

    def on_reload(name: str, outcome: str, line: str) -> None:
        metrics.reloads.add(name, outcome)
        tell_plainly(line)

    @asynccontextmanager
    async def living(app: FastAPI) -> AsyncIterator[None]:
        batcher.start()
        watching = asyncio.create_task(shelf.watch(reload_every, on_reload))
        app.state.ready = True
        yield
        app.state.ready = False
        watching.cancel()
        batcher.stop()
        stop_tables()

    app = FastAPI(title="LeapTS", version=__version__, docs_url=None, redoc_url=None, openapi_url=None, lifespan=living)
    app.state.ready = False
    app.router.redirect_slashes = False
    _add_states(app, shelf, intake, metrics)
    stop_tables = add_tables(app, shelf, intake)
    add_pages(app)
    for error in (HTTPException, RequestValidationError, Problem, Disconnected, Exception):
        app.add_exception_handler(error, _as_problem)
    app.openapi = lambda: description.openapi(limits, needs_token=token is not None)  # type: ignore[method-assign]
    forecasting = Forecasting(shelf, batcher, intake)
    paths = frozenset({FORECAST, *(route.path for route in app.routes if isinstance(route, Route))})

    async def front(scope: Scope, receive: Receive, send: Send) -> None:
        await (forecasting if scope.get("path") == FORECAST else app)(scope, receive, send)

    return Guard(front, metrics=metrics, token=token, paths=paths, open_paths=_OPEN, hosts=hosts, tell=tell_plainly)


class Forecasting:
    """`POST /v1/forecast`.

    It stands beside the framework, not inside: at thousands of requests a second, what a framework does around one
    costs more than the forecast.
    """

    def __init__(self, shelf: Shelf, batcher: Batcher, intake: Intake) -> None:
        self._shelf = shelf
        self._batcher = batcher
        self._intake = intake

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        intake = self._intake
        if scope["method"] != "POST":
            raise by_status(405, None, {"Allow": "POST"})
        intake.require_place("forecast")
        self._batcher.queue.require_room()
        body = await intake.body(scope, receive, JSON)
        with intake.place("forecast"):
            asked = decode(body, self._shelf, intake.limits)
            try:
                forecast = await self._batcher.forecast(asked.served.arrays, asked.histories, asked.record)
            except TimeoutError:
                raise too_slow(intake.limits.seconds) from None
            content = answer(asked, forecast)
        await send_bytes(content, JSON, send)


def _add_states(app: FastAPI, shelf: Shelf, intake: Intake, metrics: Metrics) -> None:
    @app.api_route("/v1/models", methods=READING)
    async def models() -> Response:
        return Response(encode(ModelsOut([described(served) for served in shelf])), media_type=JSON)

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
        in_work = {(kind,): count for kind, count in intake.in_work.items()}
        served = {(one.name, one.version): 1 for one in shelf}
        gauges = (
            Gauge("leapts_requests_in_work", "Requests being worked on.", ("kind",), in_work),
            Gauge("leapts_body_bytes_held", "Bytes of requests being read.", (), {(): intake.held}),
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
