"""Frames into files, whole or not at all."""

import gzip
from pathlib import Path
from typing import Any

import narwhals as nw
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from leapts.errors import DataError
from leapts.files import write_file

SUFFIXES = (".csv", ".csv.gz", ".parquet")


def write_frame(frame: Any, path: str | Path) -> Path:
    """Writes a pandas, polars or pyarrow frame as CSV, gzipped CSV or Parquet, as the name ends.

    The file is written under another name, synced and renamed, so that a crash leaves the old one or the
    new one.

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
        content = csv_bytes(frame)
    write_file(target, gzip.compress(content, mtime=0) if target.suffix == ".gz" else content)
    return target


def require_writable(target: Path, suffixes: tuple[str, ...] = SUFFIXES) -> None:
    """Refuses a name nothing can be written under, so that the work before need not be done in vain.

    Args:
        target: The name.
        suffixes: How it may end.

    Raises:
        DataError: When the name tells no format, is a folder's, or the folder above is not there.
    """
    if not target.name.endswith(suffixes):
        raise DataError(f"{target.name} tells no format; end the name with {', '.join(suffixes)}")
    if not target.parent.is_dir():
        raise DataError(f"the folder {target.parent} does not exist; make it first")
    if target.is_dir():
        raise DataError(f"{target} is a folder; choose another name")


def csv_bytes(frame: Any) -> bytes:
    """A frame as CSV in UTF-8. Cells are written as they are, so that names can be read back unchanged."""
    sink = pa.BufferOutputStream()
    table = _plain(nw.from_native(frame, eager_only=True).to_arrow())
    pa.csv.write_csv(table, sink, pa.csv.WriteOptions(quoting_style="needed"))
    content: bytes = sink.getvalue().to_pybytes()
    return content


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
