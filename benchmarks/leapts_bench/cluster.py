"""Doing the runs of a suite on a Ray cluster, whose machines see the results' folder and the data under one name.

Every run has a process to itself, as on one machine. What a lost machine was doing is done again elsewhere; what it had
recorded is not.
"""

import os
from collections.abc import Sequence
from pathlib import Path

import torch

from leapts.datasets.loading import FOLDER_VARIABLE
from leapts_bench import execution
from leapts_bench.runs import Job, parse_run


def work_on_cluster(runs: Sequence[Job], target: Path, *, address: str | None = None, tell: execution.Tell) -> int:
    """Do all runs that are not done, as many at a time as the cluster has processors.

    Args:
        runs: What to do.
        target: The file of their results.
        address: The cluster's; by default one on this machine.
        tell: Hears of every run.

    Returns:
        How many failed; they can be tried again by the same call.
    """
    import ray

    from leapts.integrations.ray.forecast import connected

    waiting = execution.pending(runs, target)
    tell(f"{len(runs)} runs, {len(waiting)} to do")
    with connected(address):
        # A new process for each run, and a run that was lost with its machine is started again.
        do = ray.remote(num_cpus=1, max_calls=1, max_retries=-1)(_work)
        data = os.environ.get(FOLDER_VARIABLE)
        tasks = {do.remote(run.model_dump_json(), str(target.absolute()), data): run for run in waiting}
        left = list(tasks)
        while left:
            (ready, *_), left = ray.wait(left)
            tell(f"[{len(waiting) - len(left)}/{len(waiting)}] {tasks[ready]}: {ray.get(ready)}")
    return len(execution.pending(waiting, target))


def _work(run: str, target: str, data: str | None) -> str:
    """One run, in a process of the cluster; what went wrong is told, not raised, so that the others go on."""
    torch.set_num_threads(1)
    if data is not None:
        os.environ[FOLDER_VARIABLE] = data
    try:
        return execution.work(parse_run(run), Path(target))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
