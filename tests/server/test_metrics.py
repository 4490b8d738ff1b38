"""What Prometheus reads."""

import re
from itertools import pairwise

import httpx
import pandas as pd
import pytest

from leapts.server.metrics import SECONDS, SHARED, Counter, Gauge, Histogram, Metrics
from leapts.server.registry import ModelRegistry
from tests.server.conftest import client_of, histories

# A backslash before anything else than these three makes Prometheus refuse all of it.
LABELS = r'\{[a-z]+="([^"\\\n]|\\["\\n])*"(,[a-z]+="([^"\\\n]|\\["\\n])*")*\}'
LINE = re.compile(rf"^(# (HELP|TYPE) [a-z_]+ .+|[a-z_]+({LABELS})? \S+)$")


def test_bounds_lie_close_enough_to_tell_values_apart() -> None:
    assert (SECONDS[0], SECONDS[-1]) == (0.001, 30.0)
    assert all(2 <= after / before <= 3 for before, after in pairwise(SECONDS))
    assert tuple(2**power for power in range(8)) == SHARED


def test_counts_rise_by_one_for_each_combination_of_labels() -> None:
    counter = Counter("some_total", "Some of them.", ("a", "b"))
    for values in (("y", "1"), ("x", "2"), ("y", "1")):
        counter.add(*values)
    assert list(counter.lines()) == [
        "# HELP some_total Some of them.",
        "# TYPE some_total counter",
        'some_total{a="x",b="2"} 1',
        'some_total{a="y",b="1"} 2',
    ]


def test_a_label_without_a_value_is_a_mistake() -> None:
    counter = Counter("some_total", "Some.", ("a", "b"))
    counter.add("x")
    with pytest.raises(ValueError, match="zip"):
        list(counter.lines())


def test_a_gauge_tells_what_is_true_now() -> None:
    lines = list(Gauge("some", "Some.", ("a",), {("x",): 3}).lines())
    assert lines == ["# HELP some Some.", "# TYPE some gauge", 'some{a="x"} 3']
    assert list(Gauge("some", "Some.", (), {(): 0}).lines())[2:] == ["some 0"]


def test_values_are_counted_for_each_combination_of_labels() -> None:
    histogram = Histogram("some", "Some.", (0.5,), ("a",))
    for value, label in ((1.0, "y"), (0.25, "x"), (0.25, "y")):
        histogram.observe(value, label)
    assert list(histogram.lines()) == [
        "# HELP some Some.",
        "# TYPE some histogram",
        'some_bucket{a="x",le="0.5"} 1',
        'some_bucket{a="x",le="+Inf"} 1',
        'some_sum{a="x"} 0.25',
        'some_count{a="x"} 1',
        'some_bucket{a="y",le="0.5"} 1',
        'some_bucket{a="y",le="+Inf"} 2',
        'some_sum{a="y"} 1.25',
        'some_count{a="y"} 2',
    ]


def test_requests_and_batches_are_counted(registry: ModelRegistry, frame: pd.DataFrame) -> None:
    with client_of(registry) as client:
        for _ in range(3):
            client.post("/v1/forecast", json={"model": "apart", "series": histories(frame)})
        client.get('/a"b\\c%0Ad')
        client.get("/healthz")
        answer: httpx.Response = client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    lines = answer.text.splitlines()
    assert [line for line in lines if not LINE.match(line)] == []
    assert 'leapts_requests_total{path="/v1/forecast",status="200"} 3' in lines
    assert 'leapts_requests_total{path="other",status="404"} 1' in lines
    assert 'leapts_request_seconds_count{path="/v1/forecast"} 3' in lines
    assert "leapts_batch_requests_count 3" in lines
    assert 'leapts_requests_in_work{kind="forecast"} 0' in lines
    assert sum(line.startswith("leapts_model_info{") for line in lines) == 2


def test_hostile_labels_stay_labels() -> None:
    counter = Counter("some_total", "Some.", ("model",))
    counter.add('a"} 1\nevil{x="\\\ud800')
    (line,) = [line for line in counter.lines() if not line.startswith("#")]
    assert line == 'some_total{model="a\\"} 1\\nevil{x=\\"\\\\\\\\ud800"} 1'
    assert LINE.match(line)
    line.encode()


def test_buckets_hold_all_that_is_below() -> None:
    histogram = Histogram("some", "Some.", (1, 5))
    for value in (0.5, 1, 3, 9):
        histogram.observe(value)
    assert list(histogram.lines())[2:] == [
        'some_bucket{le="1"} 2',
        'some_bucket{le="5"} 3',
        'some_bucket{le="+Inf"} 4',
        "some_sum 13.5",
        "some_count 4",
    ]


def test_nothing_counted_is_still_valid() -> None:
    text = Metrics().text([Gauge("some", "Some.", (), {(): 1})])
    assert all(LINE.match(line) for line in text.splitlines())
    assert text.endswith("some 1\n")
    assert text.count("# TYPE") == 5
