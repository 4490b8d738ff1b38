"""Requests are accepted up to their limits, and refused beyond."""

import json
from typing import Any

import pytest

from leapts.server import Limits
from leapts.server.problems import Problem
from leapts.server.request_body import parse_forecast
from leapts.server.schemas import ForecastIn

ONE = {"id": "a", "values": [1.0]}
LARGEST = 2**53


def _read(**request: Any) -> ForecastIn:
    return parse_forecast(json.dumps({"series": [ONE], **request}).encode(), Limits())


@pytest.mark.parametrize(
    "request_",
    [
        {"series": [{**ONE, "id": "x" * 1000}]},
        {"series": [{**ONE, "id": LARGEST}, {**ONE, "id": -LARGEST}]},
        {"series": [{**ONE, "last": "x" * 64}], "last": "x" * 64},
        {"series": [{**ONE, "last": LARGEST}], "last": -LARGEST},
        {"level": [0.5, 99.5]},
        {"level": [50.0] * 20},
        {"quantiles": [0.01, 0.99]},
        {"quantiles": [0.5] * 20},
    ],
)
def test_values_within_the_limits_are_accepted(request_: dict[str, Any]) -> None:
    found = _read(**request_).model_dump()
    assert {name: found[name] for name in request_ if name != "series"} == {
        name: value for name, value in request_.items() if name != "series"
    }


@pytest.mark.parametrize(
    ("request_", "place"),
    [
        ({"series": []}, "series"),
        ({"series": [{"id": "a", "values": []}]}, "values"),
        ({"series": [{**ONE, "id": "x" * 1001}]}, "id"),
        ({"series": [{**ONE, "id": LARGEST + 1}]}, "id"),
        ({"series": [{**ONE, "id": -LARGEST - 1}]}, "id"),
        ({"series": [{**ONE, "last": "x" * 65}]}, "last"),
        ({"last": LARGEST + 1}, "last"),
        ({"last": -LARGEST - 1}, "last"),
        ({"level": [0]}, "level"),
        ({"level": [100]}, "level"),
        ({"level": [50.0] * 21}, "level"),
        ({"quantiles": [0]}, "quantiles"),
        ({"quantiles": [1]}, "quantiles"),
        ({"quantiles": [0.5] * 21}, "quantiles"),
        ({"other": 1}, "other"),
    ],
)
def test_values_beyond_the_limits_are_refused(request_: dict[str, Any], place: str) -> None:
    with pytest.raises(Problem, match=place) as refused:
        _read(**request_)
    assert refused.value.kind.name == "bad-data"


def test_fields_have_defaults() -> None:
    read = _read()
    assert (read.model, read.last, read.level, read.quantiles, read.trace) == (None, None, None, None, False)
    assert (read.series[0].last, read.series[0].values) == (None, [1.0])
