"""The trials of a search on a Ray cluster: as many at a time as it has processors.

A trial needs no other, and its outcome goes to the search as soon as it ends; so a lost machine costs what it was
fitting, which is fitted again elsewhere, and nothing else.
"""

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, replace
from itertools import islice

import torch

from leapts.data.panel import Panel
from leapts.errors import LeapTSError, WorkerLostError
from leapts.scaleout.with_ray import connected, processors, ray
from leapts.tuning import Candidate, Outcome, fit_once

# How often a trial is begun again whose process was lost: a trial that brings down its machine must not go on for ever.
_MORE_ATTEMPTS = 3


@dataclass(frozen=True)
class FitOnCluster:
    """An engine for `leapts.tuning.tune`. Every trial has one processor, and runs to its end.

    Attributes:
        address: The Ray cluster's; by default the one Ray is in already, or a new one on this machine.
        fit: What to do with a candidate.
    """

    address: str | None = None
    fit: Callable[[Candidate, Panel], Outcome] = fit_once

    def __call__(self, panel: Panel, candidates: Iterator[Candidate]) -> Generator[Outcome, None, None]:
        """The outcomes, in the order in which they end.

        Raises:
            WorkerLostError: When the processes that fitted a trial were lost again and again.
        """
        with connected(self.address):
            data = ray.put(panel)
            begin = ray.remote(num_cpus=1, max_retries=_MORE_ATTEMPTS, scheduling_strategy="SPREAD")(_fit)
            running: set[ray.ObjectRef] = set()
            try:
                while True:
                    # Machines come and go, so they are counted each time.
                    for candidate in islice(candidates, max(0, processors() - len(running))):
                        running.add(begin.remote(self.fit, replace(candidate, is_hopeless=_never), data))
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
    """The errors of the other trials are not at hand here."""
    return False


def _outcome(task: "ray.ObjectRef") -> Outcome:
    try:
        outcome: Outcome = ray.get(task)
        return outcome
    except ray.exceptions.RayTaskError as error:
        # Raised as it would be without Ray.
        raise error.cause if isinstance(error.cause, LeapTSError) else error from None
    except (ray.exceptions.WorkerCrashedError, ray.exceptions.NodeDiedError, ray.exceptions.OutOfMemoryError) as error:
        raise WorkerLostError(
            f"the processes that fitted a trial were lost {_MORE_ATTEMPTS + 1} times; give the machines more memory, "
            "or fix input_size and hidden_size to smaller values"
        ) from error
