"""The page of the server's load test, rendered from the results alone."""

from collections.abc import Sequence
from pathlib import Path
from statistics import median

from leapts.files import write_file
from leapts_bench import results
from leapts_bench.results import Line
from leapts_bench.serve import CONNECTIONS, LOG

_TARGET = 0.6


def write_table(folder: Path, out: Path) -> None:
    """Render the page from the last measurement of each kind."""
    write_file(out, rendered(results.read(folder / LOG)).encode())


def rendered(lines: Sequence[Line]) -> str:
    """Render the page from result lines."""
    bare, loads = _last_loads(lines)
    parts = [
        "# The server under load",
        "Rendered by `python -m leapts_bench serve` from `benchmarks/results/serve.jsonl`. The load generator is wrk, "
        "on loopback, on the machine that also runs the server. LeapTS and an empty endpoint are measured in turn; a "
        "share is the median over the rounds, with the lowest and the highest in brackets.",
    ]
    if bare is not None:
        commit = str(bare.get("commit", "unknown"))[:9]
        parts.append(
            f"The load was measured at commit {commit}. If that is before release 0.2, the figures "
            "are those of a faster request path that has been removed; see [the decision](../decisions/server.md)."
        )
        parts += _load_section(bare, loads)
    parts += _soak_section(_last(lines, "soak")) + _schema_section(_last(lines, "schema"))
    return "\n\n".join(parts) + "\n"


def _last(lines: Sequence[Line], kind: str) -> Line | None:
    return next((line for line in reversed(lines) if line["kind"] == kind), None)


def _last_loads(lines: Sequence[Line]) -> tuple[Line | None, list[Line]]:
    """Find the last load test, and the measurement of the model alone before it."""
    bare: Line | None = None
    loads: list[Line] = []
    latest: tuple[Line | None, list[Line]] = (None, loads)
    for line in lines:
        if line["kind"] == "bare":
            bare, loads = line, []
        elif line["kind"] == "load":
            loads.append(line)
            latest = (bare, loads)
    return latest


def _load_section(bare: Line, loads: Sequence[Line]) -> list[str]:
    table = ["| connections | server | requests per second | p50 ms | p99 ms | CPU µs per request | load average |"]
    table.append("|---|---|---|---|---|---|---|")
    shares = ["| connections | share of the empty endpoint's rate | share by CPU time |", "|---|---|---|"]
    reached: list[str] = []
    for connections in CONNECTIONS:
        here = [line for line in loads if line["connections"] == connections]
        by_server = {name: [line for line in here if line["server"] == name] for name in ("empty", "leapts")}
        if not all(by_server.values()):
            continue
        for name, found in by_server.items():
            cells = [f"{_middle(found, key):,.{digits}f}" for key, digits in _COLUMNS]
            table.append(f"| {connections} | {name} | " + " | ".join(cells) + " |")
        pairs = list(zip(by_server["leapts"], by_server["empty"], strict=False))
        rates = [ours["per_second"] / empty["per_second"] for ours, empty in pairs]
        key = "cpu_microseconds_a_request"
        costs = [empty[key] / ours[key] for ours, empty in pairs]
        if median(rates) >= _TARGET:
            reached.append(str(connections))
        shares.append(f"| {connections} | {_spread(rates)} | {_spread(costs)} |")
    verdict = f"reached over {' and '.join(reached)} connections" if reached else "not reached"
    trouble = sum(line["errors"] + line["refused"] for line in loads)
    return [
        "## One window of seven series",
        f"Without a server and one window at a time, the network makes {bare['model_per_second']:,.0f} forecasts per "
        f"second, the predictor {bare['door_per_second']:,.0f}, and with 64 windows at a time "
        f"{bare['door_of_64_per_second']:,.0f}.",
        "\n".join(table),
        f"The target of {_TARGET:.0%} of the empty endpoint's rate is {verdict}. Requests that failed or were "
        f"refused: {trouble}.",
        "\n".join(shares),
    ]


_COLUMNS = (
    ("per_second", 0),
    ("p50_ms", 1),
    ("p99_ms", 1),
    ("cpu_microseconds_a_request", 0),
    ("load_average", 1),
)


def _middle(lines: Sequence[Line], key: str) -> float:
    return float(median(line[key] for line in lines))


def _spread(values: Sequence[float]) -> str:
    return f"{median(values):.0%} ({min(values):.0%} to {max(values):.0%})"


def _soak_section(soak: Line | None) -> list[str]:
    if soak is None:
        return []
    return [
        "## Soak test",
        f"{soak['seconds']} s over 8 connections: {soak['requests']:,} requests, {soak['refused']} refused, p99 "
        f"{soak['p99_ms']:,.1f} ms; memory {soak['megabytes'][0]:,.0f} MB at the start and "
        f"{soak['megabytes'][-1]:,.0f} MB at the end, {soak['megabytes_gained']:+.1f} MB after warm-up.",
    ]


def _schema_section(schema: Line | None) -> list[str]:
    if schema is None:
        return []
    answers = ", ".join(f"{count:,} with {status}" for status, count in sorted(schema["answers_by_status"].items()))
    verdict = "All were answered as described." if schema["passed"] else "Not all were answered as described."
    return [
        "## API fuzzing",
        f"Schemathesis with up to {schema['examples_an_operation']:,} requests for each of {schema['operations']} "
        f"operations. {verdict} Responses, including those of the load test: {answers}.",
    ]
