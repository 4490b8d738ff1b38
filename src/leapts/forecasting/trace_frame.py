"""The trace of a forecast as a frame: one row for each leap."""

from collections.abc import Sequence
from typing import Any, get_args

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from leapts.data.frames import long_frame, native
from leapts.data.panel import Panel
from leapts.data.reader import FrameKind
from leapts.errors import ConfigError
from leapts.model import ScheduleTrace
from leapts.model.schedulers import SCALE_NAMES

CUTOFF = "cutoff"  # column of the last timestamp before a forecast


class Trace:
    """The leaps behind a forecast.

    It behaves like a frame of the kind of the data (`trace["scale"]`, `len(trace)`, `trace.columns`, ...); `to_frame`
    returns that frame, or one of another kind.
    """

    def __init__(self, frame: Any, kind: FrameKind) -> None:
        self._frame = frame
        self._kind = kind

    def to_frame(self, kind: FrameKind | None = None) -> Any:
        """Convert to a `pandas`, `polars` or `pyarrow` frame; by default of the kind of the data.

        Raises:
            ConfigError: When there is no such kind.
            ImportError: When polars is not installed.
        """
        if kind not in (None, *get_args(FrameKind)):
            raise ConfigError(f"there is no kind {kind!r} of frame; choose one of {', '.join(get_args(FrameKind))}")
        if kind in (None, self._kind):
            return self._frame
        return native(nw.from_native(self._frame, eager_only=True).to_arrow(), kind)

    def __len__(self) -> int:
        return len(self._frame)

    def __getitem__(self, key: Any) -> Any:
        return self._frame[key]

    def __getattr__(self, name: str) -> Any:
        # A copy starts without `_frame`, so that looking up a private name would recurse.
        if name.startswith("_"):
            raise AttributeError(f"a trace has no attribute {name!r}")
        return getattr(self._frame, name)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Export an Arrow stream, for `polars.DataFrame(trace)` or `pyarrow.table(trace)`."""
        table: pa.Table = self.to_frame("pyarrow")
        return table.__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return repr(self._frame)

    def _repr_html_(self) -> str | None:
        shown: str | None = getattr(self._frame, "_repr_html_", lambda: None)()
        return shown


def leaps_of(trace: Any) -> nw.DataFrame[Any]:
    """Return the rows of a trace, or of a frame made from one."""
    return nw.from_native(trace.to_frame() if isinstance(trace, Trace) else trace, eager_only=True)


def trace_frame(panel: Panel, trace: ScheduleTrace, known: Sequence[str] = ()) -> Trace:
    """Build the trace of a panel's forecast: one row for each leap.

    `start` counts from 0 inside the horizon, `end` is exclusive. `control` and `temporal` are the sums of absolute
    changes of the state due to the control signal and due to time. `known_<name>` is the mean of a known-future
    covariate over the leap; of a categorical one, its most common category.

    Raises:
        ConfigError: When a column of the data has the name of a column of the trace.
    """
    series, columns = leap_columns(trace)
    columns |= _known_columns(panel, known, series, columns["start"], columns["end"])
    if panel.style.id_col in (CUTOFF, *columns):
        raise ConfigError(
            f"the trace has its own column {panel.style.id_col!r}, which is the data's column of series names; "
            "rename that column of the data"
        )
    frame = long_frame(panel, series, panel.last()[series], columns, time_name=CUTOFF)
    return Trace(frame, panel.style.kind)


def _known_columns(
    panel: Panel, names: Sequence[str], series: npt.NDArray[np.int64], start: npt.NDArray[Any], end: npt.NDArray[Any]
) -> dict[str, npt.NDArray[Any]]:
    """Summarize what each leap knew in advance."""
    found: dict[str, npt.NDArray[Any]] = {}
    if panel.covariates is None or not len(end):
        return found
    h = int(end.max())
    known = panel.covariates.horizon(panel.lengths, h).numpy()[series]
    inside = (np.arange(h) >= start[:, None]) & (np.arange(h) < end[:, None])
    for name in names:
        values = known[..., panel.covariates.future.index(name)]
        counted = inside & ~np.isnan(values)
        if (categories := panel.covariates.categories.get(name)) is None:
            sums, counts = np.where(counted, values, 0).sum(1), counted.sum(1)
            found[f"known_{name}"] = np.divide(sums, counts, out=np.full(len(end), np.nan), where=counts > 0)
        else:
            codes = np.arange(len(categories))
            shares = (counted[..., None] & (values[..., None] == codes)).sum(1)
            common = np.array(categories, dtype=object)[shares.argmax(1)]
            common[~shares.any(1)] = None
            found[f"known_{name}"] = common
    return found


def leap_columns(trace: ScheduleTrace) -> tuple[npt.NDArray[np.int64], dict[str, npt.NDArray[Any]]]:
    """Return the row of each leap in a trace, and the columns that describe the leaps."""
    taken = trace.taken
    row, leap = (index.numpy() for index in taken.nonzero(as_tuple=True))
    start, length = trace.start[taken].numpy(), trace.length[taken].numpy()
    names = np.array(trace.scale_names)
    probabilities = dict(zip(trace.scale_names, trace.probabilities[taken].T.numpy(), strict=True))
    return row, {
        "leap": leap,
        "start": start,
        "end": start + length,
        "scale": names[trace.scale[taken].numpy()],
        "length": length,
        **{f"p_{name}": probabilities.get(name, np.zeros(len(leap), np.float32)) for name in SCALE_NAMES},
        "control": trace.control[taken].numpy(),
        "temporal": trace.temporal[taken].numpy(),
    }
