"""What the server has done, as Prometheus reads it."""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
SHARED = (1, 2, 4, 8, 16, 32, 64, 128)

Labels = tuple[str, ...]


class Counter:
    """Counts that only rise, one for each combination of labels."""

    def __init__(self, name: str, about: str, labels: Labels = ()) -> None:
        self.name, self.about, self.labels = name, about, labels
        self.counts: dict[Labels, int] = {}

    def add(self, *values: str) -> None:
        """Count one more under these labels."""
        self.counts[values] = self.counts.get(values, 0) + 1

    def lines(self) -> Iterable[str]:
        """As text."""
        yield from _head(self.name, self.about, "counter")
        for values, count in sorted(self.counts.items()):
            yield f"{self.name}{_labelled(self.labels, values)} {count}"


class Histogram:
    """How often values fell below each of some bounds, for each combination of labels."""

    def __init__(self, name: str, about: str, bounds: Sequence[float], labels: Labels = ()) -> None:
        self.name, self.about, self.bounds, self.labels = name, about, tuple(bounds), labels
        self.buckets: dict[Labels, list[int]] = {}
        self.sums: dict[Labels, float] = {}

    def observe(self, value: float, *values: str) -> None:
        """Count a value."""
        buckets = self.buckets.get(values)
        if buckets is None:
            buckets = self.buckets[values] = [0] * (len(self.bounds) + 1)
        buckets[bisect_left(self.bounds, value)] += 1
        self.sums[values] = self.sums.get(values, 0.0) + value

    def lines(self) -> Iterable[str]:
        """As text; each bucket holds all that is below its bound."""
        yield from _head(self.name, self.about, "histogram")
        for values, buckets in sorted(self.buckets.items()):
            total = 0
            for bound, count in zip((*map(str, self.bounds), "+Inf"), buckets, strict=True):
                total += count
                yield f"{self.name}_bucket{_labelled((*self.labels, 'le'), (*values, bound))} {total}"
            yield f"{self.name}_sum{_labelled(self.labels, values)} {self.sums[values]:.9g}"
            yield f"{self.name}_count{_labelled(self.labels, values)} {total}"


@dataclass(frozen=True)
class Gauge:
    """What is true right now, by the values of its labels."""

    name: str
    about: str
    labels: Labels
    values: Mapping[Any, int]  # by labels

    def lines(self) -> Iterable[str]:
        """As text."""
        yield from _head(self.name, self.about, "gauge")
        for values, value in self.values.items():
            yield f"{self.name}{_labelled(self.labels, values)} {value}"


class Metrics:
    """All there is to know about a server."""

    def __init__(self) -> None:
        self.requests = Counter("leapts_requests_total", "Requests answered.", ("path", "status"))
        self.seconds = Histogram("leapts_request_seconds", "Time from request to answer.", SECONDS, ("path",))
        self.shared = Histogram("leapts_batch_requests", "Requests that shared a pass through the model.", SHARED)
        self.reloads = Counter("leapts_model_reloads_total", "Replaced model folders read.", ("model", "outcome"))

    def text(self, gauges: Iterable[Gauge] = ()) -> str:
        """Everything, with what is true right now."""
        parts: list[Counter | Histogram | Gauge] = [self.requests, self.seconds, self.shared, self.reloads, *gauges]
        lines = [line for part in parts for line in part.lines()]
        return "\n".join(lines) + "\n"


def _head(name: str, about: str, kind: str) -> list[str]:
    return [f"# HELP {name} {about}", f"# TYPE {name} {kind}"]


def _labelled(names: Labels, values: Labels) -> str:
    pairs = ",".join(f'{name}="{_escaped(value)}"' for name, value in zip(names, values, strict=True))
    return f"{{{pairs}}}" if pairs else ""


def _escaped(value: str) -> str:
    """A label's value can hold anything, once these three are escaped and what has no UTF-8 is spelt out."""
    spelt = value.encode("utf-8", "backslashreplace").decode()  # first: its backslashes need escaping, too
    return spelt.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
