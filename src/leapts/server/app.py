"""The FastAPI application: services, routes, error format and middleware."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

from fastapi import Depends, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.security import HTTPBearer
from pydantic.json_schema import models_json_schema
from starlette.exceptions import HTTPException

from leapts import __version__
from leapts.messages import printable
from leapts.server import routes
from leapts.server.admission import Admission
from leapts.server.batching import Batcher
from leapts.server.limits import Limits
from leapts.server.metrics import Metrics
from leapts.server.middleware import OPEN_PATHS, ServerMiddleware
from leapts.server.pages import add_pages
from leapts.server.problems import FIELDS, as_problem
from leapts.server.registry import ModelRegistry
from leapts.server.request_body import BodyReader
from leapts.server.schemas import ForecastIn
from leapts.server.tables import TableWorker


def create_app(
    models: ModelRegistry,
    *,
    limits: Limits | None = None,
    token: str | None = None,
    hosts: frozenset[str] | None = None,
    reload_every: float = 1.0,
    log: Callable[[str], None] | None = None,
) -> FastAPI:
    """Create the application.

    Args:
        models: The models to serve.
        limits: Limits on requests.
        token: The token that clients must send; by default none.
        hosts: Host names the server answers to; by default any.
        reload_every: Seconds between checks of the model folders.
        log: Called with each line of the log; control characters are escaped.
    """
    limits = limits or Limits()
    admission, bodies = Admission(limits), BodyReader(limits)
    metrics = Metrics(models, admission, bodies)
    services = routes.Services(
        models=models,
        limits=limits,
        admission=admission,
        bodies=bodies,
        metrics=metrics,
        batcher=Batcher(admission, metrics.batches.observe),
        tables=TableWorker(admission, limits.seconds),
    )

    def log_line(line: str) -> None:
        if log is not None:
            with suppress(Exception, SystemExit):  # a broken pipe costs the line, not the service
                log(printable(line))

    app = _application(services, _lifespan(services, reload_every, log_line), needs_token=token is not None)
    paths = OPEN_PATHS.union(app.openapi()["paths"])
    app.add_middleware(ServerMiddleware, metrics=metrics, paths=paths, token=token, hosts=hosts, log=log_line)
    return app


def _application(services: routes.Services, lifespan: Any, *, needs_token: bool) -> FastAPI:
    app = FastAPI(
        title="LeapTS",
        version=__version__,
        description="Time series forecasting: many series, many steps ahead, with a trace of every leap.",
        docs_url=None,  # its page loads scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,
        generate_unique_id_function=lambda route: route.name,
        lifespan=lifespan,
    )
    app.state.services, app.state.is_ready = services, False
    # The middleware checks the token before a body is received; the dependency only describes it.
    described = [Depends(HTTPBearer(auto_error=False))] if needs_token else []
    app.include_router(routes.forecasting, dependencies=described)
    app.include_router(routes.protected, dependencies=described)
    app.include_router(routes.probes)
    add_pages(app)
    for error in (HTTPException, RequestValidationError):
        app.add_exception_handler(error, _respond)
    generate = app.openapi
    app.openapi = lambda: _described(generate(), services.limits)  # type: ignore[method-assign]
    return app


def _described(document: dict[str, Any], limits: Limits) -> dict[str, Any]:
    """Add the schemas of JSON requests and of problem documents."""
    schemas = document["components"]["schemas"]
    _, requests = models_json_schema([(ForecastIn, "validation")], ref_template="#/components/schemas/{model}")
    schemas.update(requests["$defs"])
    types = {name: {"type": "integer" if name == "status" else "string"} for name in FIELDS}
    about = "What is wrong with a request, and a hint how to correct it (RFC 9457)."
    schemas["Problem"] = {"type": "object", "description": about, "properties": types, "required": list(FIELDS)}
    schemas["ForecastIn"]["properties"]["series"]["maxItems"] = limits.series
    schemas["SeriesIn"]["properties"]["values"]["maxItems"] = limits.length
    return document


def _lifespan(services: routes.Services, reload_every: float, log: Callable[[str], None]) -> Any:
    def on_reload(name: str, outcome: str, line: str) -> None:
        services.metrics.count_reload(name, outcome)
        log(line)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        watching = asyncio.create_task(services.models.watch(reload_every, on_reload))
        app.state.is_ready = True
        yield
        app.state.is_ready = False
        watching.cancel()
        services.batcher.stop()
        services.tables.stop()

    return lifespan


async def _respond(_: Request, error: Exception) -> Response:
    return as_problem(error).response()
