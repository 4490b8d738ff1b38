"""A panel from plain arrays, for callers without a table: the server, and programs that keep their own data."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch

from leapts.config import Fill
from leapts.data.columns import visible_name
from leapts.data.imputation import fill_missing, leading
from leapts.data.panel import Panel
from leapts.data.validation import MAX_VALUE
from leapts.errors import DataError
from leapts.messages import listed, quoted

Floats = npt.NDArray[np.float64]
Name = str | int


def panel_from_arrays(
    names: Sequence[Name], histories: Sequence[Floats] | Floats, *, fill: Fill | None = None
) -> Panel:
    """Build a panel of integer steps from one array for each series.

    Args:
        names: Names of the series.
        histories: Values of each series, oldest first; a matrix has one row for each series.
        fill: Imputation of missing values; by default they are errors.

    Raises:
        DataError: When a name is repeated, or a history is empty or holds a value that cannot be used.
    """
    shown = [visible_name(str(name)) for name in names]
    if len(set(shown)) < len(names):
        repeated = [name for name, count in Counter(shown).items() if count > 1]
        raise DataError(f"the series {listed(repeated)} is given more than once; give each once")
    if not (isinstance(histories, np.ndarray) and _is_usable(histories)):
        histories = [_complete(name, values, fill) for name, values in zip(names, histories, strict=True)]
    return Panel(
        values=torch.from_numpy(np.concatenate(histories)),
        offsets=torch.from_numpy(np.cumsum([0, *map(len, histories)])),
        series=tuple(names),
        first=np.ones(len(names), dtype=np.int64),
        freq=1,
    )


def _is_usable(values: Floats) -> bool:
    """Whether all values are finite and of a reasonable size; comparisons with NaN are false."""
    return bool(values.size) and float(np.abs(values).max()) <= MAX_VALUE


def _complete(name: Name, values: Floats, fill: Fill | None) -> Floats:
    if _is_usable(values):
        return values
    if not len(values):
        raise DataError(f"series {quoted(name)} has no values; give its history, oldest first")
    missing = ~np.isfinite(values)
    if missing.any():
        if fill is None:
            place = int(missing.argmax())
            raise DataError(
                f"series {quoted(name)} has a missing value at position {place} (counted from 0; "
                f"{int(missing.sum())} in all); fill it in, or fit the model with fill='interpolate' or 'ffill'"
            )
        offsets = np.array([0, len(values)])
        if int(leading(values, offsets)[0]) == len(values):
            raise DataError(f"series {quoted(name)} has no number at all to fill from; leave it out")
        values = fill_missing(values, offsets, fill)[0]
    huge = np.abs(values) > MAX_VALUE
    if huge.any():
        raise DataError(
            f"series {quoted(name)} holds {float(values[huge.argmax()])}, too near the limits of floating point "
            f"(at most {MAX_VALUE:g}); correct it, or measure in a larger unit"
        )
    return values
