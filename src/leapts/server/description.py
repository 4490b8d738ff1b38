"""What the server offers, as OpenAPI."""

from typing import Any, get_args

from leapts import __version__
from leapts.config import Layout
from leapts.server import problems
from leapts.server.limits import Limits
from leapts.server.problems import MEDIA_TYPE, Kind
from leapts.server.schemas import schemas

Json = dict[str, Any]

_PROBLEM: Json = {
    "type": "object",
    "title": "Problem",
    "description": "What is wrong, as RFC 9457 has it, and the cure.",
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "cure": {"type": "string"},
    },
    "required": ["type", "title", "status", "detail", "cure"],
}
_READING = (problems.TOO_SLOW_TO_READ, problems.TOO_LARGE, problems.WRONG_TYPE, problems.BAD_DATA, problems.BUSY)


def openapi(limits: Limits, *, needs_token: bool) -> Json:
    """The description for programs."""
    security: list[Json] = [{"token": []}] if needs_token else []
    document: Json = {
        "openapi": "3.1.0",
        "info": {
            "title": "LeapTS",
            "version": __version__,
            "description": "Forecasts many series many steps ahead, and shows every leap.",
        },
        "paths": _paths(security),
        "components": {"schemas": {**schemas(limits), "Problem": _PROBLEM}},
    }
    if needs_token:
        document["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    return document


def _paths(security: list[Json]) -> Json:
    guarded: Json = {"security": security} if security else {}
    denied = (problems.UNAUTHORIZED,) if security else ()
    forecast = {
        "summary": "Forecast what follows each history.",
        "requestBody": {"required": True, "content": {"application/json": {"schema": _reference("ForecastIn")}}},
        "responses": {
            "200": _answer("The forecasts.", "application/json", _reference("ForecastOut")),
            **_refusals(problems.BAD_REQUEST, problems.NO_SUCH_MODEL, *_READING, *denied),
        },
    }
    text: Json = {"type": "string"}
    table = {"required": True, "content": {"text/csv": {"schema": text}}}
    refusals = _refusals(problems.BAD_REQUEST, problems.NO_SUCH_MODEL, *_READING, *denied)
    level = {
        "type": "array",
        "maxItems": 20,
        "items": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 100},
    }
    levels = {"name": "level", "in": "query", "description": "An interval to give, in percent.", "schema": level}
    safe = {
        "name": "safe_cells",
        "in": "query",
        "description": "Put an apostrophe before names that a spreadsheet would take for formulas.",
        "schema": {"type": "boolean", "default": False},
    }
    from_csv = {
        "summary": "Forecast what follows each series of a table.",
        "parameters": [*_table_parameters(), levels, safe],
        "requestBody": table,
        "responses": {"200": _answer("The forecast.", "text/csv", text), **refusals},
    }
    report = {
        "summary": "Forecast a table from several cutoffs, and show every leap.",
        "parameters": _table_parameters(),
        "requestBody": table,
        "responses": {"200": _answer("The report, one page that needs nothing else.", "text/html", text), **refusals},
    }
    models = {
        "summary": "The models that are served.",
        "responses": {
            "200": _answer("All of them.", "application/json", _reference("ModelsOut")),
            **_refusals(*denied),
        },
    }
    metrics = {
        "summary": "What the server has done, for Prometheus.",
        "responses": {"200": _answer("Metrics.", "text/plain", text), **_refusals(*denied)},
    }
    status: Json = {"type": "object", "properties": {"status": text}, "required": ["status"]}
    return {
        "/v1/forecast": {"post": {"operationId": "forecast", **forecast, **guarded}},
        "/v1/forecast/csv": {"post": {"operationId": "forecast_csv", **from_csv, **guarded}},
        "/v1/report": {"post": {"operationId": "report", **report, **guarded}},
        "/v1/models": {"get": {"operationId": "models", **models, **guarded}},
        "/metrics": {"get": {"operationId": "metrics", **metrics, **guarded}},
        "/healthz": {
            "get": {
                "operationId": "healthz",
                "summary": "Whether the server is alive.",
                "responses": {"200": _answer("It is.", "application/json", status)},
            }
        },
        "/readyz": {
            "get": {
                "operationId": "readyz",
                "summary": "Whether the server takes requests.",
                "responses": {
                    "200": _answer("It does.", "application/json", status),
                    "503": _answer("Not yet, or no more.", "application/json", status),
                },
            }
        },
    }


def _table_parameters() -> list[Json]:
    meanings = {
        "model": "Which model; may be left out where there is only one.",
        "id_col": "The column of series names. [as in the fit]",
        "time_col": "The column of timestamps. [as in the fit]",
        "target_col": "The column of values. [as in the fit]",
    }
    parameters: list[Json] = [
        {"name": name, "in": "query", "description": meaning, "schema": {"type": "string", "maxLength": 1000}}
        for name, meaning in meanings.items()
    ]
    layouts: Json = {"type": "string", "enum": list(get_args(Layout)), "default": "auto"}
    meaning = "One row for each value (long), or one column for each series (wide)."
    return [*parameters, {"name": "layout", "in": "query", "description": meaning, "schema": layouts}]


def _reference(name: str) -> Json:
    return {"$ref": f"#/components/schemas/{name}"}


def _answer(about: str, media_type: str, schema: Json) -> Json:
    return {"description": about, "content": {media_type: {"schema": schema}}}


def _refusals(*kinds: Kind) -> Json:
    found = {str(kind.status): _answer(f"{kind.title}.", MEDIA_TYPE, _reference("Problem")) for kind in kinds}
    if "503" in found:
        found["503"]["headers"] = {"Retry-After": {"schema": {"type": "integer"}}}
    return found
