"""Run a suite on a Ray cluster whose machines share the folders of results and data.

Every run has its own process, as on one machine. Runs of a lost machine are repeated, unless they were recorded.
"""

import os
from collections.abc import Sequence
from pathlib import Path

import torch

from leapts.datasets.loading import FOLDER_VARIABLE
from leapts_bench import execution
from leapts_bench.runs import Job, parse_run


def work_on_cluster(runs: Sequence[Job], target: Path, *, address: str | None = None, tell: execution.Tell) -> int:
    """Do all runs that are not done, one per processor of the cluster.

    Args:
        runs: The runs.
        target: The file of the results.
        address: The address of the cluster; by default a new one on this machine.
        tell: Called with a message for every run.

    Returns:
        The number of failed runs; the same call tries them again.
    """
    import ray

    from leapts.integrations.ray.forecast import connected

    waiting = execution.pending(runs, target)
    tell(f"{len(runs)} runs, {len(waiting)} to do")
    with connected(address):
        # A new process for each run; a run on a lost machine is repeated.
        do = ray.remote(num_cpus=1, max_calls=1, max_retries=-1)(_work)
        data = os.environ.get(FOLDER_VARIABLE)
        tasks = {do.remote(run.model_dump_json(), str(target.absolute()), data): run for run in waiting}
        left = list(tasks)
        while left:
            (ready, *_), left = ray.wait(left)
            tell(f"[{len(waiting) - len(left)}/{len(waiting)}] {tasks[ready]}: {ray.get(ready)}")
    return len(execution.pending(waiting, target))


def _work(run: str, target: str, data: str | None) -> str:
    """Do one run in a process of the cluster; return errors instead of raising them, so that other runs continue."""
    torch.set_num_threads(1)
    if data is not None:
        os.environ[FOLDER_VARIABLE] = data
    try:
        return execution.work(parse_run(run), Path(target))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
