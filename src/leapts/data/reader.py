"""From a path, standard input or a frame to a `Table`: columns by name, nothing interpreted yet."""

import io
import re
import sys
from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from leapts.errors import DataError
from leapts.files import GZIP_MAGIC, decompress, read_file
from leapts.messages import counted, listed, quoted

FrameKind = Literal["pandas", "polars", "pyarrow"]
# The type of a column of dates in a text file. Files that go out have dates too; but pandas, which would make Python
# objects of them, gets timestamps, as when it reads such a file itself.
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
_QUOTED = re.compile(rb'"[^"]*+(?:""[^"]*+)*+(?:"|\Z)')
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_LINE_END = re.compile(rb"\r\n|\r|\n")
_BLANK_LINES = (b"\n\n", b"\n\r\n", b"\r\r")
_BLOCK = pa.csv.ReadOptions().block_size  # bytes that are parsed at a time
_LARGEST_BLOCK = (1 << 31) - 1
MAX_COLUMNS = 50_000  # the parser takes some 5 kB for each column of the header, whatever it holds
_BLOCK_PER_COLUMN = 256  # bytes parsed at a time for each column: a block takes memory for every one of them
_NOT_BLANK = re.compile(rb"\S")
NULL_SPELLINGS = ["", "NA", "N/A", "NaN", "nan", "null", "NULL", "None"]


@dataclass(frozen=True)
class Table:
    """Columns by name, with what an error message needs to say where they came from.

    Attributes:
        frame: The columns.
        name: What messages call it: the file name, "standard input" or "the frame".
        kind: The kind of frame that came in, so that the same kind can come out.
        is_text: Whether the rows are lines of a text file, which readers count from 1 with the header first.
        lines: The numbers of those that rows begin on, the header's first, where some are blank or go on in the next.
    """

    frame: nw.DataFrame[Any]
    name: str
    kind: FrameKind
    is_text: bool = False
    lines: npt.NDArray[np.int64] | None = None

    @cached_property
    def columns(self) -> list[str]:
        """The names of the columns, in order."""
        return [str(name) for name in self.frame.columns]

    @cached_property
    def _native_names(self) -> dict[str, Any]:
        """What the frame itself calls its columns; looked up once, for there may be thousands."""
        return dict(zip(self.columns, self.frame.columns, strict=True))

    def __len__(self) -> int:
        return len(self.frame)

    def place(self, row: int) -> str:
        """Where a reader finds the row: the line of a text file, the position in a frame."""
        if not self.is_text:
            return f"row {row} (counted from 0)"
        return f"line {row + 2 if self.lines is None else self.lines[row + 1]}"

    def series(self, name: str) -> nw.Series[Any]:
        """One column as the frame has it."""
        return self.frame.get_column(self._native_names[name])

    def column(self, name: str) -> pa.ChunkedArray:
        """One column as Arrow data; mixed Python objects become text, for validation to refuse."""
        series = self.series(name)
        try:
            data = series.to_arrow()
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            data = self._as_text(name, series.to_list())
        return data if isinstance(data, pa.ChunkedArray) else pa.chunked_array([data])

    def refuse_nulls(self, data: pa.ChunkedArray | pa.Array, column: str, what: str) -> None:
        """Refuse a column that lacks values, with the place of the first."""
        if data.null_count:
            row = pc.index(pc.is_null(data), True).as_py()
            raise DataError(
                f"{self.name}: column {quoted(column)} has no {what} at {self.place(row)} "
                f"({data.null_count} missing in all); fill it in or drop the row"
            )

    def _as_text(self, name: str, values: list[object]) -> pa.Array:
        texts = [None if value is None else str(value) for value in values]
        try:
            return pa.array(texts)
        except UnicodeEncodeError:
            row = next(row for row, text in enumerate(texts) if text is not None and not _is_unicode(text))
            raise DataError(
                f"{self.name}: column {quoted(name)} holds {quoted(texts[row])} at {self.place(row)}, which is no text "
                "(half of a character); write it anew"
            ) from None


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def read_table(source: str | Path | object, *, id_col: str = "unique_id") -> Table:
    """Reads a CSV, gzipped CSV or Parquet file (told apart by content), standard input (`-`), or a frame.

    Args:
        source: A path, `-`, or a pandas, polars or pyarrow frame.
        id_col: The column of series names, read as text from a CSV so that `007` stays `007`.

    Raises:
        DataError: With the name of the source and the cure.
    """
    if isinstance(source, str) and source == "-":
        if sys.stdin is None:
            raise DataError("standard input is closed; give a file, or pipe one in")
        return _read_bytes(sys.stdin.buffer.read(), "standard input", id_col)
    if isinstance(source, str | Path):
        path = Path(source)
        return _read_bytes(read_file(path), path.name, id_col)
    return _read_frame(source)


def read_csv_text(content: bytes, *, id_col: str = "unique_id") -> Table:
    """Reads a CSV that a stranger sent: plain text alone, so nothing that unpacks to more than it is.

    Args:
        content: The text, in UTF-8.
        id_col: The column of series names, read as text.

    Raises:
        DataError: With the cure.
    """
    packed = {GZIP_MAGIC: "gzip data", PARQUET_MAGIC: "a Parquet file", **FOREIGN_MAGIC}
    for magic, what in packed.items():
        if content.startswith(magic):
            raise DataError(f"the table is {what}; send it as plain CSV text")
    return _read_bytes(content, "the table", id_col)


def _read_bytes(content: bytes, name: str, id_col: str) -> Table:
    if content.startswith(GZIP_MAGIC):
        content = decompress(content, name)
    if not content.strip():
        raise DataError(f"{name} is empty; it needs a header line and at least one row")
    if content.startswith(PARQUET_MAGIC):
        return _read_parquet(content, name, id_col)
    for magic, what in FOREIGN_MAGIC.items():
        if content.startswith(magic):
            raise DataError(f"{name} is {what}; save the table as CSV (gzip is fine) or Parquet")
    return _read_csv(content, name, id_col)


def _read_parquet(content: bytes, name: str, id_col: str) -> Table:
    buffer = pa.BufferReader(content)
    try:
        file = pa.parquet.ParquetFile(buffer)
        _require_few_columns(file.metadata.num_columns, name)
        columns = file.schema_arrow.names
        _refuse_repeats(columns, name)
        buffer.seek(0)
        # Names repeat on every row: as a dictionary they cost four bytes a row.
        dictionaries = [id_col] if id_col in columns else None
        frame = pa.parquet.read_table(buffer, read_dictionary=dictionaries, use_threads=False)
    except (pa.ArrowException, OSError) as error:
        raise DataError(
            f"{name}: the Parquet data are cut off or damaged ({_first_line(error)}); copy the file again"
        ) from error
    return _table(frame, name, kind="pandas", is_text=False)


def _read_csv(content: bytes, name: str, id_col: str) -> Table:
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
    header, delimiter = _header(without_blank_start(content), name)
    # Spaces around the names in a header are no part of them, but are to the parser.
    ids = {id_col, *(cell for cell in header if cell.strip() == id_col)}
    # Lines may go on within quotes; to look for that takes longer, so only where there are any.
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
            whole = pa.csv.ReadOptions(use_threads=False, block_size=min(len(content) + 1, _LARGEST_BLOCK))
            frame = pa.csv.read_csv(io.BytesIO(content), whole, parse, convert)
    except pa.ArrowException as error:
        raise DataError(
            f"{name} is not a table of comma-separated values ({_first_line(error)}); "
            "every line needs as many values as the header, and every quotation mark another that closes it"
        ) from error
    frame = frame.rename_columns([column.strip() for column in frame.column_names])
    table = _table(frame, name, kind="pandas", is_text=True)
    return replace(table, lines=_line_numbers(content, delimiter, rows=len(table) + 1))


def without_blank_start(content: bytes) -> bytes:
    """The text from its header on, as the parser sees it: tabs and spaces belong to the header."""
    return content.removeprefix(BYTE_ORDER_MARK).lstrip(b"\r\n")


def _line_numbers(content: bytes, delimiter: str, rows: int) -> npt.NDArray[np.int64] | None:
    """Of the lines that so many rows begin on, the header among them; none where every line is one, as is usual."""
    content = content.removeprefix(BYTE_ORDER_MARK)
    first = min((place for blank in _BLANK_LINES if (place := content.find(blank)) >= 0), default=len(content))
    if not content.startswith((b"\r", b"\n")) and not content[first:].strip() and b'"' not in content:
        return None
    content = content.replace(b"\r\n", b"\n").replace(b"\r", b"\n") + b"\n"
    text = np.frombuffer(content, dtype=np.uint8)
    ends = np.flatnonzero(text == ord("\n"))
    starts = np.concatenate([[0], ends[:-1] + 1])
    # A line that leaves a quotation open goes on in the next one.
    quotes = np.add.reduceat(text == ord('"'), starts, dtype=np.int64)
    lines = _lines_of_rows(starts, ends, quotes.cumsum() % 2 == 0)
    if len(lines) != rows:
        # Marks amid a cell, as for inches, quote nothing: only what begins a cell does. To look for that takes longer.
        cell = re.compile(rb'(?<![^%b\n])"[^"]*(?:""[^"]*)*"' % re.escape(delimiter.encode()))
        text = np.frombuffer(cell.sub(lambda found: found[0].replace(b"\n", b" "), content), dtype=np.uint8)
        lines = _lines_of_rows(starts, ends, text[ends] == ord("\n"))
    return lines if len(lines) == rows else None


def _lines_of_rows(
    starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int64], is_complete: npt.NDArray[np.bool_]
) -> npt.NDArray[np.int64]:
    """The numbers of lines that begin a row: those after one that completes its row, unless they are blank."""
    begins = np.concatenate([[True], is_complete[:-1]])
    return np.flatnonzero(begins & (ends > starts)) + 1


def _header(content: bytes, name: str) -> tuple[list[str], str]:
    """Split the header into cells, and find the delimiter, before the parser runs.

    Raises:
        DataError: When there are too many columns, a NUL byte in the header, or no rows after it.
    """
    line = _LINE_END.search(content)
    bare = _QUOTED.sub(b"", content[: line.start()] if line else content)
    delimiter = max((b",", b";", b"\t", b"|"), key=bare.count)
    # As the parser does: a quotation mark quotes only at the start of a cell, and then line ends too.
    cell = re.compile(rb'((?:"[^"]*+(?:""[^"]*+)*+(?:"|\Z))?[^\r\n%b]*+)(%b?)' % (delimiter, re.escape(delimiter)))
    cells, end = [], 0
    for found in cell.finditer(content):
        cells.append(found[1].decode())
        end = found.end()
        if not found[2] or len(cells) > MAX_COLUMNS:
            break
    _require_few_columns(len(cells), name)
    for column, text in enumerate(cells, start=1):
        if "\0" in text:
            raise DataError(
                f"{name}: the header holds a NUL byte in column {column} ({quoted(text)}); save it as UTF-8 text"
            )
    if not _NOT_BLANK.search(content, end):
        raise DataError(f"{name} has a header but no rows; it needs at least one")
    return cells, delimiter.decode()


def _require_few_columns(columns: int, name: str) -> None:
    if columns > MAX_COLUMNS:
        raise DataError(
            f"{name} has more than {MAX_COLUMNS:,} columns; give it in the long layout, one row for each series and "
            "timestamp"
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
    return _table(wrapped, name, kind=kinds.get(wrapped.implementation.value, "pandas"), is_text=False)


def _table(frame: Any, name: str, *, kind: FrameKind, is_text: bool) -> Table:
    if isinstance(frame, pa.Table):
        _refuse_repeats(frame.column_names, name)
        frame = nw.from_native(frame, eager_only=True)
    table = Table(frame=frame, name=name, kind=kind, is_text=is_text)
    _refuse_repeats(table.columns, name)
    if len(table) == 0:
        raise DataError(f"{name} has {counted(len(table.columns), 'column')} but no rows; it needs at least one")
    return table


def _refuse_repeats(columns: list[str], name: str) -> None:
    repeated = [column for column, count in Counter(columns).items() if count > 1]
    if repeated:
        raise DataError(f"{name}: the header repeats {listed(repeated)}; give every column its own name")


def is_text(kind: pa.DataType) -> bool:
    """Whether a column of that kind holds text."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))
