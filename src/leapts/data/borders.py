"""Where training ends and validation and test begin: borders alone, without any data."""

from dataclasses import dataclass
from typing import NamedTuple

from leapts.errors import DataError


class Span(NamedTuple):
    """Steps from `start` up to `stop`."""

    start: int
    stop: int

    def with_history(self, steps: int) -> "Span":
        """The span with the steps before it that its first window looks back on.

        Validation and test windows look back into what comes before, as is the standard protocol: what they
        forecast lies in the span, what they look at may not.
        """
        return Span(max(self.start - steps, 0), self.stop)


@dataclass(frozen=True)
class Split:
    """Borders shared by all series, in the order of time; steps after the test span are not used."""

    train: Span
    val: Span
    test: Span


def split_by_steps(train: int, val: int, test: int) -> Split:
    """Spans of so many steps, from the start."""
    return Split(Span(0, train), Span(train, train + val), Span(train + val, train + val + test))


def split_by_months(train: int, val: int, test: int, steps_per_day: int) -> Split:
    """Months of 30 days, as the ETT benchmarks count them."""
    month = 30 * steps_per_day
    return split_by_steps(train * month, val * month, test * month)


def split_by_fractions(length: int, train: float, test: float) -> Split:
    """Shares of the whole, rounded down for train and test; validation takes what is between.

    This is how the benchmarks round: 0.7 and 0.2 of 966 steps give 676, 97 and 193.

    Raises:
        DataError: When the shares leave nothing to train on or to test.
    """
    # A share such as 0.7 of 10 is 7, though in floating point it may come out just below.
    train_steps, test_steps = int(length * train + 1e-9), int(length * test + 1e-9)
    val_steps = length - train_steps - test_steps
    if train_steps < 1 or test_steps < 1 or val_steps < 0:
        raise DataError(
            f"{length} steps cannot be split into {train:g} for training and {test:g} for testing; "
            "the shares must be positive, and at most 1 together"
        )
    return split_by_steps(train_steps, val_steps, test_steps)
