"""Run the trials of a search on a Ray cluster, one on each processor.

Trials are independent, and each outcome reaches the search as soon as its trial ends. When a machine is lost, only its
unfinished trials are repeated on another one.
"""

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, replace
from itertools import islice

import torch

from leapts.data.panel import Panel
from leapts.errors import LeapTSError, WorkerLostError
from leapts.integrations.ray.forecast import connected, processors, ray
from leapts.integrations.tuning import Candidate, Outcome, fit_once
from leapts.renamed import renamed_attribute

_MAX_RETRIES = 3  # of a trial whose process was lost
__getattr__ = renamed_attribute(__name__, {"FitOnCluster": "RayEngine"})


@dataclass(frozen=True)
class RayEngine:
    """Run trials on a Ray cluster: an engine for `leapts.integrations.tuning.tune`.

    Each trial uses one processor. No trial is pruned.
    """

    address: str | None = None  # of the cluster; by default the current one, or a new one on this machine
    fit: Callable[[Candidate, Panel], Outcome] = fit_once

    def __call__(self, panel: Panel, candidates: Iterator[Candidate]) -> Generator[Outcome, None, None]:
        """Fit every candidate and yield outcomes in the order in which trials end.

        Raises:
            WorkerLostError: When the process of a trial was lost more than `_MAX_RETRIES` times.
        """
        with connected(self.address):
            data = ray.put(panel)
            begin = ray.remote(num_cpus=1, max_retries=_MAX_RETRIES, scheduling_strategy="SPREAD")(_fit)
            running: set[ray.ObjectRef] = set()
            try:
                while True:
                    # Machines can join or leave at any time.
                    for candidate in islice(candidates, max(0, processors() - len(running))):
                        running.add(begin.remote(self.fit, replace(candidate, should_prune=_never), data))
                    if not running:
                        return
                    (ended, *_), _ = ray.wait(list(running))
                    running.remove(ended)
                    yield _outcome(ended)
            finally:
                for task in running:
                    ray.cancel(task, force=True)


def _fit(fit: Callable[[Candidate, Panel], Outcome], candidate: Candidate, panel: Panel) -> Outcome:
    torch.set_num_threads(1)
    return fit(candidate, panel)


def _never(_: float) -> bool:
    """Never prune: the errors of other trials are not known on a worker."""
    return False


def _outcome(task: "ray.ObjectRef") -> Outcome:
    try:
        outcome: Outcome = ray.get(task)
        return outcome
    except ray.exceptions.RayTaskError as error:
        # Raise the same error as without Ray.
        raise error.cause if isinstance(error.cause, LeapTSError) else error from None
    except (ray.exceptions.WorkerCrashedError, ray.exceptions.NodeDiedError, ray.exceptions.OutOfMemoryError) as error:
        raise WorkerLostError(
            f"the process of a trial was lost {_MAX_RETRIES + 1} times; use machines with more memory, or smaller "
            "values of input_size and hidden_size"
        ) from error
