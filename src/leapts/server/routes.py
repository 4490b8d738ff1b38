"""Endpoints of the API."""

import asyncio
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST

from leapts.data.frames import csv_bytes
from leapts.report import collect, report_html
from leapts.server import problems
from leapts.server.admission import Admission
from leapts.server.batching import Batcher
from leapts.server.limits import Limits
from leapts.server.metrics import Metrics
from leapts.server.model import ServedModel, check_size
from leapts.server.problems import Kind, too_slow
from leapts.server.registry import ModelRegistry
from leapts.server.request_body import BodyReader, parse_forecast
from leapts.server.schemas import ForecastOut, ForecastTableIn, ModelsOut, StatusOut, TableIn
from leapts.server.tables import TableWorker, read_table

_MAX_SERIES_SHOWN = 200  # in a report


@dataclass(frozen=True, kw_only=True)
class Services:
    """Objects that the endpoints share, as `app.state.services`."""

    models: ModelRegistry
    limits: Limits
    admission: Admission
    bodies: BodyReader
    metrics: Metrics
    batcher: Batcher
    tables: TableWorker


class _CSVResponse(Response):
    media_type = "text/csv"


def _refusals(*kinds: Kind) -> dict[int | str, dict[str, Any]]:
    """Describe error responses."""
    content = {problems.MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    found: dict[int | str, dict[str, Any]] = {
        kind.status: {"description": f"{kind.title}.", "content": content} for kind in kinds
    }
    if 503 in found:
        found[503]["headers"] = {"Retry-After": {"schema": {"type": "integer"}}}
    return found


def _takes(media_type: str, schema: dict[str, str]) -> dict[str, Any]:
    """Describe the request body."""
    return {"requestBody": {"required": True, "content": {media_type: {"schema": schema}}}}


_REFUSALS = _refusals(
    problems.BAD_REQUEST,
    problems.NO_SUCH_MODEL,
    problems.TOO_SLOW_TO_READ,
    problems.TOO_LARGE,
    problems.WRONG_TYPE,
    problems.BAD_DATA,
    problems.BUSY,
)
_DENIED = _refusals(problems.UNAUTHORIZED)
JSON, CSV = "application/json", "text/csv"

forecasting = APIRouter(responses={**_REFUSALS, **_DENIED})
protected = APIRouter(responses=_DENIED)
probes = APIRouter()


@forecasting.post(
    "/v1/forecast",
    response_model=ForecastOut,
    openapi_extra=_takes(JSON, {"$ref": "#/components/schemas/ForecastIn"}),
)
async def forecast(request: Request) -> Response:
    """Forecast each history."""
    services: Services = request.app.state.services
    services.admission.check("forecast")  # before the body is received
    asked = parse_forecast(await services.bodies.receive(request, JSON), services.limits)
    model = services.models.find(asked.model)
    checked = model.check(asked, services.limits)
    try:
        async with asyncio.timeout(services.limits.seconds):
            made = await services.batcher.forecast(model, checked)
    except TimeoutError:
        raise too_slow(services.limits.seconds) from None
    return Response(model.respond(checked, made).model_dump_json(exclude_none=True), media_type=JSON)


@forecasting.post("/v1/forecast/csv", response_class=_CSVResponse, openapi_extra=_takes(CSV, {"type": "string"}))
async def forecast_csv(query: Annotated[ForecastTableIn, Query()], request: Request) -> Response:
    """Forecast each series of a CSV table."""
    services: Services = request.app.state.services
    model, table = await _model_and_table(request, query)
    level = [int(one) if one.is_integer() else one for one in query.level] or None

    def work() -> bytes:
        panel = read_table(table, model, query, services.limits)
        check_size(query, len(panel) * model.predictor.config.h, services.limits)
        frame = model.estimator.predict(
            panel.in_frames_of("pyarrow"),
            level=level,
            quantiles=query.quantiles or None,
            n_samples=query.samples,
            random_seed=query.random_seed,
        )
        return csv_bytes(frame, escape_formulas=query.escape_formulas)

    return _CSVResponse(await services.tables.run(work), headers=_attachment("forecast.csv"))


@forecasting.post("/v1/report", response_class=HTMLResponse, openapi_extra=_takes(CSV, {"type": "string"}))
async def report(query: Annotated[TableIn, Query()], request: Request) -> Response:
    """Forecast a CSV table from several cutoffs, and show every leap on a page."""
    services: Services = request.app.state.services
    model, table = await _model_and_table(request, query)

    def work() -> str:
        panel = read_table(table, model, query, services.limits)
        return report_html(collect(model.estimator, panel, max_series=_MAX_SERIES_SHOWN), title="LeapTS forecast")

    # Opened from this server, the page may run its script and reach nothing else.
    headers = {**_attachment("report.html"), "Content-Security-Policy": "sandbox allow-scripts"}
    return HTMLResponse(await services.tables.run(work), headers=headers)


@protected.get("/v1/models")
async def models(request: Request) -> ModelsOut:
    """List the served models."""
    return ModelsOut(models=[model.describe() for model in request.app.state.services.models])


@protected.get("/metrics", response_class=PlainTextResponse)
async def metrics(request: Request) -> Response:
    """Return metrics for Prometheus."""
    return PlainTextResponse(request.app.state.services.metrics.text(), media_type=CONTENT_TYPE_LATEST)


@probes.get("/healthz")
async def healthz() -> StatusOut:
    """Tell whether the server is alive."""
    return StatusOut(status="alive")


@probes.get("/readyz", responses={503: {"model": StatusOut, "description": "The server is starting or stopping."}})
async def readyz(request: Request) -> Response:
    """Tell whether the server accepts requests."""
    is_ready = request.app.state.is_ready
    return JSONResponse({"status": "ready" if is_ready else "starting"}, 200 if is_ready else 503)


async def _model_and_table(request: Request, query: TableIn) -> tuple[ServedModel, bytes]:
    services: Services = request.app.state.services
    model = services.models.find(query.model)
    services.admission.check("table")  # before the body is received
    return model, await services.bodies.receive(request, CSV)


def _attachment(file: str) -> dict[str, str]:
    return {"Content-Disposition": f'attachment; filename="{file}"'}
