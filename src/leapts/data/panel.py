"""`Panel`: validated series in one flat tensor."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float64, Int64, Shaped
from torch import Tensor

from leapts.data.covariates import Covariates
from leapts.data.frequency import Positions, Timestamps, step_origin, timestamps_at
from leapts.data.reader import DATES_OF_TEXT, FrameKind
from leapts.errors import DataError
from leapts.messages import listed, nearest, quoted


@dataclass(frozen=True, kw_only=True)
class FrameStyle:
    """Type and column names of the input frame, so that output frames look the same."""

    kind: FrameKind = "pandas"
    id_col: str = "unique_id"
    time_col: str = "ds"
    target_col: str = "y"
    time_type: str = "int64"  # Arrow type of the time column without its timezone; `timestamp[day]` for dates in text

    @property
    def has_dates(self) -> bool:
        """Whether the timestamps were dates, without a time of day."""
        return self.time_type.startswith("date") or self.time_type == DATES_OF_TEXT


@dataclass(frozen=True, eq=False, kw_only=True)
class Panel:
    """Several series in one flat tensor, each without gaps and in the order of time.

    Values are float64 until they are scaled, because in float32 a value such as 1e9 plus noise loses its noise.
    """

    values: Float64[Tensor, " rows"]  # of all series, one series after the other
    offsets: Int64[Tensor, " offsets"]  # index of each series' first value, and at the end the number of values
    series: tuple[str | int, ...]  # names: in natural order for a long frame, in the order of columns for a wide one
    # For each series a timestamp from which its steps are counted: int64, or datetime64[us], in UTC when there is a
    # timezone. It is the first timestamp of the series, or an earlier one where daylight saving moved that.
    first: Timestamps
    freq: str | int
    timezone: str | None = None
    style: FrameStyle = field(default_factory=FrameStyle)
    unused: tuple[str, ...] = ()  # columns of the input frame that were not read
    forward_filled: Float64[Tensor, " rows"] | None = None  # values with gaps filled forward, if interpolated
    start_offsets: Positions | None = None  # steps from `first` to the first value of each series; None if all are 0
    covariates: Covariates | None = None

    @classmethod
    def from_matrix(
        cls, values: Float64[Tensor, "series time"], *, series: tuple[str | int, ...] | None = None
    ) -> "Panel":
        """Make a panel of aligned series with integer timestamps 1, 2, 3 ..., without copying.

        Args:
            values: One row for each series.
            series: The names; by default `0`, `1`, `2` ...
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

    @cached_property
    def lengths(self) -> Int64[Tensor, " series"]:
        """Number of values of each series."""
        return self.offsets.diff()

    @cached_property
    def is_aligned(self) -> bool:
        """Whether all series have the same start and length, so that they form a matrix."""
        lengths, starts = self.lengths.numpy(), self.starts
        return bool((lengths == lengths[:1]).all()) and bool((starts == starts[:1]).all())

    def matrix(self) -> Float64[Tensor, "series time"]:
        """View the values as a matrix.

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
        """Cut every series as `[start:stop]` cuts a list; a series may become empty."""
        lengths = self.lengths
        begin = (lengths + start if start < 0 else torch.full_like(lengths, start)).clamp(min=0).minimum(lengths)
        end = lengths if stop is None else (lengths + stop if stop < 0 else torch.full_like(lengths, stop))
        return self._ranges(begin, end.minimum(lengths).maximum(begin))

    def head(self, steps: int) -> "Panel":
        """Keep the first steps of each series; a negative number removes the last ones."""
        return self.slice(0, steps)

    def without_end(self, steps: int, *, keep: int) -> "Panel":
        """Drop the last steps of each series that keeps enough values; shorter series stay whole."""
        lengths = self.lengths
        return self._ranges(torch.zeros_like(lengths), lengths - torch.where(lengths >= steps + keep, steps, 0))

    def at_least(self, steps: int) -> "Panel | None":
        """Select the series with that many values, if there are any."""
        long_enough = (self.lengths >= steps).tolist()
        if all(long_enough):
            return self
        names = [name for name, is_long in zip(self.series, long_enough, strict=True) if is_long]
        return self.select(names) if names else None

    def tail(self, steps: int) -> "Panel":
        """Keep the last steps of each series; shorter series stay whole."""
        is_longer = bool((self.lengths > steps).any())
        return self._ranges((self.lengths - steps).clamp(min=0), self.lengths) if is_longer else self

    def ending(self, steps: int, h: int) -> "Panel":
        """Copy the last steps of every series and the covariates of the `h` steps after it, to free the rest."""
        tail = self.tail(steps).with_covariates_up_to(h)
        return replace(tail, values=tail.values.clone(), forward_filled=None)

    def select(self, series: Sequence[str | int]) -> "Panel":
        """Select series by name, in the given order.

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
        return self.cut(chosen, torch.zeros_like(chosen), self.lengths[chosen])

    def cut(
        self, series: Int64[Tensor, " pieces"], begin: Int64[Tensor, " pieces"], lengths: Int64[Tensor, " pieces"]
    ) -> "Panel":
        """Cut pieces out of series; each piece becomes a series with the name of its source."""
        some, chosen = self._gathered(self.offsets[series] + begin, lengths), series.numpy()
        steps = begin.numpy() if self.start_offsets is None else begin.numpy() + self.start_offsets[chosen]
        names = tuple(self.series[place] for place in chosen.tolist())
        return replace(
            some,
            series=names,
            first=self.first[chosen],
            start_offsets=steps if steps.any() else None,
            covariates=self.covariates and self.covariates.select(series).moved(begin),
        )

    def in_frames_of(self, kind: FrameKind) -> "Panel":
        """Change the library of the frames that forecasts are returned in."""
        return replace(self, style=replace(self.style, kind=kind))

    def without_lookahead(self) -> "Panel":
        """Replace interpolated values by forward filled ones.

        Interpolation uses the value after a gap, which a forecast made inside the gap must not see.
        """
        return self if self.forward_filled is None else replace(self, values=self.forward_filled, forward_filled=None)

    def with_covariates_up_to(self, h: int) -> "Panel":
        """Copy the rows of its covariates up to `h` steps after each series."""
        return replace(self, covariates=self.covariates and self.covariates.compact(self.lengths + h))

    @cached_property
    def starts(self) -> Timestamps:
        """First timestamp of each series."""
        if self.start_offsets is None:
            return self.first
        return timestamps_at(self.first, self.start_offsets, self.freq, self.timezone)

    def timestamps(self) -> Timestamps:
        """Timestamps of all values, one series after the other."""
        lengths = self.lengths
        steps = torch.arange(int(lengths.sum())) - row_by_row(lengths.cumsum(0) - lengths, lengths)
        return self._at(steps.numpy(), lengths.numpy())

    def last(self, *, back: int = 0) -> Timestamps:
        """Timestamp `back` steps before the end of each series."""
        return self._at(self._last_step(back))

    def future_timestamps(self, h: int, *, back: int = 0) -> npt.NDArray[np.generic]:
        """Timestamps of the `h` steps after the value `back` steps before the end of each series, as [series, h]."""
        steps = self._last_step(back)[:, None] + np.arange(1, h + 1)
        return self._at(steps.reshape(-1), h).reshape(-1, h)

    def _last_step(self, back: int) -> Positions:
        steps: Positions = (self.lengths - 1 - back).clamp(min=0).numpy()
        return steps

    def _at(self, steps: Positions, repeats: Positions | int = 1) -> Timestamps:
        """Timestamps of steps within series, with `repeats` steps for each series."""
        return timestamps_at(np.repeat(self.first, repeats), self._from_first(steps, repeats), self.freq, self.timezone)

    def _from_first(self, steps: Positions, repeats: Positions | int = 1) -> Positions:
        """Convert steps within series to steps from `first`."""
        return steps if self.start_offsets is None else steps + np.repeat(self.start_offsets, repeats)

    def _ranges(self, begin: Int64[Tensor, " series"], end: Int64[Tensor, " series"]) -> "Panel":
        """Cut each series to the steps from `begin` to `end`."""
        first, start_offsets = step_origin(self.first, self._from_first(begin.numpy()), self.freq, self.timezone)
        if self.is_aligned and len(self):
            start, length = int(begin[0]), int(end[0] - begin[0])
            some = self._with_rows(
                torch.arange(len(self) + 1) * length,
                lambda rows: rows.view(len(self), -1)[:, start : start + length].reshape(-1),
            )
        else:
            some = self._gathered(self.offsets[:-1] + begin, end - begin)
        return replace(
            some,
            first=first,
            start_offsets=start_offsets if start_offsets.any() else None,
            covariates=self.covariates and self.covariates.moved(begin),
        )

    def _gathered(self, starts: Int64[Tensor, " chosen"], lengths: Int64[Tensor, " chosen"]) -> "Panel":
        """Copy `lengths` rows from each of the `starts` on."""
        offsets = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])
        index = torch.arange(int(offsets[-1])) + row_by_row(starts - offsets[:-1], lengths)
        return self._with_rows(offsets, lambda rows: rows.index_select(0, index))

    def _with_rows(self, offsets: Int64[Tensor, " offsets"], take: Callable[[Tensor], Tensor]) -> "Panel":
        forward_filled = None if self.forward_filled is None else take(self.forward_filled)
        return replace(self, values=take(self.values), forward_filled=forward_filled, offsets=offsets)


def row_by_row(of_series: Shaped[Tensor, " series"], lengths: Int64[Tensor, " series"]) -> Shaped[Tensor, " rows"]:
    """Repeat each series' number for every row of it; numpy repeats eight times as fast as torch."""
    return torch.from_numpy(np.repeat(of_series.numpy(), lengths.numpy()))
