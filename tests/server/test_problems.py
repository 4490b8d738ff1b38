"""Every refusal has the right status, the reason and a hint."""

import json
from collections.abc import Callable
from typing import Any

import httpx
import pandas as pd
import pytest
from starlette.exceptions import HTTPException

from leapts.server.problems import BAD_DATA, KINDS, NOT_FOUND, Problem, as_problem, busy, from_message, too_slow
from leapts.server.registry import ModelRegistry
from tests.server.conftest import client_of, histories

URL = "/v1/forecast"
JSON = {"Content-Type": "application/json"}
STATUSES = {
    "bad-request": 400,
    "unauthorized": 401,
    "not-found": 404,
    "no-such-model": 404,
    "wrong-method": 405,
    "too-slow-to-read": 408,
    "too-large": 413,
    "wrong-type": 415,
    "wrong-host": 421,
    "bad-data": 422,
    "disconnected": 499,
    "unexpected": 500,
    "busy": 503,
    "too-slow-to-answer": 503,
}
Change = Callable[[dict[str, Any]], object]


def _require_problem(answer: Any, status: int, *words: str) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    problem: dict[str, Any] = answer.json()
    assert set(problem) == {"type", "title", "status", "detail", "hint"}
    assert problem["status"] == status
    assert problem["type"].removeprefix("/docs#") in {kind.name for kind in KINDS}
    assert problem["hint"]
    for word in words:
        assert word in f"{problem['detail']} {problem['hint']}", problem
    return problem


def test_every_kind_of_problem_has_its_status() -> None:
    assert {kind.name: kind.status for kind in KINDS} == STATUSES


def test_a_problem_is_a_document_with_a_hint() -> None:
    problem = Problem(BAD_DATA, "a\nb", "do\tthis", headers={"X": "y"})
    response = problem.response()
    assert json.loads(bytes(response.body)) == {
        "type": "/docs#bad-data",
        "title": BAD_DATA.title,
        "status": 422,
        "detail": "a\\nb",
        "hint": "do\\tthis",
    }
    assert (response.status_code, response.headers["x"]) == (422, "y")


def test_an_error_message_is_split_at_its_last_semicolon() -> None:
    whole, plain = from_message("it is 1; it was 2; give 3"), from_message("it is 1")
    assert (whole.detail, whole.hint) == ("it is 1; it was 2", "give 3")
    assert (plain.detail, bool(plain.hint)) == ("it is 1", True)


def test_errors_of_the_framework_become_problems() -> None:
    missing = as_problem(HTTPException(404))
    assert (missing.kind, missing.detail, "/docs" in missing.hint) == (NOT_FOUND, "Not Found", True)
    method = as_problem(HTTPException(405, "Not so", {"Allow": "GET"}))
    assert (method.detail, method.headers, "Allow" in method.hint) == ("Not so", {"Allow": "GET"}, True)
    teapot = as_problem(HTTPException(418))
    assert (teapot.kind.name, teapot.kind.status) == ("bad-request", 418)
    assert as_problem(ValueError("secret")).kind.name == "unexpected"
    assert "secret" not in as_problem(ValueError("secret")).detail


def test_a_busy_server_sends_retry_after() -> None:
    assert busy("much to do").headers == {"Retry-After": "1"}
    later = busy("much to do", 7, limit="more")
    assert (later.headers, later.kind.name) == ({"Retry-After": "7"}, "busy")
    assert "7 s" in later.hint
    slow = too_slow(0.5)
    assert (slow.headers, slow.kind.name) == ({"Retry-After": "5"}, "too-slow-to-answer")
    assert "0.5 s" in slow.detail


BAD: dict[str, tuple[Change, int, list[str]]] = {
    "no such model": (lambda asked: asked.update(model="univarate"), 404, ["'univarate'", "'univariate'"]),
    "path as model": (lambda asked: asked.update(model="../../etc/passwd"), 404, ["no model"]),
    "no model named": (lambda asked: asked.pop("model"), 400, ["2 models", "'multivariate', 'univariate'"]),
    "no series": (lambda asked: asked.update(series=[]), 422, ["series"]),
    "unknown field": (lambda asked: asked.update(levels=[80]), 422, ["levels"]),
    "text as values": (lambda asked: asked["series"][0].update(values=["1"] * 20), 422, ["series[0].values[0]"]),
    "true as value": (lambda asked: asked["series"][0].update(values=[True] * 20), 422, ["series[0].values[0]"]),
    "missing value": (lambda asked: asked["series"][0]["values"].append(None), 422, ["'a'", "position 160", "fill"]),
    "too short": (
        lambda asked: (asked.update(model="multivariate"), asked["series"][1].update(values=[1.0])),
        422,
        ["'b'", "look-back of 12"],
    ),
    "huge value": (lambda asked: asked["series"][1]["values"].append(1e200), 422, ["'b'", "1e+200"]),
    "twice": (lambda asked: asked["series"].append(asked["series"][0]), 422, ["'a'", "once"]),
    "too many samples": (lambda asked: asked.update(samples=1001), 422, ["samples"]),
    "too many values of samples": (
        lambda asked: asked.update(samples=1000),
        413,
        ["sample paths have", "fewer samples"],
    ),
    "too many values of levels": (
        lambda asked: asked.update(level=[60, 70, 80, 90, 95]),
        413,
        ["forecasts and levels have", "the limit is 100", "fewer samples or levels"],
    ),
    "level that rounds to 100": (lambda asked: asked.update(level=[99.99999999999999]), 422, ["between 0 and 100"]),
    "quantile that rounds to 0": (lambda asked: asked.update(quantiles=[5e-324]), 422, ["between 0 and 1"]),
    "negative seed": (lambda asked: asked.update(samples=1, random_seed=-1), 422, ["random_seed"]),
    "level of 100": (lambda asked: asked.update(level=[100]), 422, ["level[0]"]),
    "level twice": (lambda asked: asked.update(level=[80, 80.0]), 422, ["80", "twice"]),
    "level and quantiles": (lambda asked: asked.update(level=[80], quantiles=[0.5]), 422, ["both"]),
    "number as stamp": (lambda asked: asked.update(last=7), 422, ["timestamp", "2024-01-31"]),
    "nonsense as stamp": (lambda asked: asked.update(last="yesterday"), 422, ["'yesterday'"]),
    "end of time": (lambda asked: asked.update(last="9999-12-31"), 422, ["9999-12-31"]),
    "zone unknown to the model": (lambda asked: asked.update(last="2024-01-01T00:00:00Z"), 422, ["timezone"]),
    "too many series": (
        lambda asked: asked.update(series=[{"id": n, "values": [1.0] * 12} for n in range(21)]),
        413,
        ["21 series", "20", "--max-series"],
    ),
    "too long": (lambda asked: asked["series"][0].update(values=[1.0] * 501), 413, ["501", "--max-length"]),
}


@pytest.fixture(scope="module")
def strict(registry: ModelRegistry) -> Any:
    with client_of(
        registry,
        limits={"series": 20, "length": 500, "body": 100_000, "bodies": 100_000, "sampled": 10_000, "answered": 100},
    ) as client:
        yield client


@pytest.mark.parametrize("name", BAD)
def test_a_bad_request_is_refused_with_the_reason(strict: httpx.Client, frame: pd.DataFrame, name: str) -> None:
    change, status, words = BAD[name]
    asked: dict[str, Any] = {"model": "univariate", "series": histories(frame)}
    change(asked)
    _require_problem(strict.post(URL, json=asked), status, *words)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"nonsense",
        b'{"series": [{"id": "a", "values": [NaN]}]}',
        b'{"series": [{"id": "a", "values": [Infinity]}]}',
        b'{"series": [{"id": "a", "values": [1e999]}]}',
        b'{"series": [{"id": "\xff", "values": [1]}]}',
        b"[" * 40_000,
        b'{"x":' * 15_000,
        b'{"series":' + b"[" * 40_000,
    ],
)
def test_invalid_json_is_refused(strict: httpx.Client, body: bytes) -> None:
    answer = strict.post(URL, content=body, headers=JSON)
    assert answer.status_code in (400, 413, 422)
    _require_problem(answer, answer.status_code)


@pytest.mark.parametrize("kind", ["application/x-www-form-urlencoded", "text/plain", "multipart/form-data", ""])
def test_other_content_is_refused_by_its_type(strict: httpx.Client, kind: str) -> None:
    answer = strict.post(URL, content=b"series=1", headers={"Content-Type": kind})
    _require_problem(answer, 415, "application/json")


def test_compressed_content_is_refused_before_it_is_decompressed(strict: httpx.Client) -> None:
    answer = strict.post(URL, content=b"\x1f\x8b", headers={**JSON, "Content-Encoding": "gzip"})
    _require_problem(answer, 415, "compressed")


@pytest.mark.parametrize(
    "path", ["/v1", "/v1/forecast/", "/..%2f..%2fetc/passwd", "/static/x", "/docs/oauth2-redirect"]
)
def test_unknown_paths_are_not_found(client: httpx.Client, path: str) -> None:
    _require_problem(client.get(path), 404, "/docs")


@pytest.mark.parametrize("path", [URL, "/v1/report", "/v1/forecast/csv"])
@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "OPTIONS"])
def test_other_methods_are_refused_with_the_allowed_ones(client: httpx.Client, path: str, method: str) -> None:
    answer = client.request(method, path)
    _require_problem(answer, 405, "Allow")
    assert answer.headers["allow"] == "POST"


def test_a_body_is_too_large_by_its_header_or_its_bytes(strict: httpx.Client) -> None:
    too_much = b" " * 100_001
    _require_problem(strict.post(URL, content=too_much, headers=JSON), 413, "100,001", "--max-body")

    def pieces() -> Any:
        for _ in range(101):
            yield b" " * 1000

    _require_problem(strict.post(URL, content=pieces(), headers=JSON), 413, "--max-body")


def test_an_unexpected_error_discloses_no_internals(
    registry: ModelRegistry, frame: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("/secret/path in SecretClass")

    monkeypatch.setattr("leapts.server.model.ServedModel.forecast", broken)
    told: list[str] = []
    with client_of(registry, log=told.append) as client:
        answer = client.post(URL, json={"model": "univariate", "series": histories(frame)})
        assert client.get("/healthz").status_code == 200
    problem = _require_problem(answer, 500)
    assert "ecret" not in json.dumps(problem)
    assert "RuntimeError" not in json.dumps(problem)
    assert len(told) == 1
    assert "SecretClass" in told[0]


def test_control_characters_are_escaped_in_problems(client: httpx.Client, frame: pd.DataFrame) -> None:
    asked = {"model": "\x1b[31mred\n", "series": histories(frame)}
    problem = _require_problem(client.post(URL, json=asked), 404)
    assert problem["detail"].isprintable()
