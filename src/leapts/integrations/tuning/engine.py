"""Engines: run the trials of a search, in this process or elsewhere.

An engine takes the next candidate when it has room for one, and yields every outcome as soon as its trial ends. So the
search knows all finished trials when it proposes the next one, and an interruption loses only unfinished trials.
"""

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import Protocol

from leapts.data.panel import Panel
from leapts.errors import TrainingError
from leapts.forecasting import LeapTS
from leapts.training.loop import Progress, TrainingStep


@dataclass(frozen=True)
class Candidate:
    """A model to fit in one trial."""

    number: int  # of the trial
    forecaster: LeapTS  # not yet fitted
    should_prune: Callable[[float], bool]  # called with the error of each validation check; True stops the fit


@dataclass(frozen=True)
class Outcome:
    """The result of one trial."""

    number: int  # of the trial
    checks: tuple[float, ...]  # the error of each validation check; those of teacher models come first
    validation: float | None  # the lowest validation error of the model; None if the fit was pruned or diverged
    diverged: bool = False


class Engine(Protocol):
    """Run trials."""

    def __call__(self, panel: Panel, candidates: Iterator[Candidate]) -> Generator[Outcome, None, None]:
        """Fit every candidate to the panel, and yield each outcome as its trial ends."""


class _PrunedError(Exception):
    """Stop a fit that is pruned."""


def fit_once(candidate: Candidate, panel: Panel, progress: Progress | None = None) -> Outcome:
    """Fit one candidate; `progress` is called after every training step."""
    checks: list[float] = []

    def watch(step: TrainingStep) -> None:
        if progress is not None:
            progress(step)
        if step.validation is not None:
            checks.append(step.validation)
            if candidate.should_prune(step.validation):
                raise _PrunedError

    try:
        fitted = candidate.forecaster.fit(panel, progress=watch)
    except _PrunedError:
        return Outcome(candidate.number, tuple(checks), None)
    except TrainingError:
        return Outcome(candidate.number, tuple(checks), None, diverged=True)
    return Outcome(candidate.number, tuple(checks), fitted.report_.best_validation)


@dataclass(frozen=True)
class LocalEngine:
    """Run trials one after the other in this process."""

    progress: Progress | None = None

    def __call__(self, panel: Panel, candidates: Iterator[Candidate]) -> Generator[Outcome, None, None]:
        """Fit every candidate and yield its outcome."""
        for candidate in candidates:
            yield fit_once(candidate, panel, self.progress)
