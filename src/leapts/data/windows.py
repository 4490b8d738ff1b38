"""Windows by index: a look-back and the horizon after it, cut out when needed, never all at once."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from leapts.data.covariate_channels import EncodedCovariates
from leapts.errors import DataError
from leapts.model.covariates import CovariateWindows


@dataclass(frozen=True, eq=False)
class WindowBatch:
    """Windows of the target series: look-backs, and the horizons after them. NaN is an unknown value.

    Every input of a forecast travels in this object, so that a new kind of input is a new field here.
    """

    history: Float[Tensor, "batch variates input_size"]
    target: Float[Tensor, "batch variates horizon"]
    covariates: CovariateWindows | None = None

    @staticmethod
    def joined(batches: "Sequence[WindowBatch]") -> "WindowBatch":
        """Concatenate windows; all of them have covariates, or none."""
        known = [batch.covariates for batch in batches if batch.covariates is not None]
        covariates = CovariateWindows(*map(torch.cat, zip(*known, strict=True))) if known else None
        history, target = (torch.cat([getattr(batch, part) for batch in batches]) for part in ("history", "target"))
        return WindowBatch(history, target, covariates)

    def split(self, size: int) -> "Iterator[WindowBatch]":
        """Cut into batches of at most `size` windows."""
        for start in range(0, max(1, len(self.history)), size):
            some = slice(start, start + size)
            covariates = (
                None if self.covariates is None else CovariateWindows(*(part[some] for part in self.covariates))
            )
            yield WindowBatch(self.history[some], self.target[some], covariates)


class Windows:
    """All windows of a ragged panel, one series each.

    Windows are numbered series after series, in the order of time. The cumulative count of windows gives the series
    and the start of each one, so nothing is stored for a window.
    """

    def __init__(
        self,
        values: Float[Tensor, " rows"],
        offsets: Int64[Tensor, " offsets"],
        input_size: int,
        horizon: int,
        *,
        step: int = 1,
        pad_short: bool = False,
        min_history: int | None = None,
        latest: int | None = None,
        covariates: EncodedCovariates | None = None,
    ) -> None:
        """Count the windows.

        Args:
            values: Values of all series, one series after the other.
            offsets: Start of each series, and end of the last one.
            input_size: Steps of the look-back.
            horizon: Steps after it; 0 for look-backs alone.
            step: Steps between the starts of two windows of a series.
            pad_short: Whether a series shorter than a window has one window too, padded in front with its first
                value. It needs at least one value more than the horizon.
            min_history: Known steps of a look-back that are enough for a window; steps before the series are then
                NaN. By default only whole look-backs are cut, and padding repeats the first value.
            latest: Number of windows of a series, its last ones; by default all of them.
            covariates: Covariates of the series.

        Raises:
            DataError: When there is no window at all.
        """
        self.values = values
        self.offsets = offsets
        self.input_size = input_size
        self.horizon = horizon
        self.step = step
        self.covariates = covariates
        self.is_masked = min_history is not None
        least = min(min_history or input_size, input_size)
        lengths = offsets.diff()
        room = lengths - (least + horizon)
        counts = torch.where(room >= 0, room.div(step, rounding_mode="floor") + 1, 0)
        if pad_short:
            counts = torch.where((room < 0) & (lengths > horizon), 1, counts)
        self._skipped = torch.zeros_like(counts) if latest is None else (counts - latest).clamp(min=0)
        counts = counts - self._skipped
        self._ends = counts.cumsum(0)
        self._counts = counts
        self._first_start = room.clamp(max=0) + least - input_size
        if not len(self):
            longest = int(lengths.max()) if len(lengths) else 0
            raise DataError(
                f"no series is long enough for a window of {input_size} + {horizon} steps (the longest has "
                f"{longest}); shorten the input or the horizon"
            )

    def __len__(self) -> int:
        return int(self._ends[-1]) if len(self._ends) else 0

    def series_of(self, index: Int64[Tensor, " batch"]) -> Int64[Tensor, " batch"]:
        """Series of each window."""
        return torch.searchsorted(self._ends, index, right=True)

    def starts_of(self, index: Int64[Tensor, " batch"]) -> Int64[Tensor, " batch"]:
        """Start of each window in its series: negative when it is padded."""
        series = self.series_of(index)
        number = index - (self._ends - self._counts - self._skipped).index_select(0, series)
        return number * self.step + self._first_start.index_select(0, series)

    def gather(self, index: Int64[Tensor, " batch"]) -> WindowBatch:
        """Cut out windows by their numbers, from 0 to `len(self) - 1`."""
        series = self.series_of(index)
        span = self.input_size + self.horizon
        begin, own_starts = self.offsets.index_select(0, series), self.starts_of(index)
        starts = begin + own_starts
        if len(self.values) >= span and bool((starts >= begin).all()):
            cut = self.values.unfold(0, span, 1).index_select(0, starts)
        else:
            rows, first = starts[:, None] + torch.arange(span, device=starts.device), begin[:, None]
            cut = self.values.index_select(0, rows.maximum(first).view(-1)).view(len(index), span)
            if self.is_masked:
                cut.masked_fill_(rows < first, torch.nan)
        batch = _parted(cut[:, None], self.input_size)
        if self.covariates is None:
            return batch
        return replace(batch, covariates=self.covariates.cut(series, own_starts, self.input_size, self.horizon, 1))


class AlignedWindows:
    """All windows of aligned series; each window has all of them."""

    def __init__(
        self,
        matrix: Float[Tensor, "series time"],
        input_size: int,
        horizon: int,
        covariates: EncodedCovariates | None = None,
    ) -> None:
        """Count the windows of a matrix with one row for each series.

        Raises:
            DataError: When the series are shorter than a window.
        """
        self.matrix = matrix
        self.covariates = covariates
        self.input_size = input_size
        self.horizon = horizon
        length = matrix.shape[1]
        if length < input_size + horizon:
            raise DataError(
                f"the series have {length} steps, too few for a window of {input_size} + {horizon}; "
                "shorten the input or the horizon"
            )
        self._count = length - input_size - horizon + 1

    def __len__(self) -> int:
        return self._count

    def series_of(self, index: Int64[Tensor, " batch"]) -> Int64[Tensor, " rows"]:
        """Series of each row of these windows; every window has a row for each series."""
        return torch.arange(len(self.matrix)).repeat(len(index))

    def gather(self, index: Int64[Tensor, " batch"]) -> WindowBatch:
        """Cut out windows by their numbers, as views of memory that is ordered by series, the fastest copy."""
        spans = self.matrix.unfold(1, self.input_size + self.horizon, 1)
        cut = spans[:, index].transpose(0, 1)
        batch, width = _parted(cut, self.input_size), len(self.matrix)
        if self.covariates is None:
            return batch
        series, starts = self.series_of(index), index.repeat_interleave(width)
        return replace(batch, covariates=self.covariates.cut(series, starts, self.input_size, self.horizon, width))


class StridedWindows:
    """Every n-th window, counted across series."""

    def __init__(self, windows: Windows | AlignedWindows, step: int) -> None:
        self.windows = windows
        self.step = step

    def __len__(self) -> int:
        return -(-len(self.windows) // self.step)

    def series_of(self, index: Int64[Tensor, " batch"]) -> Int64[Tensor, " rows"]:
        """Series of each row of these windows."""
        return self.windows.series_of(index * self.step)

    def gather(self, index: Int64[Tensor, " batch"]) -> WindowBatch:
        """Cut out windows by their numbers."""
        return self.windows.gather(index * self.step)


class MaskedTargets:
    """Windows whose targets are NaN for some series."""

    def __init__(self, windows: StridedWindows, hidden: Bool[Tensor, " series"]) -> None:
        self.windows = windows
        self.hidden = hidden

    def __len__(self) -> int:
        return len(self.windows)

    def gather(self, index: Int64[Tensor, " batch"]) -> WindowBatch:
        """Cut out windows by their numbers."""
        batch = self.windows.gather(index)
        hidden = self.hidden[self.windows.series_of(index)].view(*batch.target.shape[:2], 1)
        return replace(batch, target=batch.target.masked_fill(hidden, torch.nan))


def _parted(spans: Float[Tensor, "batch variates span"], input_size: int) -> WindowBatch:
    return WindowBatch(spans[:, :, :input_size], spans[:, :, input_size:])
