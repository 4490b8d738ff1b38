"""Series in one array, and a forecasting task: their last windows, each with the past before it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from jaxtyping import Float64, Int64

Floats = npt.NDArray[np.float64]
Quantiles = Float64[np.ndarray, "series levels horizon"]

LEVELS = tuple(level / 10 for level in range(1, 10))
MEDIAN = LEVELS.index(0.5)


@dataclass(frozen=True, eq=False)
class SeriesSet:
    """Series stored one after the other, with NaN for missing values."""

    values: Float64[np.ndarray, " values"]
    lengths: Int64[np.ndarray, " series"]

    @classmethod
    def of(cls, series: Sequence[Floats]) -> "SeriesSet":
        """Join single series."""
        return cls(np.concatenate(series), np.array([len(one) for one in series]))

    @classmethod
    def from_columns(cls, frame: pd.DataFrame) -> "SeriesSet":
        """Take every column of a frame as a series."""
        return cls.of([frame[name].to_numpy("float64") for name in frame])

    @classmethod
    def from_long(cls, frame: pd.DataFrame, id_col: str, target_col: str = "y") -> "SeriesSet":
        """Read a long frame whose rows are sorted by series."""
        lengths = frame.groupby(id_col, sort=False).size().to_numpy("int64")
        return cls(frame[target_col].to_numpy("float64"), lengths)

    def __len__(self) -> int:
        return len(self.lengths)

    @cached_property
    def ends(self) -> Int64[np.ndarray, " series"]:
        """Index after the last value of each series."""
        return np.cumsum(self.lengths)

    @cached_property
    def owner(self) -> Int64[np.ndarray, " values"]:
        """Series that each value belongs to."""
        return np.repeat(np.arange(len(self)), self.lengths)

    def head(self, drop: int) -> "SeriesSet":
        """Drop the last values of every series."""
        if self.lengths.min() == self.lengths.max():
            matrix = self.values.reshape(len(self), -1)
            return SeriesSet(matrix[:, : matrix.shape[1] - drop].ravel(), self.lengths - drop)
        steps_to_end = self.ends[self.owner] - np.arange(len(self.values))
        return SeriesSet(self.values[steps_to_end > drop], self.lengths - drop)

    def tail(self, count: int) -> "SeriesSet":
        """Keep at most the last `count` values of every series."""
        if count >= self.lengths.max():
            return self
        steps_to_end = self.ends[self.owner] - np.arange(len(self.values))
        return SeriesSet(self.values[steps_to_end <= count], np.minimum(self.lengths, count))

    def last(self, count: int, *, drop: int = 0) -> Float64[np.ndarray, "series count"]:
        """Cut the last `count` values of every series, after dropping some."""
        return self.values[self.ends[:, None] - drop - count + np.arange(count)]

    def filled(self) -> "SeriesSet":
        """Replace a missing value by the one before it, and by 0 at the start of a series."""
        starts = (self.ends - self.lengths)[self.owner]
        known = np.where(np.isnan(self.values), starts, np.arange(len(self.values)))
        return SeriesSet(np.nan_to_num(self.values[np.maximum.accumulate(known)]), self.lengths)

    def mean_seasonal_difference(self, season: int, *, power: int = 1) -> Float64[np.ndarray, " series"]:
        """Mean of `|y[t] - y[t - season]| ** power` in every series.

        Pairs with a missing value are left out; the mean is NaN in a series without pairs.
        """
        differences = np.abs(self.values[season:] - self.values[:-season]) ** power
        counted = (self.owner[season:] == self.owner[:-season]) & ~np.isnan(differences)
        owner = self.owner[season:][counted]
        totals = np.bincount(owner, weights=differences[counted], minlength=len(self))
        counts = np.bincount(owner, minlength=len(self))
        means: Floats = np.divide(totals, counts, out=np.full(len(self), np.nan), where=counts > 0)
        return means


class Window(NamedTuple):
    """A window of every series: the past to forecast from, and the actual values."""

    past: SeriesSet
    actual: Float64[np.ndarray, "series horizon"]


@dataclass(frozen=True, eq=False)
class Task:
    """The last windows of a set of series, without overlap.

    All series share the first timestamp: the protocols use the frequency only.
    """

    name: str
    series: SeriesSet
    start: pd.Timestamp
    freq: str  # pandas alias
    season: int
    horizon: int
    count: int  # of windows
    targets: int = 1  # of each item; the targets of an item follow each other

    def past(self, window: int) -> SeriesSet:
        """Cut all values before a window."""
        return self.series.head((self.count - window) * self.horizon)

    def windows(self) -> Iterator[Window]:
        """Cut the windows, the earliest first."""
        for number in range(self.count):
            drop = (self.count - number - 1) * self.horizon
            yield Window(self.past(number), self.series.last(self.horizon, drop=drop))

    def frame(self, series: SeriesSet) -> pd.DataFrame:
        """Build a long frame; a series has its number as its name."""
        timestamps = pd.date_range(self.start, periods=int(series.lengths.max()), freq=self.freq)
        position = np.arange(len(series.values)) - (series.ends - series.lengths)[series.owner]
        return pd.DataFrame({"unique_id": series.owner, "ds": timestamps[position], "y": series.values})
