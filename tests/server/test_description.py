"""The description says of every address what it takes, what it answers, and how it refuses."""

from typing import Any

import pytest

from leapts import __version__
from leapts.server import Limits
from leapts.server.description import openapi
from leapts.server.schemas import schemas

GUARDED = ("/v1/forecast", "/v1/forecast/csv", "/v1/report", "/v1/models", "/metrics")
OPEN = ("/healthz", "/readyz")


def _operations(document: dict[str, Any]) -> dict[str, Any]:
    return {path: operation for path, methods in document["paths"].items() for operation in methods.values()}


@pytest.mark.parametrize("needs_token", [False, True])
def test_a_token_is_told_of_where_there_is_one(needs_token: bool) -> None:
    document = openapi(Limits(), needs_token=needs_token)
    operations = _operations(document)
    assert tuple(operations) == (*GUARDED, *OPEN)
    for path, operation in operations.items():
        is_guarded = needs_token and path in GUARDED
        assert operation.get("security") == ([{"token": []}] if is_guarded else None)
        assert ("401" in operation["responses"]) == is_guarded
        assert operation["operationId"] == path.removeprefix("/v1").strip("/").replace("/", "_")
    found = document["components"].get("securitySchemes")
    assert found == ({"token": {"type": "http", "scheme": "bearer"}} if needs_token else None)


def test_the_schemas_are_those_of_the_wire_and_of_problems() -> None:
    limits = Limits(series=5)
    found = openapi(limits, needs_token=False)
    assert found["components"]["schemas"].items() >= schemas(limits).items()
    assert set(found["components"]["schemas"]["Problem"]["properties"]) == {"type", "title", "status", "detail", "cure"}
    assert (found["openapi"], found["info"]["version"]) == ("3.1.0", __version__)


def test_every_refusal_is_a_problem_and_says_when_to_come_again() -> None:
    operations = _operations(openapi(Limits(), needs_token=False))
    for path in GUARDED[:3]:
        assert operations[path]["requestBody"]["required"] is True
        answers = operations[path]["responses"]
        assert set(answers) == {"200", "400", "404", "408", "413", "415", "422", "503"}
        for status, one in answers.items():
            if status != "200":
                problem = {"schema": {"$ref": "#/components/schemas/Problem"}}
                assert one["content"] == {"application/problem+json": problem}
            assert ("Retry-After" in one.get("headers", {})) == (status == "503")
    for path in (*GUARDED[3:], *OPEN):
        assert set(operations[path]["responses"]) == {"200", "503"} if path == "/readyz" else {"200"}


def test_what_a_table_is_read_with_is_described_as_it_is_checked() -> None:
    operations = _operations(openapi(Limits(), needs_token=False))
    by_name = {one["name"]: one for one in operations["/v1/forecast/csv"]["parameters"]}
    assert list(by_name) == ["model", "id_col", "time_col", "target_col", "layout", "level", "safe_cells"]
    assert [one["name"] for one in operations["/v1/report"]["parameters"]] == list(by_name)[:5]
    assert all(by_name[name]["schema"]["maxLength"] == 1000 for name in list(by_name)[:4])
    assert by_name["layout"]["schema"] == {"type": "string", "enum": ["auto", "long", "wide"], "default": "auto"}
    level = {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 100}
    assert by_name["level"]["schema"] == {"type": "array", "maxItems": 20, "items": level}
    assert by_name["safe_cells"]["schema"] == {"type": "boolean", "default": False}
    assert all(one["in"] == "query" and one["description"] for one in by_name.values())
