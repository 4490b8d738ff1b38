"""Frames into files, whole or not at all."""

import gzip
from pathlib import Path
from typing import Any

import narwhals as nw
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from leapts.data.columns import is_text
from leapts.errors import DataError
from leapts.files import try_writing, write_file

SUFFIXES = (".csv", ".csv.gz", ".parquet")
_FORMULA_SIGNS = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def write_frame(frame: Any, path: str | Path, *, safe_cells: bool = False) -> Path:
    """Writes a pandas, polars or pyarrow frame as CSV, gzipped CSV or Parquet, as the name ends.

    The file is written under another name, synced and renamed, so that a crash leaves the old one or the
    new one.

    Args:
        frame: The frame.
        path: The file.
        safe_cells: As in `csv_bytes`; Parquet needs it not, for its text is text.

    Raises:
        DataError: When the name ends otherwise, or the folder is not there.
    """
    target = Path(path)
    require_writable(target)
    if target.suffix == ".parquet":
        sink = pa.BufferOutputStream()
        pa.parquet.write_table(nw.from_native(frame, eager_only=True).to_arrow(), sink, compression="zstd")
        content = sink.getvalue().to_pybytes()
    else:
        content = csv_bytes(frame, safe_cells=safe_cells)
    write_file(target, gzip.compress(content, mtime=0) if target.suffix == ".gz" else content)
    return target


def require_writable(target: Path, suffixes: tuple[str, ...] = SUFFIXES) -> None:
    """Refuses a name nothing can be written under, so that the work before need not be done in vain.

    Args:
        target: The name.
        suffixes: How it may end.

    Raises:
        DataError: When the name has no format's suffix or is a folder's, or the folder above is not there or takes
            no files.
    """
    if not target.name.endswith(suffixes):
        raise DataError(f"cannot tell the format from the name {target.name}; end it with {', '.join(suffixes)}")
    if not target.parent.is_dir():
        raise DataError(f"the folder {target.parent} does not exist; make it first")
    if target.is_dir():
        raise DataError(f"{target} is a folder; choose another name")
    try:
        try_writing(target)
    except OSError as error:
        raise DataError(f"{target} cannot be written ({error.strerror}); choose another folder") from error


def csv_bytes(frame: Any, *, safe_cells: bool = False) -> bytes:
    """A frame as CSV in UTF-8.

    Args:
        frame: The frame.
        safe_cells: Put an apostrophe before text that a spreadsheet would take for a formula. Such names then cannot
            be read back unchanged; without it all can.
    """
    sink = pa.BufferOutputStream()
    table = _plain(nw.from_native(frame, eager_only=True).to_arrow())
    if safe_cells:
        table = _without_formulas(table)
    pa.csv.write_csv(table, sink, pa.csv.WriteOptions(quoting_style="needed"))  # text always needs quotes
    content: bytes = sink.getvalue().to_pybytes()
    return content


def is_formula(text: str) -> bool:
    """Whether a spreadsheet may compute a cell of this text: those skip blanks first, and know wide signs, too."""
    return text.lstrip().startswith(_FORMULA_SIGNS) or text.startswith(("\t", "\r", "\n"))


def _without_formulas(table: pa.Table) -> pa.Table:
    """Text, in cells and in the header, that nothing computes."""
    for index, field in enumerate(table.schema):
        column = table.column(index)
        if pa.types.is_dictionary(field.type):
            column = column.cast(field.type.value_type)
        if is_text(column.type):
            column = pa.array([_safe(one) for one in column.to_pylist()], column.type)
        table = table.set_column(index, _safe(field.name), column)
    return table


def _safe(text: str | None) -> str | None:
    """Text behind apostrophes gets another, so that two names never become one."""
    return f"'{text}" if text is not None and is_formula(text.lstrip("'")) else text


def _plain(table: pa.Table) -> pa.Table:
    """Time stamps in whole seconds are written without their zeros."""
    for index, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            try:
                seconds = table.column(index).cast(pa.timestamp("s", tz=field.type.tz))
            except pa.ArrowInvalid:
                continue
            table = table.set_column(index, field.name, seconds)
    return table
