"""Measure the requests per second of the server, next to an empty endpoint and the model alone.

A load generator (wrk, on loopback) sends one window of seven series repeatedly over 1, 8 and 64 connections, to both
servers in turn: on a busy machine only pairs that are measured side by side can be compared.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch

from leapts import LeapTS
from leapts.data.panel import Panel
from leapts.errors import ConfigError
from leapts_bench import results
from leapts_bench.server_process import ServerProcess, server_process

LOG = "serve.jsonl"
CONNECTIONS = (1, 8, 64)
SERIES, LOOKBACK, H, SEED = 7, 96, 24, 1
_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0}
_PATH = "/v1/forecast"


def measure(folder: Path, *, seconds: int, rounds: int, soak: int, examples: int, tell: Callable[[str], None]) -> None:
    """Measure, and append the figures to the results.

    Args:
        folder: The folder of the results.
        seconds: Duration of each load.
        rounds: Repetitions of each load.
        soak: Seconds of a long load, to measure memory; 0 for none.
        examples: Generated requests for each operation of the OpenAPI description; 0 for none.
        tell: Called with progress messages.

    Raises:
        ConfigError: When there is no load generator.
    """
    if shutil.which("wrk") is None:
        raise ConfigError("there is no load generator; install it (Debian: apt-get install wrk)")
    target = folder / LOG

    def note(**figures: Any) -> None:
        line = {**results.provenance(), "seed": SEED, "load_average": os.getloadavg()[0], **figures}
        results.append(target, line)
        tell(json.dumps(figures))

    with tempfile.TemporaryDirectory() as place:
        model, body = _prepare(Path(place))
        note(kind="bare", **_bare(model, body))
        script = _load_script(Path(place), body)
        with (
            server_process("-m", "leapts", "serve", str(model)) as ours,
            server_process("-m", "leapts_bench.empty_endpoint") as empty,
        ):
            for connections in CONNECTIONS:
                for number in range(rounds):
                    for name, server in (("empty", empty), ("leapts", ours)):
                        found = _loaded(server, script, connections, seconds)
                        note(kind="load", server=name, round=number, connections=connections, seconds=seconds, **found)
            if examples:
                note(kind="schema", **_made_up(ours, examples))
            if soak:
                note(kind="soak", **_soaked(ours, script, soak))


def _prepare(place: Path) -> tuple[Path, bytes]:
    """Create a model of seven series and a request for it."""
    random, steps = np.random.default_rng(SEED), np.arange(1200)
    waves = np.stack([10 * np.sin(steps / (3 + number)) for number in range(SERIES)])
    panel = Panel.from_matrix(torch.from_numpy(50 + waves + random.normal(size=waves.shape)))
    LeapTS(H, LOOKBACK, max_steps=60, loss="huber", random_seed=SEED).fit(panel).save(place / "model")
    windows = panel.matrix()[:, -LOOKBACK:].numpy().round(4).tolist()
    series = [{"id": name, "values": values} for name, values in zip(panel.series, windows, strict=True)]
    return place / "model", json.dumps({"series": series}).encode()


def _bare(folder: Path, body: bytes) -> dict[str, Any]:
    """Measure forecasts per second without a server: the network, and the predictor on one and on 64 requests."""
    predictor = LeapTS.load(folder).predictor_
    asked = json.loads(body)["series"]
    windows = predictor.windows_from_arrays([one["id"] for one in asked], np.array([one["values"] for one in asked]))
    return {
        "model": predictor.config.model_dump(mode="json"),
        "model_per_second": round(_rate(lambda: predictor.model.forecast(windows.batch.history)), 1),
        "door_per_second": round(_rate(lambda: predictor.predict(windows)), 1),
        "door_of_64_per_second": round(64 * _rate(lambda: predictor.predict_together([windows] * 64)), 1),
    }


def _rate(call: Callable[[], object]) -> float:
    """Return calls per second, the best of several intervals."""
    best = 0.0
    for _ in range(8):
        started, count = time.perf_counter(), 0
        while time.perf_counter() - started < 0.25:
            call()
            count += 1
        best = max(best, count / (time.perf_counter() - started))
    return best


def _load_script(place: Path, body: bytes) -> Path:
    (place / "body.json").write_bytes(body)
    script = place / "request.lua"
    script.write_text(
        'wrk.method = "POST"\nwrk.headers["Content-Type"] = "application/json"\n'
        f'local file = io.open("{place / "body.json"}")\nwrk.body = file:read("*a")\nfile:close()\n'
    )
    return script


def _wrk(server: ServerProcess, script: Path, connections: int, seconds: int) -> list[str]:
    return ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--latency", "-s", str(script), server.address + _PATH]


def _loaded(server: ServerProcess, script: Path, connections: int, seconds: int) -> dict[str, Any]:
    """Return the figures of the load generator and the usage of the server."""
    before = server.cpu_seconds()
    command = _wrk(server, script, connections, seconds)
    text = subprocess.run(command, capture_output=True, text=True, check=True, timeout=seconds + 60).stdout
    used = server.cpu_seconds() - before
    seen = parsed(text)
    return {**seen, "cpu_microseconds_a_request": round(1e6 * used / seen["requests"], 1)}


def parsed(text: str) -> dict[str, Any]:
    """Parse the output of the load generator."""
    errors = re.search(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)", text)
    refused = re.search(r"Non-2xx or 3xx responses: (\d+)", text)
    return {
        "requests": int(_found(r"(\d+) requests in", text)),
        "per_second": float(_found(r"Requests/sec:\s+([\d.]+)", text)),
        "p50_ms": round(1000 * _seconds(_found(r"\n\s+50%\s+(\S+)", text)), 3),
        "p99_ms": round(1000 * _seconds(_found(r"\n\s+99%\s+(\S+)", text)), 3),
        "errors": sum(map(int, errors.groups())) if errors else 0,
        "refused": int(refused[1]) if refused else 0,
    }


def _found(pattern: str, text: str) -> str:
    match = re.search(pattern, text)
    if match is None:
        raise ConfigError(f"the load generator said nothing of {pattern!r}: {text!r}")
    return match[1]


def _seconds(text: str) -> float:
    number = text.rstrip("mus")
    return float(number) * _UNITS[text.removeprefix(number)]


def _soaked(server: ServerProcess, script: Path, seconds: int) -> dict[str, Any]:
    """Run a long load over 8 connections, and measure memory during it."""
    command = _wrk(server, script, 8, seconds)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as load:
        memory = []
        pause = max(1.0, seconds / 60)
        while load.poll() is None:
            memory.append(round(server.megabytes(), 1))
            time.sleep(pause)
        text = load.stdout.read() if load.stdout is not None else ""
    settled = memory[len(memory) // 10 :]
    return {
        "seconds": seconds,
        **parsed(text),
        "megabytes": memory,
        "megabytes_gained": round(median(settled[-5:]) - median(settled[:5]), 1),
    }


def _made_up(server: ServerProcess, examples: int) -> dict[str, Any]:
    """Send requests generated from the description by Schemathesis, which checks the responses."""
    checks = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
    with urllib.request.urlopen(f"{server.address}/openapi.json") as answer:
        operations = len(json.load(answer)["paths"])
    command = [sys.executable, "-m", "schemathesis.cli", "run", f"{server.address}/openapi.json", "--checks", checks]
    command += ["--max-examples", str(examples), "--seed", str(SEED), "--mode", "all", "--phases", "fuzzing"]
    done = subprocess.run([*command, "--no-color"], capture_output=True, text=True, check=False)
    with urllib.request.urlopen(f"{server.address}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    counts: dict[str, int] = {}
    for line in lines:
        if match := re.match(r'leapts_requests_total\{.*status="(\d+)"\} (\d+)', line):
            counts[match[1]] = counts.get(match[1], 0) + int(match[2])
    return {
        "operations": operations,
        "examples_an_operation": examples,
        "passed": done.returncode == 0,
        "answers_by_status": counts,
        "said": done.stdout.strip().splitlines()[-12:] if done.returncode else [],
    }
