"""Metrics are counted, and names of models cannot forge any."""

import re
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, cast

import httpx
import pandas as pd
from prometheus_client.parser import text_string_to_metric_families

from leapts.server import Limits
from leapts.server.admission import Admission
from leapts.server.metrics import REQUESTS, SECONDS, Metrics
from leapts.server.registry import ModelRegistry
from leapts.server.request_body import BodyReader
from tests.server.conftest import client_of, histories


def metrics_of(*models: str) -> Metrics:
    """Metrics of a server with models of these names."""
    served = cast("Any", [SimpleNamespace(name=name, version="v1") for name in models])
    return Metrics(served, Admission(Limits()), BodyReader(Limits()))


def test_histogram_bounds_are_close_together() -> None:
    assert (SECONDS[0], SECONDS[-1]) == (0.001, 30.0)
    assert all(2 <= after / before <= 3 for before, after in pairwise(SECONDS))
    assert tuple(2**power for power in range(8)) == REQUESTS


def test_requests_and_batches_are_counted(registry: ModelRegistry, frame: pd.DataFrame) -> None:
    with client_of(registry) as client:
        for _ in range(3):
            client.post("/v1/forecast", json={"model": "univariate", "series": histories(frame)})
        client.get('/a"b\\c%0Ad')
        client.get("/healthz")
        answer: httpx.Response = client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=")
    lines = answer.text.splitlines()
    assert 'leapts_requests_total{path="/v1/forecast",status="200"} 3.0' in lines
    assert 'leapts_requests_total{path="other",status="404"} 1.0' in lines
    assert 'leapts_request_seconds_count{path="/v1/forecast"} 3.0' in lines
    assert "leapts_batch_requests_sum 3.0" in lines
    assert 'leapts_requests_in_work{kind="forecast"} 0.0' in lines
    assert sum(line.startswith("leapts_model_info{") for line in lines) == 2
    assert not re.search("_created", answer.text)


def test_hostile_names_stay_labels() -> None:
    name = 'a"} 1\nevil{x="\\\ud800'
    metrics = metrics_of(name)
    metrics.count_reload(name, "loaded")
    families = {one.name: one for one in text_string_to_metric_families(metrics.text().decode())}
    shown = name.replace("\ud800", "\\ud800")
    assert [one.labels for one in families["leapts_model_info"].samples] == [{"model": shown, "version": "v1"}]
    (reload,) = families["leapts_model_reloads"].samples
    assert (reload.labels, reload.value) == ({"model": shown, "outcome": "loaded"}, 1)
    assert not any("evil" in name for name in families)
