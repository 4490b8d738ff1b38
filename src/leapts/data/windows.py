"""Windows by index: a look-back and the horizon after it, cut out when asked for, never all at once."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from leapts.errors import DataError


@dataclass(frozen=True, eq=False)
class WindowBatch:
    """Windows of the target series: look-backs, and the horizons after them.

    Every input of a forecast travels in this object, so that a new kind of input is a new field here.
    """

    history: Float[Tensor, "batch variates input_size"]
    target: Float[Tensor, "batch variates horizon"]


class Windows:
    """All windows of a ragged panel, one variate each.

    Which series a window belongs to, and where in it, is found from the running count of windows, so nothing
    is stored for each window. Windows are numbered series after series, in the order of time.
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
        latest: int | None = None,
    ) -> None:
        """Counts the windows.

        Args:
            values: All series' values, one series after the other.
            offsets: Where each series starts, and where the last one stops.
            input_size: The look-back.
            horizon: The steps after it; 0 for histories alone.
            step: How far apart the windows of a series start.
            pad_short: Whether a series shorter than a window gives one all the same, at its end, with its
                first value repeated in front. It still needs a value more than the horizon.
            latest: How many windows of a series count, its last ones; None for all of them.

        Raises:
            DataError: When there is no window at all.
        """
        self.values = values
        self.offsets = offsets
        self.input_size = input_size
        self.horizon = horizon
        self.step = step
        lengths = offsets.diff()
        room = lengths - (input_size + horizon)
        counts = torch.where(room >= 0, room.div(step, rounding_mode="floor") + 1, 0)
        if pad_short:
            counts = torch.where((room < 0) & (lengths > horizon), 1, counts)
        self._skipped = torch.zeros_like(counts) if latest is None else (counts - latest).clamp(min=0)
        counts = counts - self._skipped
        self._ends = counts.cumsum(0)
        self._counts = counts
        self._room = room
        if not len(self):
            longest = int(lengths.max()) if len(lengths) else 0
            raise DataError(
                f"no series is long enough for a window of {input_size} + {horizon} steps (the longest has "
                f"{longest}); shorten the input or the horizon"
            )

    def __len__(self) -> int:
        return int(self._ends[-1]) if len(self._ends) else 0

    def series_of(self, index: Int64[Tensor, " batch"]) -> Int64[Tensor, " batch"]:
        """Which series each window belongs to."""
        return torch.searchsorted(self._ends, index, right=True)

    def starts_of(self, index: Int64[Tensor, " batch"]) -> Int64[Tensor, " batch"]:
        """Where in its series each window starts: before 0 when it is padded."""
        series = self.series_of(index)
        number = index - (self._ends - self._counts - self._skipped).index_select(0, series)
        return number * self.step + self._room.index_select(0, series).clamp(max=0)

    def gather(self, index: Int64[Tensor, " batch"]) -> WindowBatch:
        """Cuts out the windows of these numbers.

        Args:
            index: Numbers from 0 to `len(self) - 1`.
        """
        series = self.series_of(index)
        span = self.input_size + self.horizon
        begin = self.offsets.index_select(0, series)
        starts = begin + self.starts_of(index)
        if len(self.values) >= span and bool((starts >= begin).all()):
            cut = self.values.unfold(0, span, 1).index_select(0, starts)
        else:
            rows = (starts[:, None] + torch.arange(span, device=starts.device)).maximum(begin[:, None])
            cut = self.values.index_select(0, rows.view(-1)).view(len(index), span)
        return _parted(cut[:, None], self.input_size)


class AlignedWindows:
    """All windows of aligned series, with all of them as variates of each window."""

    def __init__(self, matrix: Float[Tensor, "series time"], input_size: int, horizon: int) -> None:
        """Counts the windows.

        Args:
            matrix: One line for each series.
            input_size: The look-back.
            horizon: The steps after it; 0 for histories alone.

        Raises:
            DataError: When the series are shorter than a window.
        """
        self.matrix = matrix
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
        """Which series each row of these windows belongs to: every window has all of them."""
        return torch.arange(len(self.matrix)).repeat(len(index))

    def gather(self, index: Int64[Tensor, " batch"]) -> WindowBatch:
        """Cuts out the windows of these numbers.

        Underneath, the memory is series by series, which is the quickest to copy; what comes back are views.

        Args:
            index: Numbers from 0 to `len(self) - 1`.
        """
        spans = self.matrix.unfold(1, self.input_size + self.horizon, 1)
        cut = spans[:, index].transpose(0, 1)
        return _parted(cut, self.input_size)


class StridedWindows:
    """Every so many-th of some windows, by their numbers: counted on from one series to the next."""

    def __init__(self, windows: Windows | AlignedWindows, step: int) -> None:
        self.windows = windows
        self.step = step

    def __len__(self) -> int:
        return -(-len(self.windows) // self.step)

    def series_of(self, index: Int64[Tensor, " batch"]) -> Int64[Tensor, " rows"]:
        """Which series each row of these windows belongs to."""
        return self.windows.series_of(index * self.step)

    def gather(self, index: Int64[Tensor, " batch"]) -> WindowBatch:
        """Cuts out the windows of these numbers."""
        return self.windows.gather(index * self.step)


class MaskedTargets:
    """Windows in which what came after is hidden for some series, as NaN."""

    def __init__(self, windows: StridedWindows, hidden: Bool[Tensor, " series"]) -> None:
        self.windows = windows
        self.hidden = hidden

    def __len__(self) -> int:
        return len(self.windows)

    def gather(self, index: Int64[Tensor, " batch"]) -> WindowBatch:
        """Cuts out the windows of these numbers."""
        batch = self.windows.gather(index)
        hidden = self.hidden[self.windows.series_of(index)].view(*batch.target.shape[:2], 1)
        return WindowBatch(batch.history, batch.target.masked_fill(hidden, torch.nan))


def _parted(spans: Float[Tensor, "batch variates span"], input_size: int) -> WindowBatch:
    return WindowBatch(spans[:, :, :input_size], spans[:, :, input_size:])
