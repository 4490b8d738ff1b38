"""Read a file, standard input or a frame as a `Table` of columns by name."""

import csv
import io
import re
import sys
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import narwhals as nw
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from leapts.errors import DataError
from leapts.files import GZIP_MAGIC, decompress, read_file
from leapts.messages import counted, listed, quoted

FrameKind = Literal["pandas", "polars", "pyarrow"]
# The time type of dates in a text file. In pandas frames they are timestamps, because pandas has no date type besides
# Python objects; in written files they are dates.
DATES_OF_TEXT = "timestamp[day]"

PARQUET_MAGIC = b"PAR1"
FOREIGN_MAGIC = {
    b"PK\x03\x04": "a zip archive or a spreadsheet",
    b"\xd0\xcf\x11\xe0": "an old spreadsheet",
    b"%PDF": "a PDF",
    b"\x89HDF": "an HDF5 file",
    b"\x93NUM": "a numpy array",
    b"ARROW1": "an Arrow (Feather) file",
    b"\x28\xb5\x2f\xfd": "a zstd archive",
    b"BZh": "a bzip2 archive",
    b"\xfd7zXZ": "an xz archive",
}
NULL_SPELLINGS = ["", "NA", "N/A", "NaN", "nan", "null", "NULL", "None"]
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
MAX_COLUMNS = 50_000  # the CSV parser takes about 5 kB for each column of the header, even if it is empty
_MAX_PARQUET_RATIO = 1000  # of the size in memory to the size of the file
_ALWAYS_READ = 1 << 30  # bytes in memory, whatever the ratio
_BLOCK_PER_COLUMN = 256  # bytes parsed at a time for each column: a block takes memory for every one of them
_BLOCK = pa.csv.ReadOptions().block_size  # bytes parsed at a time
_MAX_BLOCK = (1 << 31) - 1
_QUOTED = re.compile(rb'"[^"]*+(?:""[^"]*+)*+(?:"|\Z)')
_LINE_END = re.compile(rb"\r\n|\r|\n")
_BLANK_LINES = (b"\n\n", b"\n\r\n", b"\r\r")
_NOT_BLANK = re.compile(rb"\S")


@dataclass(frozen=True)
class Table:
    """Columns by name, and the place of their rows for error messages."""

    frame: nw.DataFrame[Any]  # columns
    name: str  # name in messages: the file name, "standard input" or "the frame"
    kind: FrameKind  # library of the frame, so that output frames are of the same kind
    is_text: bool = False  # whether the rows are lines of a text file
    # Text and its delimiter, if a row may be blank or span lines; None if each line is a row.
    text: tuple[bytes, str] | None = None

    @cached_property
    def columns(self) -> list[str]:
        """Names of the columns, in order."""
        return [str(name) for name in self.frame.columns]

    @cached_property
    def _native_names(self) -> dict[str, Any]:
        return dict(zip(self.columns, self.frame.columns, strict=True))

    def __len__(self) -> int:
        return len(self.frame)

    def place(self, row: int) -> str:
        """Place of a row for a reader: its line in a text file, its number in a frame."""
        line = row + 2 if self.text is None else _line_of_row(*self.text, row)
        return f"line {line}" if self.is_text and line is not None else f"row {row} (counted from 0)"

    def series(self, name: str) -> nw.Series[Any]:
        """Return a column in the frame's own type."""
        return self.frame.get_column(self._native_names[name])

    def column(self, name: str) -> pa.ChunkedArray:
        """Convert a column to Arrow; mixed Python objects become text, for validation to refuse."""
        series = self.series(name)
        try:
            data = series.to_arrow()
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            data = self._as_text(name, series.to_list())
        return data if isinstance(data, pa.ChunkedArray) else pa.chunked_array([data])

    def error(self, column: str, problem: str) -> DataError:
        """Make an error about a column."""
        return DataError(f"{self.name}: column {quoted(column)} {problem}")

    def refuse_nulls(self, data: pa.ChunkedArray | pa.Array, column: str, what: str) -> None:
        """Refuse a column with missing values, with the place of the first."""
        if data.null_count:
            row = pc.index(pc.is_null(data), True).as_py()
            raise self.error(
                column,
                f"has no {what} at {self.place(row)} ({data.null_count} missing in all); fill it in or drop the row",
            )

    def _as_text(self, name: str, values: list[object]) -> pa.Array:
        texts = [None if value is None else str(value) for value in values]
        try:
            return pa.array(texts)
        except UnicodeEncodeError as error:
            row = texts.index(error.object)
            raise self.error(
                name,
                f"holds {quoted(texts[row])} at {self.place(row)}, which is not "
                "valid Unicode (half of a surrogate pair); correct it",
            ) from None


def read_table(source: str | Path | object, *, id_col: str = "unique_id") -> Table:
    """Read a CSV, gzipped CSV or Parquet file (recognized by content), standard input (`-`), or a frame.

    Args:
        source: A path, `-`, or a pandas, polars or pyarrow frame.
        id_col: The column of series names, read as text from a CSV so that `007` stays `007`.

    Raises:
        DataError: With the name of the source and what to do.
    """
    if isinstance(source, str) and source == "-":
        if sys.stdin is None:
            raise DataError("standard input is closed; give a file, or pipe one in")
        return _read_bytes(sys.stdin.buffer.read(), "standard input", id_col)
    if isinstance(source, str | Path):
        path = Path(source)
        return _read_bytes(read_file(path), path.name, id_col)
    return _read_frame(source)


def read_csv_text(content: bytes, *, id_col: str = "unique_id", max_columns: int = MAX_COLUMNS) -> Table:
    """Read an untrusted CSV in UTF-8, not compressed; too many columns are refused before it is parsed.

    Raises:
        DataError: With what to do.
    """
    packed = {GZIP_MAGIC: "gzip data", PARQUET_MAGIC: "a Parquet file", **FOREIGN_MAGIC}
    for magic, what in packed.items():
        if content.startswith(magic):
            raise DataError(f"the table is {what}; send it as plain CSV text")
    return _read_bytes(content, "the table", id_col, max_columns)


def _read_bytes(content: bytes, name: str, id_col: str, max_columns: int = MAX_COLUMNS) -> Table:
    if content.startswith(GZIP_MAGIC):
        content = decompress(content, name)
    if not content.strip():
        raise DataError(f"{name} is empty; it needs a header line and at least one row")
    if content.startswith(PARQUET_MAGIC):
        return _read_parquet(content, name, id_col, max_columns)
    for magic, what in FOREIGN_MAGIC.items():
        if content.startswith(magic):
            raise DataError(f"{name} is {what}; save the table as CSV (gzip is fine) or Parquet")
    return _read_csv(content, name, id_col, max_columns)


def _read_parquet(content: bytes, name: str, id_col: str, max_columns: int) -> Table:
    try:
        file = pa.parquet.ParquetFile(pa.BufferReader(content))
        _require_few_columns(file.metadata.num_columns, name, max_columns)
        expanded = 8 * file.metadata.num_columns * file.metadata.num_rows
        if expanded > max(_MAX_PARQUET_RATIO * len(content), _ALWAYS_READ):
            raise DataError(f"{name} expands to {expanded:,} bytes, more than any table; inspect the file")
        _refuse_repeats(file.schema_arrow.names, name)
        # Series names repeat on every row: as a dictionary they take four bytes a row.
        dictionaries = [id_col] if id_col in file.schema_arrow.names else None
        frame = pa.parquet.read_table(pa.BufferReader(content), read_dictionary=dictionaries, use_threads=False)
    except (pa.ArrowException, OSError) as error:
        raise DataError(
            f"{name}: the Parquet data are cut off or damaged ({_first_line(error)}); copy the file again"
        ) from error
    return _table(frame, name, kind="pandas")


def _read_csv(content: bytes, name: str, id_col: str, max_columns: int = MAX_COLUMNS) -> Table:
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise DataError(f"{name} is encoded as UTF-16; save it as UTF-8 (iconv -f UTF-16 -t UTF-8)")
    try:
        content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"{name}: line {line} holds byte 0x{content[error.start]:02x}, which is not UTF-8; "
            "save it as UTF-8 (iconv -f LATIN1 -t UTF-8, if it came from an old spreadsheet)"
        ) from None
    header, delimiter = _header(without_blank_start(content), name, max_columns)
    # Spaces around names are removed below, but the parser still sees them.
    ids = {id_col, *(cell for cell in header if cell.strip() == id_col)}
    # Looking for line ends inside quotes takes longer, so only if there are quotes.
    parse = pa.csv.ParseOptions(delimiter=delimiter, newlines_in_values=b'"' in content)
    convert = pa.csv.ConvertOptions(
        column_types=dict.fromkeys(ids, pa.dictionary(pa.int32(), pa.string())), null_values=NULL_SPELLINGS
    )
    block = max(_BLOCK, _BLOCK_PER_COLUMN * len(header))
    try:
        try:
            read = pa.csv.ReadOptions(use_threads=False, block_size=block)
            frame = pa.csv.read_csv(io.BytesIO(content), read, parse, convert)
        except pa.ArrowInvalid:  # perhaps because a line is longer than a block
            if len(content) <= block:
                raise
            whole = pa.csv.ReadOptions(use_threads=False, block_size=min(len(content) + 1, _MAX_BLOCK))
            frame = pa.csv.read_csv(io.BytesIO(content), whole, parse, convert)
    except pa.ArrowException as error:
        raise DataError(
            f"{name} is not a table of comma-separated values ({_first_line(error)}); "
            "every line needs as many values as the header, and every quotation mark another that closes it"
        ) from error
    frame = frame.rename_columns([column.strip() for column in frame.column_names])
    text = (content, delimiter) if _may_have_long_rows(content) else None
    return _table(frame, name, kind="pandas", is_text=True, text=text)


def without_blank_start(content: bytes) -> bytes:
    """Remove the byte order mark and empty lines before the header; tabs and spaces are part of the header."""
    return content.removeprefix(BYTE_ORDER_MARK).lstrip(b"\r\n")


def _may_have_long_rows(content: bytes) -> bool:
    """Whether rows may be blank or span lines, so that line numbers must be counted."""
    content = content.removeprefix(BYTE_ORDER_MARK)
    first = min((place for blank in _BLANK_LINES if (place := content.find(blank)) >= 0), default=len(content))
    return content.startswith((b"\r", b"\n")) or bool(content[first:].strip()) or b'"' in content


def _line_of_row(content: bytes, delimiter: str, row: int) -> int | None:
    """Find the line on which a row begins; None if a cell is too long for Python's parser."""
    reader = csv.reader(io.StringIO(content.decode("utf-8-sig"), newline=""), delimiter=delimiter)
    found, line = -2, 1  # the header is row -1
    try:
        for cells in reader:
            found += bool(cells)
            if cells and found == row:
                return line
            line = reader.line_num + 1
    except csv.Error:
        pass
    return None


def _header(content: bytes, name: str, max_columns: int = MAX_COLUMNS) -> tuple[list[str], str]:
    """Split the header into cells, and find the delimiter, before the parser runs.

    Raises:
        DataError: When there are too many columns, a NUL byte in the header, or no rows after it.
    """
    line = _LINE_END.search(content)
    bare = _QUOTED.sub(b"", content[: line.start()] if line else content)
    delimiter = max((b",", b";", b"\t", b"|"), key=bare.count)
    # As in the parser, a quotation mark quotes only at the start of a cell; quoted cells may contain line ends.
    cell = re.compile(rb'((?:"[^"]*+(?:""[^"]*+)*+(?:"|\Z))?[^\r\n%b]*+)(%b?)' % (delimiter, re.escape(delimiter)))
    cells, end = [], 0
    for found in cell.finditer(content):
        cells.append(found[1].decode())
        end = found.end()
        if not found[2] or len(cells) > max_columns:
            break
    _require_few_columns(len(cells), name, max_columns)
    for column, text in enumerate(cells, start=1):
        if "\0" in text:
            raise DataError(
                f"{name}: the header holds a NUL byte in column {column} ({quoted(text)}); save it as UTF-8 text"
            )
    if not _NOT_BLANK.search(content, end):
        raise DataError(f"{name} has a header but no rows; it needs at least one")
    return cells, delimiter.decode()


def _require_few_columns(columns: int, name: str, limit: int) -> None:
    if columns > limit:
        raise DataError(
            f"{name} has more than {limit:,} columns; use the long layout, one row for each series and timestamp"
        )


def _first_line(error: BaseException) -> str:
    return str(error).strip().split("\n")[0][:200]


def _read_frame(frame: object) -> Table:
    name = "the frame"
    try:
        wrapped = nw.from_native(frame, eager_only=True)  # type: ignore[call-overload]
    except nw.exceptions.DuplicateError:
        columns = frame.column_names if isinstance(frame, pa.Table) else getattr(frame, "columns", [])
        _refuse_repeats([str(column) for column in columns], name)
        raise
    except TypeError:
        if hasattr(frame, "collect"):
            raise DataError("the frame is lazy; pass frame.collect()") from None
        raise DataError(
            f"cannot read series from {quoted(type(frame).__name__)}; pass a path, or a pandas, polars or pyarrow frame"
        ) from None
    kinds: dict[str, FrameKind] = {"polars": "polars", "pyarrow": "pyarrow"}
    return _table(wrapped, name, kind=kinds.get(wrapped.implementation.value, "pandas"))


def _table(frame: Any, name: str, *, kind: FrameKind, **text: Any) -> Table:
    if isinstance(frame, pa.Table):
        _refuse_repeats(frame.column_names, name)
        frame = nw.from_native(frame, eager_only=True)
    table = Table(frame=frame, name=name, kind=kind, **text)
    _refuse_repeats(table.columns, name)
    if len(table) == 0:
        raise DataError(f"{name} has {counted(len(table.columns), 'column')} but no rows; it needs at least one")
    return table


def _refuse_repeats(columns: list[str], name: str) -> None:
    repeated = [column for column, count in Counter(columns).items() if count > 1]
    if repeated:
        raise DataError(f"{name}: the header repeats {listed(repeated)}; give every column its own name")


def is_text(kind: pa.DataType) -> bool:
    """Whether an Arrow type is text."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))
