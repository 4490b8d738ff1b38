"""More requests than a server can handle, and a stop under load."""

import asyncio
import json
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from leapts_bench.server_process import server_process
from leapts_qa.load_generator import GONE, Answer, arriving, in_turns, percentile, request
from leapts_qa.outcome import Outcome
from leapts_qa.samples import LOOKBACK, TINY, forecaster, waves

UNITS = ("2 times the capacity", "10 times the capacity", *(f"stop {seed}" for seed in range(10)))
_PATH = "/v1/forecast"
_LIGHT = 0.2  # share of the capacity that counts as no load
_SELDOM = 0.05  # a third large request while one runs and one is queued must be refused, or the second would be late
_SECONDS = 15.0
_LARGE = {**TINY, "hidden_size": 256, "control_size": 32, "state": {"kind": "cde", "field": "full"}}
_COUNTED = "leapts_qa.counted_server"


def run(unit: str, place: Path) -> Outcome:
    """Run one unit."""
    if unit.startswith("stop"):
        return stopped(int(unit.split()[1]), place)
    return overloaded(float(unit.split()[0]), place)


def overloaded(times: float, place: Path, *, seconds: float = _SECONDS) -> Outcome:
    """Send a server many times the requests it can handle, between two quiet periods.

    The model is large, so that the forecast takes most of the time.
    """
    content = _prepared(place, _LARGE, series_count=96)
    outcome = Outcome()
    with server_process("-m", "leapts", "serve", str(place / "model")) as server:

        async def work() -> tuple[float, Sequence[Answer], Sequence[Answer], Sequence[Answer]]:
            await in_turns(server.port, content, callers=2, until=time.perf_counter() + 2)
            started = time.perf_counter()
            served = await in_turns(server.port, content, callers=2, until=started + seconds / 3)
            capacity = sum(one.status == 200 for one in served) / (time.perf_counter() - started)
            quiet = await arriving(server.port, content, rate=_LIGHT * capacity, seconds=seconds, seed=1)
            loud = await arriving(server.port, content, rate=times * capacity, seconds=seconds, seed=2)
            await asyncio.sleep(1)
            after = await arriving(server.port, content, rate=_LIGHT * capacity, seconds=seconds / 3, seed=3)
            return capacity, quiet, loud, after

        capacity, quiet, loud, after = asyncio.run(work())
    outcome.most("requests a second of capacity", capacity)
    judge(f"{times:g} times the capacity", quiet, loud, after, outcome)
    return outcome


def judge(
    name: str, quiet: Sequence[Answer], loud: Sequence[Answer], after: Sequence[Answer], outcome: Outcome
) -> None:
    """Check a period of overload."""
    accepted = [one for one in loud if one.status == 200]
    refused = [one for one in loud if one.status == 503]
    outcome.count("accepted and answered", len(accepted))
    outcome.count("refused with 503", len(refused))
    for one in loud:
        if one.status not in (200, 503):
            outcome.fail(f"{name}: status {one.status} after {one.seconds:.3f} s")
    for one in refused:
        if b"retry-after:" not in one.content.lower():
            outcome.fail(f"{name}: a refusal does not say when to come again")
    if not accepted or not refused:
        outcome.fail(f"{name}: {len(accepted)} accepted and {len(refused)} refused; some of each are wanted")
        return
    unloaded = percentile(quiet, 99)
    for what, answers in (
        (f"of accepted at {name}", accepted),
        (f"of refused at {name}", refused),
        (f"one second after {name}", after),
    ):
        found = percentile(answers, 99)
        outcome.most(f"ms p99 {what}", found)
        if found > 2 * unloaded:
            outcome.fail(f"{name}: p99 {what} is {found:.1f} ms, more than twice {unloaded:.1f} ms unloaded")
    outcome.most("ms p99 unloaded", unloaded)
    answers = [*quiet, *after]
    outcome.count("answered before and after the load", sum(one.status == 200 for one in answers))
    if others := sorted({one.status for one in answers} - {200, 503}):
        outcome.fail(f"{name}: a quiet server answered with {others}")
    late = sum(one.status == 503 for one in answers)
    outcome.most("refused before and after the load", late)
    if late > _SELDOM * len(answers):
        outcome.fail(f"{name}: a quiet server refused {late} of {len(answers)}")


def stopped(seed: int, place: Path, *, callers: int = 16) -> Outcome:
    """Send a stop signal under load: every request that the server has read must get its complete response."""
    content = _prepared(place, TINY, series_count=8)
    outcome = Outcome()
    pause = float(np.random.default_rng(seed).uniform(0.2, 1.5))
    with server_process("-m", _COUNTED, "serve", str(place / "model"), output=subprocess.PIPE) as server:

        async def work() -> list[Answer]:
            first = await arriving(server.port, content, rate=1, seconds=1, seed=seed)
            calling = asyncio.create_task(
                in_turns(server.port, content, callers=callers, until=time.perf_counter() + 30)
            )
            await asyncio.sleep(pause)
            server.process.send_signal(signal.SIGTERM)
            return first + await calling

        answers = asyncio.run(work())
        assert server.process.stdout is not None
        read = json.loads(server.process.stdout.read().splitlines()[-1])["read"]
        code = server.process.wait(60)
    whole = sum(one.status != GONE for one in answers)
    outcome.count("answered in full after a stop signal", whole)
    outcome.most("requests before the stop signal", read)
    if code:
        outcome.fail(f"stop {seed}: the server ended with {code}")
    if not whole:
        outcome.fail(f"stop {seed}: nothing was asked")
    if whole != read:
        outcome.fail(f"stop {seed}: the server had read {read} requests, and {whole} were answered in full")
    if others := sorted({one.status for one in answers} - {200, 503, GONE}):
        outcome.fail(f"stop {seed}: answered with {others}")
    return outcome


def _prepared(place: Path, model: dict[str, Any], *, series_count: int) -> bytes:
    """Create a model and a request for it."""
    forecaster(model=model).fit(waves()).save(place / "model")
    values = waves(("a",), LOOKBACK)["y"].round(2).tolist()
    series = [{"id": number, "values": values} for number in range(series_count)]
    return request(_PATH, json.dumps({"series": series}).encode())
