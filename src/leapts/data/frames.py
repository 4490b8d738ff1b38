"""Frames that go out: long, of the same kind (pandas, polars, pyarrow) as the one that came in."""

from collections.abc import Mapping
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from leapts.data.frequency import Stamps
from leapts.data.panel import FrameStyle, Panel
from leapts.data.reading import DATES_OF_TEXT, FrameKind

Column = npt.NDArray[Any]


def forecast_frame(panel: Panel, columns: Mapping[str, Column], h: int) -> Any:
    """One row for each series and each of the `h` steps after its end.

    Args:
        panel: Whose future it is.
        columns: Name to values as [series, h].
        h: The horizon.
    """
    flat = {name: values.reshape(-1) for name, values in columns.items()}
    return long_frame(panel, np.repeat(np.arange(len(panel)), h), panel.future(h).reshape(-1), flat)


def panel_frame(panel: Panel) -> Any:
    """The panel itself as a long frame."""
    index = np.repeat(np.arange(len(panel)), panel.lengths.numpy())
    return long_frame(panel, index, panel.stamps(), {panel.style.target_col: panel.values.numpy()})


def long_frame(
    panel: Panel,
    index: npt.NDArray[np.int64],
    stamps: Stamps,
    columns: Mapping[str, Column],
    *,
    time_name: str | None = None,
) -> Any:
    """Rows of series name, stamp and further columns.

    Args:
        panel: Gives the names, the time zone, and the style of the frame.
        index: For each row, which of the panel's series it belongs to.
        stamps: For each row its stamp, as panels hold them (in UTC when there is a zone).
        columns: Further columns; datetime64 ones are stamps too and come out as the time column does.
        time_name: What to call the stamps, if not as in the frame that came in.
    """
    style = panel.style
    arrays = {
        style.id_col: _name_array(panel.series).take(pa.array(index)),
        time_name or style.time_col: _time_array(stamps, style, panel.zone),
    }
    for name, values in columns.items():
        is_time = values.dtype.kind == "M"
        arrays[name] = _time_array(values, style, panel.zone) if is_time else pa.array(values)
    return native(pa.table(arrays), style.kind)


def _name_array(names: tuple[str | int, ...]) -> pa.Array:
    try:
        return pa.array(names)
    except OverflowError:  # numbers beyond 2 ** 63, such as hashes
        return pa.array(names, type=pa.uint64())


def _time_array(stamps: Stamps, style: FrameStyle, zone: str | None) -> pa.Array:
    time_type = style.time_type
    if stamps.dtype.kind != "M":
        array = pa.array(stamps)
        try:
            return array.cast(time_type if time_type.startswith(("int", "uint")) else "int64")
        except pa.ArrowInvalid:  # the steps to come are too large for the type of those that came
            return array
    array = pa.array(stamps.astype("datetime64[us]"), type=pa.timestamp("us"))
    if style.has_dates and (style.kind != "pandas" or time_type != DATES_OF_TEXT):
        return array.cast(pa.date64() if time_type.startswith("date64") else pa.date32(), safe=False)
    # Stamps are in UTC, and to Arrow a zone is a way of showing them, so giving them one does not shift them.
    unit = time_type.removeprefix("timestamp[").removesuffix("]")
    return array.cast(pa.timestamp(unit if unit in ("s", "ms", "us", "ns") else "us", tz=zone), safe=False)


def native(table: pa.Table, kind: FrameKind) -> Any:
    """An Arrow table as a frame of that kind."""
    if kind == "pyarrow":
        return table
    if kind == "pandas":
        return table.to_pandas()
    return nw.DataFrame.from_arrow(table, backend="polars").to_native()
