"""Execute runs: one in this process, or many in separate processes with one thread each.

With a process for each run, peak memory is that of the run, and a crash affects no other run.
"""

import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType

from leapts.data.splits import Split
from leapts.datasets.catalogue import find
from leapts_bench import results
from leapts_bench.analysis import analysed
from leapts_bench.everyday import running as everyday
from leapts_bench.fitting import fit, refit
from leapts_bench.gift import running as published
from leapts_bench.m4 import Earlier, M4Benchmark, prepare_m4
from leapts_bench.protocol import Benchmark, prepare
from leapts_bench.runs import AnalysisRun, Job, PublishedRun, Run

Tell = Callable[[str], None]

_SHOWN = ("mse", "mae", "smape", "mase", "crps", "sql")

# How a set is cut for a trial, where not as for the test.
Cut = Split | Earlier


def execute(run: Run, kept: Path | None = None) -> results.Line:
    """Fit, score the test part once, and return the result line.

    Args:
        run: The run.
        kept: The folder of the training state, to resume from; the total time of a resumed run is not known.
    """
    before = _peak()
    described = description(run)
    started = time.perf_counter()
    states = None if kept is None else _states(kept)
    goes_on = states is not None and states.exists()
    data = opened(run)
    fitted = fit(run, data, states)
    trained = time.perf_counter()
    validation = data.validation_scores(fitted.predictor)
    predictor = fitted.predictor
    if isinstance(data, M4Benchmark):
        steps = [report["best_step"] for report in fitted.reports]
        predictor = refit(run, data.whole(), variates=data.variates, steps=steps)
    scoring = time.perf_counter()
    test = data.test_scores(predictor)
    analysis = {"analysis": analysed(run.dataset, data, fitted.predictor)} if isinstance(run, AnalysisRun) else {}
    reference = {"naive2": data.naive2_scores().to_dict()} if isinstance(data, M4Benchmark) else {}
    return {
        **described,
        "test": test.to_dict(),
        **reference,
        **analysis,
        "validation": validation.to_dict(),
        "training": fitted.report,
        "parameters": fitted.parameters,
        "seconds": {
            "fit": None if goes_on else round(trained - started, 2),
            "test": round(time.perf_counter() - scoring, 2),
        },
        "memory": {"imports": before, "peak": _peak()},
    }


def trial(run: Run, cuts: Sequence[Cut | None] = ()) -> results.Line:
    """Fit and score on the validation part only, or on several validation parts."""
    described = description(run)
    started = time.perf_counter()
    scores, parameters = [], 0
    for cut in cuts or [None]:
        data = opened(run, cut)
        fitted = fit(run, data)
        scores.append(data.validation_scores(fitted.predictor).to_dict())
        parameters = fitted.parameters
    return {
        **described,
        "validations": scores,
        "parameters": parameters,
        "seconds": round(time.perf_counter() - started, 2),
    }


def opened(run: Run, cut: Cut | None = None) -> Benchmark | M4Benchmark:
    """Load the data of a run under the protocol of its data set."""
    name, back, ahead = run.dataset, run.input_size, run.horizon
    if isinstance(cut, Earlier) or find(name).split is None:
        earlier = cut if isinstance(cut, Earlier) else None
        return prepare_m4(name, input_size=back, horizon=ahead, learning=run.training, earlier=earlier)
    return prepare(name, input_size=back, horizon=ahead, borders=cut)


def execute_published(run: PublishedRun) -> results.Line:
    """Forecast and score a task of a published benchmark."""
    before, described = _peak(), description(run)
    scored = harness_of(run).forecast_and_score(run)
    return {**described, **scored, "memory": {"imports": before, "peak": _peak()}}


def harness_of(run: PublishedRun) -> ModuleType:
    """Module that does a run, knows its files and packages, and estimates its time."""
    return everyday if run.benchmark == "defaults" else published


def description(run: Job) -> results.Line:
    """Describe the run and its code; call it before a run, as the code may change during it."""
    return {"key": run.key, "run": run.description(), "seed": run.seed, **results.provenance()}


def work(run: Job, target: Path) -> str:
    """Do a run and record it, unless it is done or in progress; return which of these was the case."""
    with results.claimed(target.parent, run.key) as mine:
        if not mine:
            return "in work elsewhere"
        if run.key in results.finished(target.parent):
            return "done before"
        kept = target.parent / ".unfinished" / run.key
        assert isinstance(run, Run | PublishedRun), "a run of unknown kind"
        line = execute(run, kept) if isinstance(run, Run) else execute_published(run)
        results.append(target, line)
        shutil.rmtree(kept, ignore_errors=True)
    shown = [f"{name} {line['test'][name]:.4f}" for name in _SHOWN if name in line["test"]]
    seconds = line["seconds"].get("core", line["seconds"].get("fit"))
    return ", ".join(shown) + ("" if seconds is None else f" in {seconds:.0f} s")


def pending(runs: Sequence[Job], target: Path) -> list[Job]:
    """List the runs without a result in the folder of the target, each once."""
    done = results.finished(target.parent)
    return list({run.key: run for run in runs if run.key not in done}.values())


def work_all(runs: Sequence[Job], target: Path, *, workers: int, time_limit: float | None = None, tell: Tell) -> int:
    """Do all runs that are not done, `workers` at a time, each at most `time_limit` seconds.

    Returns:
        The number of failed runs; the same call tries them again.
    """
    waiting = pending(runs, target)
    tell(f"{len(runs)} runs, {len(waiting)} to do")

    def one(numbered: tuple[int, Job]) -> bool:
        number, run = numbered
        outcome = in_own_process("work", run, target, time_limit)
        tell(f"[{number}/{len(waiting)}] {run}: {outcome.stdout.strip() or outcome.stderr.strip()}")
        return outcome.returncode == 0

    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(one, enumerate(waiting, 1))).count(False)


def in_own_process(
    command: str, run: Job, target: Path, time_limit: float | None = None
) -> subprocess.CompletedProcess[str]:
    """Do one run in a new process with one thread.

    A process that takes longer than `time_limit` seconds is killed, and the run counts as failed.
    """
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    arguments = [sys.executable, "-m", "leapts_bench", command, str(target)]
    try:
        return subprocess.run(
            arguments,
            input=run.model_dump_json(),
            env=environment,
            capture_output=True,
            text=True,
            timeout=time_limit,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(arguments, 1, "", f"stopped after {time_limit:g} s, the time limit")


def _states(kept: Path) -> Path | None:
    """Return the folder of a run's training state, one for each commit; None for uncommitted code.

    A result can be reproduced at its commit, so no other code may contribute to it.
    """
    code = results.provenance()
    return None if code["commit"] is None or code["changed"] else kept / code["commit"]


def _peak() -> int:
    """Return the peak memory of this process, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
