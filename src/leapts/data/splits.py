"""Split a panel into train, validation and test, in the order of time."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from leapts.errors import DataError

if TYPE_CHECKING:  # the catalogue reads split boundaries, and must not load torch
    from leapts.data.panel import Panel


class Span(NamedTuple):
    """Steps from `start` up to `stop`."""

    start: int
    stop: int

    def with_history(self, steps: int) -> "Span":
        """Extend the span by the look-back of its first window.

        In the standard protocol the targets of a window lie in the span; its look-back may reach before it.
        """
        return Span(max(self.start - steps, 0), self.stop)


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


class PanelSplit(NamedTuple):
    """A panel split in three; validation and test include the look-back before them."""

    train: "Panel"
    val: "Panel"
    test: "Panel"


def split_at(panel: "Panel", split: Split, input_size: int) -> PanelSplit:
    """Split every series at the same boundaries, with `input_size` steps before validation and test.

    Raises:
        DataError: When a series is shorter than the split.
    """
    from leapts.data.validation import require_length

    require_length(panel, split.test.stop, "this split")
    return PanelSplit(
        train=panel.slice(*split.train),
        val=panel.slice(*split.val.with_history(input_size)),
        test=panel.slice(*split.test.with_history(input_size)),
    )


def split_by_sizes(panel: "Panel", *, val_size: int, test_size: int, input_size: int) -> PanelSplit:
    """Split off the last `test_size` steps of each series, and the `val_size` steps before them; both may be 0.

    Raises:
        DataError: When a series has nothing left to train on.
    """
    from leapts.data.validation import require_length

    require_length(panel, val_size + test_size + 1, f"validation ({val_size}), test ({test_size}) and training")
    known = panel.head(-test_size) if test_size else panel
    return PanelSplit(
        train=known.head(-val_size) if val_size else known,
        val=known.tail(val_size + input_size) if val_size else known.tail(0),
        test=panel.tail(test_size + input_size) if test_size else panel.tail(0),
    )
