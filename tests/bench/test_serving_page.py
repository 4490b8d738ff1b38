"""The output of the load generator is parsed, and the page on the server's speed agrees with the results."""

import pytest

from leapts_bench.results import Line
from leapts_bench.serve import parsed
from leapts_bench.tables.serving import rendered


def _load(server: str, number: int, per_second: float, cpu: float) -> Line:
    return {
        "kind": "load",
        "server": server,
        "round": number,
        "connections": 64,
        "per_second": per_second,
        "p50_ms": 1.5,
        "p99_ms": 9.0,
        "cpu_microseconds_a_request": cpu,
        "load_average": 2.0,
        "errors": 0,
        "refused": 1,
    }


BARE: Line = {"kind": "bare", "model_per_second": 800.0, "door_per_second": 1500.0, "door_of_64_per_second": 20000.0}


@pytest.fixture
def lines() -> list[Line]:
    old = [BARE, _load("empty", 0, 1.0, 1.0), _load("leapts", 0, 1.0, 1.0)]
    new = [_load("empty", 0, 1000.0, 200.0), _load("leapts", 0, 500.0, 400.0)]
    new += [_load("empty", 1, 2000.0, 200.0), _load("leapts", 1, 1400.0, 250.0)]
    return [*old, dict(BARE), *new]


def test_shares_are_of_pairs_measured_side_by_side(lines: list[Line]) -> None:
    page = rendered(lines)
    assert "| 64 | 60% (50% to 70%) | 65% (50% to 80%) |" in page
    assert "| 64 | empty | 1,500 |" in page
    assert "is reached over 64 connections" in page
    assert "failed or were refused: 4." in page


def test_a_measurement_without_loads_leaves_the_last_ones_in_place(lines: list[Line]) -> None:
    assert rendered([*lines, dict(BARE)]) == rendered(lines)


def test_the_output_of_the_load_generator_is_parsed() -> None:
    text = """Running 4s test @ http://127.0.0.1:8123/v1/forecast
  1 threads and 64 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency    80.12ms   20.00ms   1.20s    77.50%
    Req/Sec   659.47    411.63     1.84k    77.50%
  Latency Distribution
     50%  258.00us
     75%    1.10ms
     90%    2.00ms
     99%    1.20s
  3059 requests in 4.03s, 10.0MB read
  Socket errors: connect 0, read 1, write 0, timeout 2
  Non-2xx or 3xx responses: 7
Requests/sec:    758.49
"""
    assert parsed(text) == {
        "requests": 3059,
        "per_second": 758.49,
        "p50_ms": 0.258,
        "p99_ms": 1200.0,
        "errors": 3,
        "refused": 7,
    }


def test_the_duration_of_a_soak_is_stated(lines: list[Line]) -> None:
    soak: Line = {
        "kind": "soak",
        "seconds": 30,
        "requests": 12345,
        "refused": 0,
        "p99_ms": 8.0,
        "megabytes": [300.0, 310.5],
        "megabytes_gained": 0.5,
    }
    page = rendered([*lines, soak])
    assert "30 s over 8 connections: 12,345 requests" in page
    assert "+0.5 MB after warm-up" in page


def test_failed_generated_requests_are_reported(lines: list[Line]) -> None:
    schema: Line = {
        "kind": "schema",
        "operations": 7,
        "examples_an_operation": 60,
        "passed": False,
        "answers_by_status": {"422": 5, "200": 2},
    }
    page = rendered([*lines, schema])
    assert "Not all were answered as described" in page
    assert "2 with 200, 5 with 422" in page
