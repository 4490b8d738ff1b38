"""Split a panel into training, validation and test, in the order of time."""

from typing import NamedTuple

from leapts.data.panel import Panel
from leapts.data.splits import Span, Split
from leapts.data.validation import require_length


class PanelSplit(NamedTuple):
    """A panel split in three; validation and test include the look-back before them."""

    train: Panel
    val: Panel
    test: Panel


def split_at(panel: Panel, split: Split, input_size: int) -> PanelSplit:
    """Split every series at the same boundaries, with `input_size` steps before validation and test.

    Raises:
        DataError: When a series is shorter than the split.
    """
    require_length(panel, split.test.stop, "this split")
    return PanelSplit(
        train=panel.slice(*split.train),
        val=panel.slice(*with_history(split.val, input_size)),
        test=panel.slice(*with_history(split.test, input_size)),
    )


def split_by_sizes(panel: Panel, *, val_size: int, test_size: int, input_size: int) -> PanelSplit:
    """Split off the last `test_size` steps of each series, and the `val_size` steps before them; both may be 0.

    Raises:
        DataError: When a series has nothing left to train on.
    """
    require_length(panel, val_size + test_size + 1, f"validation ({val_size}), test ({test_size}) and training")
    known = panel.head(-test_size) if test_size else panel
    return PanelSplit(
        train=known.head(-val_size) if val_size else known,
        val=known.tail(val_size + input_size) if val_size else known.tail(0),
        test=panel.tail(test_size + input_size) if test_size else panel.tail(0),
    )


def with_history(span: Span, steps: int) -> Span:
    """Extend a span by the look-back of its first window.

    In the standard protocol the targets of a window lie in the span; its look-back may reach before it.
    """
    return Span(max(span.start - steps, 0), span.stop)
