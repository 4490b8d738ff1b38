"""`Panel`: validated series, ragged or aligned, as one flat tensor."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float64, Int64, Shaped
from torch import Tensor

from leapts.data.frequency import Positions, Timestamps, counted_from, timestamps_at
from leapts.data.reader import DATES_OF_TEXT, FrameKind
from leapts.errors import DataError
from leapts.messages import listed, nearest, quoted


@dataclass(frozen=True, kw_only=True)
class FrameStyle:
    """What the frame that came in looked like, so that the frame that goes out looks the same.

    Attributes:
        kind: Which library's frame.
        id_col: The column of series names.
        time_col: The column of timestamps.
        target_col: The column of values.
        time_type: The Arrow type of the time column, without its timezone: `timestamp[us]`, `date32[day]`; of dates
            that were read from text `timestamp[day]`.
    """

    kind: FrameKind = "pandas"
    id_col: str = "unique_id"
    time_col: str = "ds"
    target_col: str = "y"
    time_type: str = "int64"

    @property
    def has_dates(self) -> bool:
        """Whether the timestamps were dates, without a time of day."""
        return self.time_type.startswith("date") or self.time_type == DATES_OF_TEXT


@dataclass(frozen=True, eq=False, kw_only=True)
class Panel:
    """Series after series in one flat tensor, each without gaps, in the order of time.

    Values are float64, because a value such as 1e9 plus noise loses its noise in float32; they become float32
    only once standardised.

    Attributes:
        values: All values.
        offsets: Where each series starts, and at the end where the last one stops.
        series: The names: of a long frame in their natural order, of a wide one in the order of its columns.
        first: Each series' first timestamp: int64, or datetime64[us], in UTC when there is a timezone. Where
            daylight saving moved that one, an earlier one that its steps are counted from.
        start_offsets: How many steps after `first` each series begins, if any does.
        freq: The frequency, a pandas alias or an integer step.
        timezone: The time zone of aware timestamps.
        style: What the frame looked like that this came from.
        unused: Columns of that frame that were not read, being neither names nor timestamps nor values.
        forward_filled: The values with gaps forward filled, where `values` are interpolated.
    """

    values: Float64[Tensor, " rows"]
    offsets: Int64[Tensor, " offsets"]
    series: tuple[str | int, ...]
    first: Timestamps
    freq: str | int
    timezone: str | None = None
    style: FrameStyle = field(default_factory=FrameStyle)
    unused: tuple[str, ...] = ()
    forward_filled: Float64[Tensor, " rows"] | None = None
    start_offsets: Positions | None = None

    @classmethod
    def from_matrix(
        cls, values: Float64[Tensor, "series time"], *, series: tuple[str | int, ...] | None = None
    ) -> "Panel":
        """A panel of aligned series with integer steps 1, 2, 3 ..., without copying.

        Args:
            values: One row for each series.
            series: Their names; `0`, `1`, `2` ... if left out.
        """
        count, length = values.shape
        return cls(
            values=values.contiguous().view(-1),
            offsets=torch.arange(count + 1) * length,
            series=tuple(str(index) for index in range(count)) if series is None else series,
            first=np.ones(count, dtype=np.int64),
            freq=1,
        )

    def __len__(self) -> int:
        return len(self.series)

    def __repr__(self) -> str:
        lengths = self.lengths
        span = f"{int(lengths.min())}..{int(lengths.max())}" if len(self) else "0"
        return f"Panel({len(self)} series of {span} steps, freq={self.freq!r})"

    @property
    def lengths(self) -> Int64[Tensor, " series"]:
        """How many values each series has."""
        return self.offsets.diff()

    @property
    def is_aligned(self) -> bool:
        """Whether all series start together and are of one length, and so form a matrix."""
        lengths, starts = self.lengths, self.starts
        return bool((lengths == lengths[:1]).all()) and bool((starts == starts[:1]).all())

    def matrix(self) -> Float64[Tensor, "series time"]:
        """The values as [series, time], a view.

        Raises:
            DataError: When the series are not aligned.
        """
        if not self.is_aligned:
            raise DataError(
                f"the {len(self)} series differ in their first timestamp or their length (from "
                f"{int(self.lengths.min())} to {int(self.lengths.max())}), so they form no matrix; "
                "cut them to a common span"
            )
        return self.values.view(len(self), -1)

    def slice(self, start: int, stop: int | None = None) -> "Panel":
        """The steps from `start` up to `stop` of each series, counted as Python slices count.

        Series without any step in that range stay, with length 0.
        """
        lengths = self.lengths
        begin = (lengths + start if start < 0 else torch.full_like(lengths, start)).clamp(min=0).minimum(lengths)
        end = lengths if stop is None else (lengths + stop if stop < 0 else torch.full_like(lengths, stop))
        return self._ranges(begin, end.minimum(lengths).maximum(begin))

    def head(self, steps: int) -> "Panel":
        """The first steps of each series; all but the last `-steps`, when negative."""
        return self.slice(0, steps)

    def tail(self, steps: int) -> "Panel":
        """The last steps of each series: all of a series that has fewer, none for 0."""
        lengths = self.lengths
        return self._ranges((lengths - steps).clamp(min=0), lengths)

    def select(self, series: Sequence[str | int]) -> "Panel":
        """The named series, in the order asked for.

        Raises:
            DataError: When there is no such series, with the nearest name.
        """
        index_of = {name: index for index, name in enumerate(self.series)}
        for name in series:
            if name not in index_of:
                near = nearest(str(name), [str(known) for known in self.series])
                hint = f"did you mean {quoted(near)}?" if near else f"there are {listed(self.series)}"
                raise DataError(f"there is no series {quoted(name)}; {hint}")
        chosen = torch.tensor([index_of[name] for name in series], dtype=torch.int64)
        some = self._gathered(self.offsets[chosen], self.lengths[chosen])
        start_offsets = None if self.start_offsets is None else self.start_offsets[chosen.numpy()]
        return replace(some, series=tuple(series), first=self.first[chosen.numpy()], start_offsets=start_offsets)

    def in_frames_of(self, kind: FrameKind) -> "Panel":
        """The same series, whose forecasts come as frames of another kind."""
        return replace(self, style=replace(self.style, kind=kind))

    def without_lookahead(self) -> "Panel":
        """The same series, with nothing in a gap that was known only after it.

        Interpolation draws a line to the value after a gap, which a forecast from within it must not see.
        """
        return self if self.forward_filled is None else replace(self, values=self.forward_filled, forward_filled=None)

    @property
    def starts(self) -> Timestamps:
        """The timestamp of each series' first value."""
        return (
            self.first
            if self.start_offsets is None
            else timestamps_at(self.first, self.start_offsets, self.freq, self.timezone)
        )

    def timestamps(self) -> Timestamps:
        """The timestamps of all values, series after series."""
        lengths = self.lengths
        positions = self._from_first(_steps_within(lengths).numpy(), lengths.numpy())
        return timestamps_at(np.repeat(self.first, lengths.numpy()), positions, self.freq, self.timezone)

    def last(self, *, back: int = 0) -> Timestamps:
        """Each series' last timestamp; so many steps back, its last at that time."""
        return timestamps_at(self.first, self._from_first(self._last_step(back)), self.freq, self.timezone)

    def future_timestamps(self, h: int, *, back: int = 0) -> npt.NDArray[np.generic]:
        """The `h` timestamps that follow each series, or its end so many steps back, as [series, h]."""
        # Counted from the first: the last may have been moved by daylight saving, and those after it are not.
        steps = (self._last_step(back)[:, None] + np.arange(1, h + 1)).reshape(-1)
        return timestamps_at(np.repeat(self.first, h), self._from_first(steps, h), self.freq, self.timezone).reshape(
            -1, h
        )

    def _last_step(self, back: int) -> Positions:
        steps: Positions = (self.lengths - 1 - back).clamp(min=0).numpy()
        return steps

    def _from_first(self, steps: Positions, rows: Positions | int = 1) -> Positions:
        """Steps within each series as steps from its `first`, where it has so many rows of them."""
        return steps if self.start_offsets is None else steps + np.repeat(self.start_offsets, rows)

    def _ranges(self, begin: Int64[Tensor, " series"], end: Int64[Tensor, " series"]) -> "Panel":
        """The part of each series from `begin` to `end`."""
        first, start_offsets = counted_from(self.first, self._from_first(begin.numpy()), self.freq, self.timezone)
        if self.is_aligned and len(self):
            start, length = int(begin[0]), int(end[0] - begin[0])
            some = self._with_rows(
                torch.arange(len(self) + 1) * length,
                lambda rows: rows.view(len(self), -1)[:, start : start + length].reshape(-1),
            )
        else:
            some = self._gathered(self.offsets[:-1] + begin, end - begin)
        return replace(some, first=first, start_offsets=start_offsets if start_offsets.any() else None)

    def _gathered(self, starts: Int64[Tensor, " chosen"], lengths: Int64[Tensor, " chosen"]) -> "Panel":
        """So many rows from each start on."""
        offsets = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])
        index = torch.arange(int(offsets[-1])) + row_by_row(starts - offsets[:-1], lengths)
        return self._with_rows(offsets, lambda rows: rows.index_select(0, index))

    def _with_rows(self, offsets: Int64[Tensor, " offsets"], take: Callable[[Tensor], Tensor]) -> "Panel":
        forward_filled = None if self.forward_filled is None else take(self.forward_filled)
        return replace(self, values=take(self.values), forward_filled=forward_filled, offsets=offsets)


def _steps_within(lengths: Int64[Tensor, " series"]) -> Int64[Tensor, " rows"]:
    """0, 1, 2 ... for each series, one after the other."""
    starts = lengths.cumsum(0) - lengths
    return torch.arange(int(lengths.sum())) - row_by_row(starts, lengths)


def row_by_row(of_series: Shaped[Tensor, " series"], lengths: Int64[Tensor, " series"]) -> Shaped[Tensor, " rows"]:
    """What belongs to each series, for every row of it. By numpy, which repeats eight times as fast as torch."""
    return torch.from_numpy(np.repeat(of_series.numpy(), lengths.numpy()))
