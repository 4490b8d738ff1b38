"""Impute gaps and missing values: carry forward, interpolate, or a constant."""

import numpy as np
import numpy.typing as npt

from leapts.config import Fill

Values = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]


def spread(values: Values, offsets: Index, positions: Index) -> tuple[Values, Index]:
    """Insert NaN at the missing steps of each series, where `positions` are the steps of the values.

    Returns the values and their offsets.
    """
    lengths = positions[offsets[1:] - 1] + 1
    wider = np.concatenate([[0], np.cumsum(lengths)])
    result = np.full(wider[-1], np.nan)
    result[np.repeat(wider[:-1], np.diff(offsets)) + positions] = values
    return result, wider


def leading(values: Values, offsets: Index) -> Index:
    """Count the missing values at the start of each series."""
    filled = np.flatnonzero(np.isfinite(values))
    next_filled = np.append(filled, len(values))[np.searchsorted(filled, offsets[:-1])]
    count: Index = np.minimum(next_filled, offsets[1:]) - offsets[:-1]
    return count


def fill_missing(values: Values, offsets: Index, fill: Fill) -> tuple[Values, Index, Index]:
    """Replace NaN and infinities, all by a constant, or each by its neighbors.

    `ffill` repeats the last value; `interpolate` draws a straight line between the neighbors, and repeats the last
    value at the end of a series. Both remove missing values at the start of a series, which have no value before them.
    Every series needs a finite value.

    Returns the values, their offsets, and the number of leading steps removed from each series.
    """
    missing = ~np.isfinite(values)
    removed = np.zeros(len(offsets) - 1, dtype=np.int64)
    if not isinstance(fill, str):
        return np.where(missing, float(fill), values), offsets, removed
    removed = leading(values, offsets)
    if removed.any():
        lengths = np.diff(offsets)
        within = np.arange(len(values)) - np.repeat(offsets[:-1], lengths)
        kept = within >= np.repeat(removed, lengths)
        values, missing = values[kept], missing[kept]
        offsets = np.concatenate([[0], np.cumsum(lengths - removed)])
    index = np.arange(len(values))
    before = np.maximum.accumulate(np.where(missing, 0, index))
    if fill == "ffill":
        return values[before], offsets, removed
    after = np.minimum.accumulate(np.where(missing, len(values), index)[::-1])[::-1]
    at_end = after >= np.repeat(offsets[1:], np.diff(offsets))
    after = np.where(at_end, before, after)
    weight = np.where(at_end, 0.0, (index - before) / np.maximum(after - before, 1))
    return values[before] * (1 - weight) + values[after] * weight, offsets, removed
