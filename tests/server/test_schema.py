"""Requests generated from the OpenAPI description are answered as described."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, Phase, given, settings

from leapts.server.registry import ModelRegistry
from tests.server.conftest import client_of

schemathesis = pytest.importorskip("schemathesis", reason="Schemathesis is not installed: pip install schemathesis")

EXAMPLES = 25


@pytest.fixture(scope="module")
def client(registry: ModelRegistry) -> Iterator[httpx.Client]:
    with client_of(registry) as client:
        yield client


@pytest.fixture(scope="module")
def schema(client: httpx.Client) -> object:
    return schemathesis.openapi.from_url(str(client.base_url.join("/openapi.json")))


def test_the_description_is_valid_and_complete(client: httpx.Client) -> None:
    document = client.get("/openapi.json").json()
    assert document["openapi"] == "3.1.0"
    assert set(document["paths"]) == {
        "/v1/forecast",
        "/v1/forecast/csv",
        "/v1/report",
        "/v1/models",
        "/metrics",
        "/healthz",
        "/readyz",
    }


@pytest.mark.parametrize("mode", ["POSITIVE", "NEGATIVE"])
def test_generated_requests_are_answered_as_described(schema: Any, mode: str) -> None:
    """Valid requests may still be refused, because no schema lists the series of each model."""
    from schemathesis.specs.openapi import checks

    wanted = [
        schemathesis.checks.not_a_server_error,
        checks.status_code_conformance,
        checks.content_type_conformance,
        checks.response_schema_conformance,
        checks.response_headers_conformance,
    ]
    for found in schema.get_all_operations():
        operation = found.ok()
        if mode == "NEGATIVE" and not operation.body:
            continue

        @settings(
            max_examples=EXAMPLES,
            derandomize=True,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate],
        )
        @given(case=operation.as_strategy(schemathesis.GenerationMode[mode]))
        def check(case: Any) -> None:
            answer = case.call()
            case.validate_response(answer, checks=wanted)
            assert answer.status_code < 500

        check()
