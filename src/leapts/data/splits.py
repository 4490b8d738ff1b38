"""Split boundaries of data sets: training, validation and test, in the order of time."""

from dataclasses import dataclass
from typing import NamedTuple

from leapts.errors import DataError


class Span(NamedTuple):
    """Steps from `start` up to `stop`."""

    start: int
    stop: int


@dataclass(frozen=True)
class Split:
    """Split boundaries shared by all series; steps after the test span are not used."""

    train: Span
    val: Span
    test: Span


def split_by_steps(train: int, val: int, test: int) -> Split:
    """Split at numbers of steps, counted from the start."""
    return Split(Span(0, train), Span(train, train + val), Span(train + val, train + val + test))


def split_by_months(train: int, val: int, test: int, steps_per_day: int) -> Split:
    """Split at months of 30 days, as the ETT benchmarks do."""
    month = 30 * steps_per_day
    return split_by_steps(train * month, val * month, test * month)


def split_by_fractions(length: int, train: float, test: float) -> Split:
    """Split by shares, rounded down for train and test; validation takes the steps between.

    The benchmarks round this way: 0.7 and 0.2 of 966 steps give 676, 97 and 193.

    Raises:
        DataError: When the shares leave nothing to train on or to test.
    """
    # In floating point, 0.7 of 10 may be just below 7.
    train_steps, test_steps = int(length * train + 1e-9), int(length * test + 1e-9)
    val_steps = length - train_steps - test_steps
    if train_steps < 1 or test_steps < 1 or val_steps < 0:
        raise DataError(
            f"{length} steps cannot be split into {train:g} for training and {test:g} for testing; "
            "the shares must be positive, and at most 1 together"
        )
    return split_by_steps(train_steps, val_steps, test_steps)
