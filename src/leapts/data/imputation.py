"""The explicit ways out of gaps and missing values: carry forward, interpolate, or a number."""

import numpy as np
import numpy.typing as npt

from leapts.config import Fill

Values = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]


def spread(values: Values, offsets: Index, positions: Index) -> tuple[Values, Index]:
    """Puts each value at its position within its series, with NaN in the gaps between.

    Args:
        values: All series' values, one series after the other.
        offsets: Where each series starts, and where the last one stops.
        positions: Each value's step within its series, increasing from 0.

    Returns:
        The values with gaps as NaN, and their offsets.
    """
    lengths = positions[offsets[1:] - 1] + 1
    wider = np.concatenate([[0], np.cumsum(lengths)])
    result = np.full(wider[-1], np.nan)
    result[np.repeat(wider[:-1], np.diff(offsets)) + positions] = values
    return result, wider


def leading(values: Values, offsets: Index) -> Index:
    """How many values are missing at the start of each series (all of them, for a series without any)."""
    filled = np.flatnonzero(np.isfinite(values))
    next_filled = np.append(filled, len(values))[np.searchsorted(filled, offsets[:-1])]
    count: Index = np.minimum(next_filled, offsets[1:]) - offsets[:-1]
    return count


def fill_missing(values: Values, offsets: Index, fill: Fill) -> tuple[Values, Index, Index]:
    """Fills NaN and infinities.

    A number goes wherever a value is missing. `ffill` carries the last value forward; `interpolate` draws a
    straight line between the neighbours in time, and carries the last value forward at the end of a series.
    Both need a value to start from, so a series that starts with missing values is made to start at its first
    number.

    Args:
        values: All series' values, one series after the other; every series has at least one number.
        offsets: Where each series starts, and where the last one stops.
        fill: The way.

    Returns:
        The values, their offsets, and how many leading steps each series lost.
    """
    missing = ~np.isfinite(values)
    lost = np.zeros(len(offsets) - 1, dtype=np.int64)
    if not isinstance(fill, str):
        return np.where(missing, float(fill), values), offsets, lost
    lost = leading(values, offsets)
    if lost.any():
        lengths = np.diff(offsets)
        within = np.arange(len(values)) - np.repeat(offsets[:-1], lengths)
        kept = within >= np.repeat(lost, lengths)
        values, missing = values[kept], missing[kept]
        offsets = np.concatenate([[0], np.cumsum(lengths - lost)])
    index = np.arange(len(values))
    before = np.maximum.accumulate(np.where(missing, 0, index))
    if fill == "ffill":
        return values[before], offsets, lost
    after = np.minimum.accumulate(np.where(missing, len(values), index)[::-1])[::-1]
    beyond = after >= np.repeat(offsets[1:], np.diff(offsets))
    after = np.where(beyond, before, after)
    # Nothing to draw a line to: a share of 0 leaves the last value as it is, to the bit.
    share = np.where(beyond, 0.0, (index - before) / np.maximum(after - before, 1))
    return values[before] * (1 - share) + values[after] * share, offsets, lost
