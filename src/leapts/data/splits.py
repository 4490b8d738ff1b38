"""Cutting a panel into train, validation and test, in the order of time."""

from typing import NamedTuple

from leapts.data.borders import Split
from leapts.data.panel import Panel
from leapts.data.validation import require_length


class PanelSplit(NamedTuple):
    """A panel cut in three; validation and test come with the history they look back on."""

    train: Panel
    val: Panel
    test: Panel


def split_at(panel: Panel, split: Split, input_size: int) -> PanelSplit:
    """Cuts every series at the same borders, with `input_size` steps of history before validation and test.

    Raises:
        DataError: When a series is shorter than the borders.
    """
    require_length(panel, split.test.stop, "this split")
    return PanelSplit(
        train=panel.slice(*split.train),
        val=panel.slice(*split.val.with_history(input_size)),
        test=panel.slice(*split.test.with_history(input_size)),
    )


def split_by_sizes(panel: Panel, *, val_size: int, test_size: int, input_size: int) -> PanelSplit:
    """The last `test_size` steps of each series to test, the `val_size` before them to validate.

    Series may differ in length, so the borders are counted from each one's end.

    Args:
        panel: The panel.
        val_size: Steps to validate on; may be 0.
        test_size: Steps to test on; may be 0.
        input_size: Steps of history to keep before validation and test.

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
