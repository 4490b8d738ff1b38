"""Requests made up from the OpenAPI description are answered as it says."""

from collections.abc import Iterator

import httpx
import pytest
from hypothesis import HealthCheck, Phase, given, settings

from leapts.serve.models import Shelf
from tests.serve.conftest import client_of

schemathesis = pytest.importorskip("schemathesis", reason="Schemathesis is not installed: pip install schemathesis")

EXAMPLES = 25


@pytest.fixture(scope="module")
def client(shelf: Shelf) -> Iterator[httpx.Client]:
    with client_of(shelf) as client:
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


def test_no_made_up_request_is_answered_otherwise_than_described(schema: object) -> None:
    for operation in schema.get_all_operations():  # type: ignore[attr-defined]
        strategy = operation.ok().as_strategy()

        @settings(
            max_examples=EXAMPLES,
            derandomize=True,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate],
        )
        @given(case=strategy)
        def check(case: object) -> None:
            response = case.call()  # type: ignore[attr-defined]
            case.validate_response(response)  # type: ignore[attr-defined]
            assert response.status_code < 500

        check()
