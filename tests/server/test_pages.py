"""The pages contain all they need, may load nothing else, and show hostile text as text."""

import re

import httpx
import pytest

from leapts.report.page import digest, viewer_script, viewer_style
from leapts.server.pages import _docs
from leapts.server.problems import KINDS


def _allowed(answer: httpx.Response) -> dict[str, list[str]]:
    parts = answer.headers["content-security-policy"].split("; ")
    return {name: allowed for name, *allowed in (part.split() for part in parts)}


def test_the_page_runs_its_own_script_and_that_of_the_report_only(client: httpx.Client) -> None:
    answer = client.get("/")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    (style,) = re.findall("<style>(.*?)</style>", answer.text, re.DOTALL)
    (script,) = re.findall("<script>(.*?)</script>", answer.text, re.DOTALL)
    assert _allowed(answer) == {
        "default-src": ["'none'"],
        "base-uri": ["'none'"],
        "form-action": ["'none'"],
        "frame-ancestors": ["'none'"],
        "script-src": [digest(script), digest(viewer_script())],
        "style-src": [digest(style), digest(viewer_style())],
        "connect-src": ["'self'"],
        "frame-src": ["blob:"],
        "img-src": ["data:"],
    }


def test_the_description_runs_no_script(client: httpx.Client) -> None:
    answer = client.get("/docs")
    (style,) = re.findall("<style>(.*?)</style>", answer.text, re.DOTALL)
    assert "script-src" not in _allowed(answer)
    assert _allowed(answer)["style-src"] == [digest(style)]


def test_the_description_has_every_operation_schema_and_problem(client: httpx.Client) -> None:
    page, document = client.get("/docs").text, client.get("/openapi.json").json()
    for path, methods in document["paths"].items():
        for method in methods:
            assert f"<h2><code>{method.upper()} {path}</code></h2>" in page
    for name, schema in document["components"]["schemas"].items():
        assert f'<h2 id="{name}">' in page
        assert all(f"<td>{field}" in page for field in schema["properties"])
    for kind in KINDS:
        assert f'<p id="{kind.name}"><code>{kind.status} {kind.name}</code>' in page


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"$ref": "#/components/schemas/Other"}, "Other"),
        ({"anyOf": [{"type": "string"}, {"type": "number"}, {"type": "null"}]}, "string or number"),
        ({"enum": ["long", 3]}, "long or 3"),
        ({"type": "array", "items": {"type": "number"}}, "list of number"),
        ({"type": "object", "additionalProperties": {"type": "number"}}, "object of number"),
        ({"type": "object", "additionalProperties": False}, "object"),
        ({}, "any"),
    ],
)
def test_types_are_named_in_words(schema: dict[str, object], words: str) -> None:
    fields = {"field": {**schema, "description": "<script>"}}
    document = {"info": {"description": ""}, "paths": {}, "components": {"schemas": {"A": {"properties": fields}}}}
    page = "".join(_docs(document))
    assert f"<td>field (optional)</td><td>{words}</td><td>&lt;script&gt;</td>" in page
    assert "<script>" not in page
