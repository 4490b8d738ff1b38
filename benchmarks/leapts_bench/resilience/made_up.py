"""Requests made up from the OpenAPI description by Schemathesis, valid ones and others."""

import importlib.util
import os
import re
import subprocess
import sys
import urllib.request
from pathlib import Path

from leapts.errors import ConfigError
from leapts_bench.resilience.outcome import Outcome
from leapts_bench.resilience.samples import forecaster, waves
from leapts_bench.server_process import ServerProcess, server_process

UNITS = tuple(f"seed {seed}" for seed in range(40))
EXAMPLES = 850  # for each operation; three of them take bodies, and have as many to make up
_CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,"
    "response_headers_conformance,tells_nothing"
)


def run(unit: str, place: Path, *, examples: int = EXAMPLES) -> Outcome:
    """Do one unit.

    Raises:
        ConfigError: When Schemathesis is not installed.
    """
    if importlib.util.find_spec("schemathesis") is None:
        raise ConfigError("made-up requests need Schemathesis; install it: pip install schemathesis")
    forecaster().fit(waves()).save(place / "model")
    outcome = Outcome()
    with server_process("-m", "leapts", "serve", str(place / "model")) as server:
        command = [sys.executable, "-m", "schemathesis.cli", "run", f"{server.address}/openapi.json"]
        command += ["--checks", _CHECKS, "--max-examples", str(examples), "--seed", unit.split()[1], "--mode", "all"]
        command += ["--phases", "fuzzing", "--no-color", "--continue-on-failure"]
        environment = {**os.environ, "SCHEMATHESIS_HOOKS": "leapts_bench.resilience.schema_checks"}
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=place, env=environment)
        for status, count in _counts(server).items():
            outcome.count(f"answered with {status}", count)
            if status >= 500 and status != 503:
                outcome.fail(f"{unit}: {count} answered with {status}")
    if done.returncode:
        outcome.fail(f"{unit}: {' '.join(done.stdout.strip().splitlines()[-12:])}")
    return outcome


def _counts(server: ServerProcess) -> dict[int, int]:
    with urllib.request.urlopen(f"{server.address}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    counts: dict[int, int] = {}
    for line in lines:
        if match := re.match(r'leapts_requests_total\{.*status="(\d+)"\} (\d+)', line):
            counts[int(match[1])] = counts.get(int(match[1]), 0) + int(match[2])
    return counts
