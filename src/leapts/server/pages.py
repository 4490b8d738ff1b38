"""The web pages: a form that forecasts a CSV table, and the description of the API.

Style and scripts are part of each page and allowed by their digests; pages load nothing from other servers.
"""

from collections.abc import Iterator
from html import escape
from importlib.resources import files
from typing import Any

from fastapi import FastAPI
from fastapi.responses import HTMLResponse

from leapts.report.page import digest, filled, viewer_script, viewer_style
from leapts.server.problems import KINDS

_FOLDER = files("leapts.server") / "page"


def add_pages(app: FastAPI) -> None:
    """Add the routes of the pages."""
    style = viewer_style() + _text("serve.css")
    script = _text("serve.js")
    home = filled(_text("home.html"), {"style": style, "script": script})
    # The frame that shows the report inherits the policy of the page.
    home_policy = _policy(
        f"script-src {digest(script)} {digest(viewer_script())}",
        f"style-src {digest(style)} {digest(viewer_style())}",
        "connect-src 'self'",
        "frame-src blob:",
        "img-src data:",
    )
    docs_policy = _policy(f"style-src {digest(style)}", "img-src data:")

    @app.get("/", include_in_schema=False)
    async def page() -> HTMLResponse:
        return HTMLResponse(home, headers=home_policy)

    @app.get("/docs", include_in_schema=False)
    async def docs() -> HTMLResponse:
        body = "\n".join(_docs(app.openapi()))
        return HTMLResponse(filled(_text("docs.html"), {"style": style, "body": body}), headers=docs_policy)


def _text(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")


def _policy(*allowed: str) -> dict[str, str]:
    always = ("default-src 'none'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'")
    return {"Content-Security-Policy": "; ".join((*always, *allowed))}


def _docs(document: dict[str, Any]) -> Iterator[str]:
    """Render an OpenAPI document: operations, schemas and kinds of problems."""
    yield f"<p>{escape(document['info']['description'])}</p>"
    yield '<p>For programs: <a href="/openapi.json">/openapi.json</a>. <a href="/">Forecast a table</a>.</p>'
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield f"<h2><code>{escape(f'{method.upper()} {path}')}</code></h2><p>{escape(operation['description'])}</p>"
            yield _table(
                (one["name"], _type(one["schema"]), one["description"]) for one in operation.get("parameters", ())
            )
            yield f"<p>Request: {escape(_content(operation['requestBody']))}</p>" if "requestBody" in operation else ""
            yield _table((status, _content(one), one["description"]) for status, one in operation["responses"].items())
    for name, schema in document["components"]["schemas"].items():
        yield f'<h2 id="{escape(name)}">{escape(name)}</h2><p>{escape(schema.get("description", ""))}</p>'
        required = schema.get("required", ())
        yield _table(
            (field if field in required else f"{field} (optional)", _type(one), one.get("description", ""))
            for field, one in schema["properties"].items()
        )
    yield "<h2>Problems</h2>"
    for kind in KINDS:
        yield f'<p id="{kind.name}"><code>{kind.status} {kind.name}</code> {escape(kind.title)}.</p>'


def _content(part: dict[str, Any]) -> str:
    return ", ".join(f"{media} ({_type(one.get('schema', {}))})" for media, one in part.get("content", {}).items())


def _type(schema: dict[str, Any]) -> str:
    """Name the type of a JSON schema."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_type(one) for one in schema["anyOf"] if one != {"type": "null"}))
    if "enum" in schema:
        return " or ".join(map(str, schema["enum"]))
    if schema.get("type") == "array":
        return f"list of {_type(schema['items'])}"
    inner = schema.get("additionalProperties")
    return f"object of {_type(inner)}" if isinstance(inner, dict) else str(schema.get("type", "any"))


def _table(rows: Any) -> str:
    lines = ["".join(f"<td>{escape(str(cell))}</td>" for cell in row) for row in rows]
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f'<div class="scroll"><table>{body}</table></div>' if lines else ""
