"""The page that describes the server leaves nothing of the description out, and lets nothing of it act."""

from typing import Any

from leapts.server import Limits
from leapts.server.description import openapi
from leapts.server.docs import docs_html
from leapts.server.problems import KINDS


def _document(**parts: Any) -> dict[str, Any]:
    return {"info": {"description": "About."}, "paths": {}, "components": {"schemas": {}}, **parts}


def _schema(**properties: Any) -> dict[str, Any]:
    return _document(components={"schemas": {"Thing": {"properties": properties, "required": ["own"]}}})


def test_every_address_and_every_kind_of_problem_is_there() -> None:
    found = docs_html(openapi(Limits(), needs_token=True))
    for name in ("POST /v1/forecast", "POST /v1/report", "GET /v1/models", "GET /metrics", "GET /healthz"):
        assert f"<h2><code>{name}</code></h2>" in found
    assert '<h2 id="ForecastIn">ForecastIn</h2>' in found
    for kind in KINDS:
        assert f'<p id="{kind.name}"><code>{kind.status} {kind.name}</code> {kind.title}.</p>' in found
    assert found.startswith("<p>Forecasts many series")
    assert found.index("<h2>Problems</h2>") > found.index("ForecastIn")


def test_an_operation_tells_what_it_takes_and_answers() -> None:
    content = {"content": {"text/csv": {"schema": {"type": "string"}}}}
    operation = {
        "summary": "Do <it>.",
        "parameters": [
            {"name": "level", "schema": {"type": "array", "items": {"type": "number"}}, "description": "How."}
        ],
        "requestBody": content,
        "responses": {"200": {"description": "Done.", **content}},
    }
    found = docs_html(_document(paths={"/do": {"post": operation, "get": {"summary": "Look.", "responses": {}}}}))
    assert "<h2><code>POST /do</code></h2><p>Do &lt;it&gt;.</p>" in found
    head = "<tr><th>parameter</th><th>type</th><th>meaning</th></tr>"
    table = '<div class="scroll"><table>{}</table></div>'
    assert table.format(f"{head}<tr><td>level</td><td>list of number</td><td>How.</td></tr>") in found
    assert found.count("<p>Takes text/csv (string).</p>") == 1
    head = "<tr><th>status</th><th>answer</th><th>meaning</th></tr>"
    assert table.format(f"{head}<tr><td>200</td><td>text/csv (string)</td><td>Done.</td></tr>") in found
    assert "<h2><code>GET /do</code></h2><p>Look.</p>" in found
    assert found.count("<table>") == 2


def test_the_type_of_a_field_is_told_in_words() -> None:
    text, number = {"type": "string"}, {"type": "number"}
    types: dict[str, tuple[dict[str, Any], str]] = {
        "own": ({"$ref": "#/components/schemas/Other"}, "Other"),
        "either": ({"anyOf": [text, number, text]}, "string or number"),
        "one_of": ({"enum": ["long", 3]}, "long or 3"),
        "list": ({"type": "array", "items": number}, "list of number"),
        "by_name": ({"type": "object", "additionalProperties": number}, "object of number"),
        "closed": ({"type": "object", "additionalProperties": False}, "object"),
        "any": ({}, "anything"),
    }
    found = docs_html(_schema(**{name: schema for name, (schema, _) in types.items()}))
    for name, (_, words) in types.items():
        shown = name if name == "own" else f"{name} (optional)"
        assert f"<td>{shown}</td><td>{words}</td>" in found


def test_words_are_told_and_never_act() -> None:
    found = docs_html(_schema(own={"type": "string", "description": "<script>"}))
    assert "<td>&lt;script&gt;</td>" in found
    assert "<script>" not in found
