"""The seam between a search and the processes that do its trials.

An engine takes the next candidate when it has room for one, and hands over every outcome as it ends: so the search
knows all that can be known before it proposes, and nothing that ended is lost with what did not.
"""

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import Protocol

from leapts.data.panel import Panel
from leapts.errors import TrainingError
from leapts.forecaster import LeapTS
from leapts.training import Progress, TrainingStep


@dataclass(frozen=True)
class Candidate:
    """A forecaster that is to be fitted.

    Attributes:
        number: By which the search knows it.
        forecaster: Not fitted yet.
        is_hopeless: Told the error at each look at the validation windows, says whether to stop there; an engine that
            works elsewhere need not ask.
    """

    number: int
    forecaster: LeapTS
    is_hopeless: Callable[[float], bool]


@dataclass(frozen=True)
class Outcome:
    """How a fit went.

    Attributes:
        number: The candidate's.
        looks: The error at each look at the validation windows; teachers' come first.
        validation: The least of the model's own; none where the fit was cut short or diverged.
        diverged: Whether it did.
    """

    number: int
    looks: tuple[float, ...]
    validation: float | None
    diverged: bool = False


class Engine(Protocol):
    """Fits candidates."""

    def __call__(self, panel: Panel, candidates: Iterator[Candidate]) -> Generator[Outcome, None, None]:
        """Fit all candidates to the panel; each is asked for only when there is room, and told of when it ends."""


class _HopelessError(Exception):
    """Ends a fit that is not worth its time."""


def fit_once(candidate: Candidate, panel: Panel, progress: Progress | None = None) -> Outcome:
    """Fit one candidate.

    Args:
        candidate: What to fit.
        panel: What to fit it to.
        progress: Called after every step of training.
    """
    looks: list[float] = []

    def watch(step: TrainingStep) -> None:
        if progress is not None:
            progress(step)
        if step.validation is not None:
            looks.append(step.validation)
            if candidate.is_hopeless(step.validation):
                raise _HopelessError

    try:
        fitted = candidate.forecaster.fit(panel, progress=watch)
    except _HopelessError:
        return Outcome(candidate.number, tuple(looks), None)
    except TrainingError:
        return Outcome(candidate.number, tuple(looks), None, diverged=True)
    return Outcome(candidate.number, tuple(looks), fitted.report_.best_validation)


@dataclass(frozen=True)
class FitHere:
    """One candidate after the other, in this process."""

    progress: Progress | None = None

    def __call__(self, panel: Panel, candidates: Iterator[Candidate]) -> Generator[Outcome, None, None]:
        """The outcomes, in order."""
        for candidate in candidates:
            yield fit_once(candidate, panel, self.progress)
