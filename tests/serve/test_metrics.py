"""What Prometheus reads."""

import re

import httpx
import pandas as pd

from leapts.serve.metrics import Counter, Histogram, Metrics
from leapts.serve.models import Shelf
from tests.serve.conftest import client_of, histories

# A backslash before anything else than these three makes Prometheus refuse all of it.
LABELS = r'\{[a-z]+="([^"\\\n]|\\["\\n])*"(,[a-z]+="([^"\\\n]|\\["\\n])*")*\}'
LINE = re.compile(rf"^(# (HELP|TYPE) [a-z_]+ .+|[a-z_]+({LABELS})? \S+)$")


def test_requests_and_batches_are_counted(shelf: Shelf, frame: pd.DataFrame) -> None:
    with client_of(shelf) as client:
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
    assert all(LINE.match(line) for line in Metrics().text().splitlines())
