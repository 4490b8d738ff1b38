"""Build output frames of the same kind as the input (pandas, polars, pyarrow), and write them to files."""

import gzip
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from leapts.data.frequency import Timestamps
from leapts.data.panel import FrameStyle, Panel
from leapts.data.reader import DATES_OF_TEXT, FrameKind, is_text
from leapts.errors import DataError
from leapts.files import try_writing, write_file

Column = npt.NDArray[Any]

SUFFIXES = (".csv", ".csv.gz", ".parquet")
_FORMULA_SIGNS = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def forecast_frame(panel: Panel, columns: Mapping[str, Column], h: int) -> Any:
    """Build a long frame of forecasts, from columns of [series, h] values."""
    flat = {name: values.reshape(-1) for name, values in columns.items()}
    timestamps = panel.future_timestamps(h)
    return long_frame(panel, np.repeat(np.arange(len(timestamps)), h), timestamps.reshape(-1), flat)


def panel_frame(panel: Panel) -> Any:
    """Convert a panel to a long frame."""
    index = np.repeat(np.arange(len(panel)), panel.lengths.numpy())
    return long_frame(panel, index, panel.timestamps(), {panel.style.target_col: panel.values.numpy()})


def long_frame(
    panel: Panel,
    index: npt.NDArray[np.int64],
    timestamps: Timestamps,
    columns: Mapping[str, Column],
    *,
    time_name: str | None = None,
) -> Any:
    """Build a long frame of series names, timestamps and further columns, in the style of a panel's input.

    `index` gives the series of each row. Timestamps are in UTC when there is a timezone; further columns of datetime64
    get the type of the time column.
    """
    style = panel.style
    arrays = {
        style.id_col: _name_array(panel.series).take(pa.array(index)),
        time_name or style.time_col: _time_array(timestamps, style, panel.timezone),
    }
    for name, values in columns.items():
        is_time = values.dtype.kind == "M"
        arrays[name] = _time_array(values, style, panel.timezone) if is_time else pa.array(values)
    return native(pa.table(arrays), style.kind)


def _name_array(names: tuple[str | int, ...]) -> pa.Array:
    try:
        return pa.array(names)
    except OverflowError:  # integers from 2 ** 63 on, such as hashes
        return pa.array(names, type=pa.uint64())


def _time_array(timestamps: Timestamps, style: FrameStyle, timezone: str | None) -> pa.Array:
    time_type = style.time_type
    if timestamps.dtype.kind != "M":
        array = pa.array(timestamps)
        try:
            return array.cast(time_type if time_type.startswith(("int", "uint")) else "int64")
        except pa.ArrowInvalid:  # future steps are too large for the type of the input column
            return array
    array = pa.array(timestamps.astype("datetime64[us]"), type=pa.timestamp("us"))
    if style.has_dates and (style.kind != "pandas" or time_type != DATES_OF_TEXT):
        return array.cast(pa.date64() if time_type.startswith("date64") else pa.date32(), safe=False)
    # Arrow stores timestamps in UTC and uses the timezone for display only, so this cast does not shift them.
    unit = time_type.removeprefix("timestamp[").removesuffix("]")
    return array.cast(pa.timestamp(unit if unit in ("s", "ms", "us", "ns") else "us", tz=timezone), safe=False)


def native(table: pa.Table, kind: FrameKind) -> Any:
    """Convert an Arrow table to a frame of the given kind."""
    if kind == "pyarrow":
        return table
    if kind == "pandas":
        return table.to_pandas()
    return nw.DataFrame.from_arrow(table, backend="polars").to_native()


def write_frame(frame: Any, path: str | Path, *, escape_formulas: bool = False) -> Path:
    """Write a frame to a CSV, gzipped CSV or Parquet file, by the file's suffix.

    Args:
        frame: A pandas, polars or pyarrow frame.
        path: The file; a crash leaves the old file or the new one.
        escape_formulas: As in `csv_bytes`; Parquet does not need it.

    Raises:
        DataError: When the suffix is unknown or the folder does not exist.
    """
    target = Path(path)
    require_writable(target)
    if target.suffix == ".parquet":
        sink = pa.BufferOutputStream()
        pa.parquet.write_table(nw.from_native(frame, eager_only=True).to_arrow(), sink, compression="zstd")
        content = sink.getvalue().to_pybytes()
    else:
        content = csv_bytes(frame, escape_formulas=escape_formulas)
    write_file(target, gzip.compress(content, mtime=0) if target.suffix == ".gz" else content)
    return target


def require_writable(target: Path, suffixes: tuple[str, ...] = SUFFIXES) -> None:
    """Check that a file can be written, before the work whose results go there.

    Raises:
        DataError: When the suffix is not one of `suffixes`, the path is a folder, or its folder does not exist or is
            not writable.
    """
    if not target.name.endswith(suffixes):
        raise DataError(f"{target.name}: unknown file format; use one of the suffixes {', '.join(suffixes)}")
    if not target.parent.is_dir():
        raise DataError(f"the folder {target.parent} does not exist; create it first")
    if target.is_dir():
        raise DataError(f"{target} is a folder; choose another name")
    try:
        try_writing(target)
    except OSError as error:
        raise DataError(f"{target} cannot be written ({error.strerror}); choose another folder") from error


def csv_bytes(frame: Any, *, escape_formulas: bool = False) -> bytes:
    """Encode a frame as CSV in UTF-8.

    Args:
        frame: The frame.
        escape_formulas: Put an apostrophe before text that a spreadsheet would run as a formula. Reading the file does
            not remove the apostrophe.
    """
    sink = pa.BufferOutputStream()
    table = _in_seconds(nw.from_native(frame, eager_only=True).to_arrow())
    if escape_formulas:
        table = _escape_formulas(table)
    pa.csv.write_csv(table, sink, pa.csv.WriteOptions(quoting_style="needed"))  # text always needs quotes
    content: bytes = sink.getvalue().to_pybytes()
    return content


def is_formula(text: str) -> bool:
    """Whether a spreadsheet may run this text as a formula, leading blanks and full-width signs included."""
    return text.lstrip().startswith(_FORMULA_SIGNS) or text.startswith(("\t", "\r", "\n"))


def _escape_formulas(table: pa.Table) -> pa.Table:
    """Escape formulas in cells and in the header."""
    for index, field in enumerate(table.schema):
        column = table.column(index)
        if pa.types.is_dictionary(field.type):
            column = column.cast(field.type.value_type)
        if is_text(column.type):
            column = pa.array([_escaped(one) for one in column.to_pylist()], column.type)
        table = table.set_column(index, _escaped(field.name), column)
    return table


def _escaped(text: str | None) -> str | None:
    """Escape a formula; one that has apostrophes gets another, so that different texts stay different."""
    return f"'{text}" if text is not None and is_formula(text.lstrip("'")) else text


def _in_seconds(table: pa.Table) -> pa.Table:
    """Reduce timestamps in whole seconds to that unit, so that no zero fractions are written."""
    for index, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            try:
                seconds = table.column(index).cast(pa.timestamp("s", tz=field.type.tz))
            except pa.ArrowInvalid:
                continue
            table = table.set_column(index, field.name, seconds)
    return table
