"""Eight benchmark runners on one results folder, killed at random: no result is lost, duplicated or truncated."""

import hashlib
import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import numpy as np

from leapts_bench import execution, results
from leapts_bench.runs import LeapTSDesign, Learning, Run
from leapts_bench.suites import FULL, Entry
from leapts_bench.tables.pages import render
from leapts_qa.outcome import Outcome

RUNNERS = 8
KILLS_A_UNIT = 50
UNITS = tuple(f"seed {seed}" for seed in range(10))
_SETS = {"COVID": (12, 24), "ETTh1": (18, 24), "ILI": (12, 18, 24, 36)}
_LONG = 20_000  # characters of a line, so that a kill can truncate it


def run(unit: str, folder: Path, *, kills: int = KILLS_A_UNIT, seeds: int = 12) -> Outcome:
    """Let runners work through suites, one after the other, until a number of them were killed.

    Args:
        unit: The seed of the kills.
        folder: A folder to work in.
        kills: Number of kills.
        seeds: Seeds of every data set and horizon, which set the length of a suite.
    """
    rng = np.random.default_rng(int(unit.rpartition(" ")[2]))
    runs = suite(seeds)
    expected = _serial(runs, folder / "serial" / "main.jsonl")
    outcome, done, rounds = Outcome(), 0, 0
    while done < kills:
        target = folder / str(rounds) / "main.jsonl"
        killed = worked(runs, target, rng, most=kills - done)
        problem = judge(runs, target, expected)
        if problem:
            outcome.fail(f"{unit}, round {rounds}, {killed} kills: {problem}")
        else:
            outcome.count("killed, all results intact, same table as a single runner", killed)
        done, rounds = done + max(killed, 1), rounds + 1
    return outcome


def suite(seeds: int) -> list[Run]:
    """Create runs that are never executed: only their keys and places in the tables matter."""
    design, learning = LeapTSDesign(options={"hidden_size": 8}), Learning(epochs=1)
    return [
        Run(dataset=name, horizon=horizon, input_size=96, model=design, training=learning, seed=seed)
        for name, horizons in _SETS.items()
        for horizon in horizons
        for seed in range(seeds)
    ]


def stand_in(run: Run, kept: Path | None = None) -> results.Line:  # noqa: ARG001
    """Create a result in milliseconds, the same in every process."""
    digest = hashlib.sha256(run.key.encode()).digest()
    time.sleep(digest[0] / 255 * 0.01)
    mse, mae = (0.1 + digest[place] / 255 for place in (1, 2))
    scores = {"mse": mse, "mae": mae, "mse_original": 4 * mse, "mae_original": 2 * mae, "leaps": 1.5, "windows": 100}
    scores |= {"mse_whole_batches": mse, "mae_whole_batches": mae}
    return {
        "key": run.key,
        "commit": "0" * 40,
        "run": run.model_dump(mode="json"),
        "seed": run.seed,
        "test": scores,
        "parameters": 1234,
        "seconds": {"fit": 10.0, "test": 1.0},
        "memory": {"imports": 300_000_000, "peak": 412_000_000},
        "text": "x" * _LONG,
    }


def page(runs: Sequence[Run], folder: Path) -> str:
    """Render the results page of a folder."""
    return "".join(render({"main": [Entry(FULL, run) for run in runs]}, results.finished(folder)).values())


def worked(runs: Sequence[Run], target: Path, rng: np.random.Generator, *, most: int) -> int:
    """Let runners do all runs while some are killed and replaced.

    Returns:
        The number of kills.
    """
    living = {_runner(runs, target, int(rng.integers(1 << 30))) for _ in range(RUNNERS)}
    killed = 0
    while living:
        time.sleep(rng.uniform(0, 0.03))
        victim = int(rng.choice(sorted(living)))
        if killed < most:
            os.kill(victim, signal.SIGKILL)
        for runner in sorted(living):
            ended, status = os.waitpid(runner, os.WNOHANG if runner != victim or killed >= most else 0)
            if not ended:
                continue
            living.discard(runner)
            if os.WIFSIGNALED(status):
                killed += 1
                living.add(_runner(runs, target, int(rng.integers(1 << 30))))
            elif os.WEXITSTATUS(status):
                raise RuntimeError("a runner failed")
    return killed


def judge(runs: Sequence[Run], target: Path, expected: str) -> str:
    """Return the errors in the results."""
    content = target.read_bytes()
    if not content.endswith(b"\n"):
        return "the last line is torn"
    try:
        found = results.read(target)
    except ValueError as error:
        return f"a line is torn: {error}"
    keys = [line["key"] for line in found]
    lost = {run.key for run in runs} - set(keys)
    if lost or len(keys) > len(set(keys)):
        return f"{len(lost)} results lost, {len(keys) - len(set(keys))} doubled"
    return "" if page(runs, target.parent) == expected else "another table than that of one runner alone"


def _serial(runs: Sequence[Run], target: Path) -> str:
    """Return the page of a single runner."""
    os.waitpid(_runner(runs, target, None), 0)
    return page(runs, target.parent)


def _runner(runs: Sequence[Run], target: Path, seed: int | None) -> int:
    """Fork a process that does the pending runs in a random order; without a seed, in order."""
    child = os.fork()
    if child == 0:
        _work(runs, target, seed)
    return child


def _work(runs: Sequence[Run], target: Path, seed: int | None) -> NoReturn:
    code = 1
    try:
        execution.execute = stand_in
        rng = None if seed is None else np.random.default_rng(seed)
        while waiting := execution.pending(runs, target):
            for place in range(len(waiting)) if rng is None else rng.permutation(len(waiting)):
                execution.work(waiting[place], target)
        code = 0
    finally:
        os._exit(code)
