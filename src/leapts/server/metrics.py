"""Metrics of the server for Prometheus."""

from collections.abc import Iterator
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from leapts.server.admission import Admission
from leapts.server.registry import ModelRegistry
from leapts.server.request_body import BodyReader

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
REQUESTS = (1, 2, 4, 8, 16, 32, 64, 128)
disable_created_metrics()  # type: ignore[no-untyped-call]  # they would double the number of time series


class Metrics:
    """Counters and histograms of one server, and gauges of its state."""

    def __init__(self, models: ModelRegistry, admission: Admission, bodies: BodyReader) -> None:
        self._registry = own = CollectorRegistry()
        self.requests = Counter("leapts_requests", "Responses by path and status.", ("path", "status"), registry=own)
        self.seconds = Histogram(
            "leapts_request_seconds", "Time from request to response.", ("path",), buckets=SECONDS, registry=own
        )
        self.batches = Histogram("leapts_batch_requests", "Requests of a batch.", buckets=REQUESTS, registry=own)
        self._reloads = Counter(
            "leapts_model_reloads", "Replaced model folders read again.", ("model", "outcome"), registry=own
        )
        in_progress = Gauge("leapts_requests_in_work", "Requests in progress.", ("kind",), registry=own)
        for kind in admission.in_progress:
            in_progress.labels(kind).set_function(partial(admission.in_progress.__getitem__, kind))
        held = Gauge("leapts_body_bytes_held", "Bytes of incomplete request bodies.", registry=own)
        held.set_function(lambda: bodies.held)
        own.register(_Models(models))

    def count_reload(self, model: str, outcome: str) -> None:
        """Count a replaced model folder."""
        self._reloads.labels(_label(model), outcome).inc()

    def text(self) -> bytes:
        """Return all metrics in the text format of Prometheus."""
        return generate_latest(self._registry)


class _Models(Collector):
    """Reports the models that are served now."""

    def __init__(self, models: ModelRegistry) -> None:
        self._models = models

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Give one gauge per model."""
        found = GaugeMetricFamily("leapts_model_info", "Served models.", labels=("model", "version"))
        for one in self._models:
            found.add_metric((_label(one.name), one.version), 1)
        yield found


def _label(name: str) -> str:
    """Replace characters that UTF-8 cannot encode, such as those of a folder named in another encoding."""
    return name.encode("utf-8", "backslashreplace").decode()
