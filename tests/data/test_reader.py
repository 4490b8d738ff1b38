import csv
import gzip
import io
import tracemalloc
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leapts.data import reader
from leapts.data.reader import _header, _read_csv, _read_parquet, read_csv_text, read_table
from leapts.errors import DataError
from leapts.files import read_file

TEXT = "unique_id,ds,y\n007,2024-01-01,1.5\n007,2024-01-02,2.5\n"


def write(folder: Path, name: str, content: bytes | str) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def parquet_bytes(frame: pd.DataFrame) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pandas(frame), sink)
    return sink.getvalue()


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.parquet", "without_a_suffix", "misnamed.parquet"])
def test_content_decides_over_the_name(tmp_path: Path, name: str) -> None:
    content = TEXT.encode()
    if name.endswith(".gz"):
        content = gzip.compress(content)
    elif name == "a.parquet":
        content = parquet_bytes(pd.read_csv(io.StringIO(TEXT), dtype={"unique_id": str}))
    table = read_table(write(tmp_path, name, content))
    assert table.columns == ["unique_id", "ds", "y"]
    assert table.name == name
    assert table.column("y").to_pylist() == [1.5, 2.5]
    assert table.column("unique_id").to_pylist() == ["007", "007"]  # leading zeros stay


def test_standard_input_is_a_dash(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(TEXT.encode()))))
    table = read_table("-")
    assert table.name == "standard input"
    assert len(table) == 2


@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_other_delimiters_are_recognized(tmp_path: Path, separator: str) -> None:
    table = read_table(write(tmp_path, "a.csv", TEXT.replace(",", separator)))
    assert table.columns == ["unique_id", "ds", "y"]


def test_spaces_around_column_names_are_removed(tmp_path: Path) -> None:
    assert read_table(write(tmp_path, "a.csv", "ds, y \n1, 2\n")).columns == ["ds", "y"]


def test_series_names_are_text_even_if_the_header_has_spaces(tmp_path: Path) -> None:
    for header in ("ds, unique_id ,y", '"ds","unique_id","y"', "\ufeffds,unique_id,y"):
        table = read_table(write(tmp_path, "a.csv", f"{header}\n1,007,2\n"))
        assert table.column("unique_id").to_pylist() == ["007"]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_every_line_end_is_read_and_blank_lines_are_counted(tmp_path: Path, end: str) -> None:
    lines = ["", "ds,y", "1,2", "", "", "2,3", "3,x", ""]
    table = read_table(write(tmp_path, "a.csv", end.join(lines)))
    assert table.column("ds").to_pylist() == [1, 2, 3]
    assert [table.place(row) for row in range(3)] == ["line 3", "line 6", "line 7"]
    plain = read_table(write(tmp_path, "a.csv", end.join(["ds,y", "1,2", "2,3", "", ""])))
    assert plain.text is None  # the text is not kept where each line is a row
    assert plain.place(1) == "line 3"


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_row_with_line_breaks_is_placed_on_its_first_line(tmp_path: Path, end: str) -> None:
    lines = ['"ds","Sales', '(EUR)"', '1,"2"', "", '2,"a ""b""', "", 'c"', "3,4"]
    table = read_table(write(tmp_path, "a.csv", end.join(lines)))
    assert table.column("ds").to_pylist() == [1, 2, 3]
    assert [table.place(row) for row in range(3)] == ["line 3", "line 5", "line 8"]


PLAIN_CELLS = st.from_regex(r'\A[a-z 0-9][a-z "]{0,4}\Z')  # a quotation mark inside a cell quotes nothing
QUOTED_CELLS = st.from_regex(r'\A"([a-z;\n]|""){0,4}"\Z')


@given(st.lists(st.tuples(PLAIN_CELLS | QUOTED_CELLS, PLAIN_CELLS | QUOTED_CELLS), min_size=1, max_size=8))
def test_a_row_is_placed_on_its_first_line(rows: list[tuple[str, str]]) -> None:
    lines = ["a;b", *(";".join(row) for row in rows)]
    table = _read_csv("\n".join(lines).encode(), "a.csv", "unique_id")
    expected = ["\n".join(lines[:row]).count("\n") + 2 for row in range(1, len(lines))]
    assert [table.place(row) for row in range(len(rows))] == [f"line {line}" for line in expected]


def test_a_byte_order_mark_is_not_part_of_the_header(tmp_path: Path) -> None:
    assert read_table(write(tmp_path, "a.csv", b"\xef\xbb\xbf" + TEXT.encode())).columns[0] == "unique_id"


@pytest.mark.parametrize(
    ("frame", "kind"),
    [
        (pd.DataFrame({"ds": [1, 2], "y": [1.0, 2.0]}), "pandas"),
        (pl.DataFrame({"ds": [1, 2], "y": [1.0, 2.0]}), "polars"),
        (pa.table({"ds": [1, 2], "y": [1.0, 2.0]}), "pyarrow"),
    ],
)
def test_frames_of_each_kind_are_read(frame: object, kind: str) -> None:
    table = read_table(frame)
    assert (table.kind, table.name, table.columns) == (kind, "the frame", ["ds", "y"])
    assert table.column("y").to_pylist() == [1.0, 2.0]


def test_integer_column_names_become_text() -> None:
    table = read_table(pd.DataFrame({0: [1.0], 1: [2.0]}))
    assert table.columns == ["0", "1"]
    assert table.column("1").to_pylist() == [2.0]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "a.csv is empty; it needs a header line"),
        (b" \n\n", "a.csv is empty"),
        (b"unique_id,ds,y\n", "a.csv has a header but no rows"),
        (b"unique_id,ds,y", "a.csv has a header but no rows"),
        (gzip.compress(b"", mtime=0), "a.csv is empty"),
        (gzip.compress(TEXT.encode(), mtime=0)[:-12], "gzip data are cut off or damaged .*; copy the file again"),
        (
            "ds,y\n1,2\n2,é\n".encode("latin-1"),
            "line 3 holds byte 0xe9, which is not UTF-8; save it as UTF-8",
        ),
        (TEXT.encode("utf-16"), "encoded as UTF-16; save it as UTF-8"),
        (b"PK\x03\x04rest", "is a zip archive or a spreadsheet; save the table as CSV"),
        (b"ds,y\n1,2\n3\n", "every line needs as many values as the header"),
        (b"ds,y,y\n1,2,3\n", "the header repeats 'y'; give every column its own name"),
        (b"PAR1 and then nothing of use", "Parquet data are cut off or damaged"),
    ],
)
def test_unreadable_files_are_refused_with_a_hint(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_table(write(tmp_path, "a.csv", content))


def test_a_cut_off_parquet_file_is_refused(tmp_path: Path) -> None:
    content = parquet_bytes(pd.DataFrame({"ds": range(100), "y": range(100)}))
    with pytest.raises(DataError, match=r"a\.parquet: the Parquet data are cut off or damaged .* copy the file again"):
        read_table(write(tmp_path, "a.parquet", content[: len(content) // 2]))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"sales\.csv does not exist; check the path"):
        read_table(tmp_path / "sales.csv")


def test_a_directory_is_refused_and_shows_what_it_holds(tmp_path: Path) -> None:
    write(tmp_path, "sales.csv", TEXT)
    with pytest.raises(DataError, match=r"is a directory; pass one file; it holds 'sales\.csv'"):
        read_table(tmp_path)


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        ([1, 2, 3], "cannot read series from 'list'; pass a path, or a pandas, polars or pyarrow frame"),
        (pl.LazyFrame({"ds": [1]}), r"the frame is lazy; pass frame.collect\(\)"),
        (pd.DataFrame([[1, 2]], columns=["y", "y"]), "the frame: the header repeats 'y'"),
        (pa.table([[1], [2]], names=["y", "y"]), "the frame: the header repeats 'y'"),
        (pd.DataFrame({"ds": [], "y": []}), "the frame has 2 columns but no rows"),
    ],
)
def test_unreadable_frames_are_refused_with_a_hint(frame: object, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_table(frame)


def test_rows_are_counted_as_lines_in_files_and_from_zero_in_frames(tmp_path: Path) -> None:
    assert read_table(write(tmp_path, "a.csv", TEXT)).place(0) == "line 2"
    assert read_table(pd.DataFrame({"y": [1]})).place(0) == "row 0 (counted from 0)"


@pytest.mark.parametrize("column", ["a;b;c;d", "a|b|c|d", "a\tb\tc\td", 'a";;;";;;b', "a;;;\nb"])
def test_delimiters_inside_quotes_are_text(tmp_path: Path, column: str) -> None:
    cell = column.replace('"', '""')
    path = write(tmp_path, "a.csv", f'"{cell}",ds,y\nx,2024-01-01,1\n')
    assert read_table(path).columns == [column, "ds", "y"]


def test_lines_may_be_longer_than_a_parser_block(tmp_path: Path) -> None:
    names = [f"series_{number:0300d}" for number in range(5_000)]
    rows = "".join(f"2024-01-0{day}" + f",{day}" * len(names) + "\n" for day in (1, 2, 3))
    table = read_table(write(tmp_path, "wide.csv", f"ds,{','.join(names)}\n{rows}"))
    assert table.columns == ["ds", *names]
    assert table.series(names[-1]).to_list() == [1, 2, 3]


def test_a_broken_line_of_a_long_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="Expected 3 columns, got 2"):
        read_table(write(tmp_path, "long.csv", "unique_id,ds,y\n" + "a,2024-01-01,1\n" * 100_000 + "a,1\n"))


def test_a_header_of_tabs_is_a_header(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="Expected 4 columns, got 2"):
        read_table(write(tmp_path, "tabs.csv", "\t\t\t\n\t\t\t\na\tb\n"))


def test_names_with_line_breaks_are_read_in_long_files(tmp_path: Path) -> None:
    # Files are read in pieces of a megabyte, and one of them ends within a name.
    name = "first\n" * 50
    path = write(tmp_path, "a.csv", "unique_id,ds,y\n" + f'"{name}",2024-01-01,1\n' * 5000)
    table = read_table(path)
    assert set(table.frame.get_column("unique_id").to_list()) == {name}
    assert len(table.frame) == 5000


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (PermissionError(13, "Permission denied"), "may not be read by this user; change its permissions"),
        (OSError(5, "Input/output error"), r"cannot be read \(Input/output error\); check the path"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_with_the_reason(
    error: OSError, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: Path) -> bytes:
        raise error

    path = write(tmp_path, "a.csv", TEXT)
    monkeypatch.setattr(Path, "read_bytes", fail)
    with pytest.raises(DataError, match=message):
        read_file(path)


def test_half_a_surrogate_pair_is_refused_with_its_row() -> None:
    frame = pd.DataFrame({"unique_id": pd.Series(["a", "\ud800b"], dtype=object)})
    with pytest.raises(
        DataError, match=r"'unique_id' holds .*ud800b.* at row 1 \(counted from 0\), which is not valid Unicode"
    ):
        read_table(frame).column("unique_id")


def test_a_parquet_file_with_repeated_columns_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "twice.parquet"
    pq.write_table(pa.Table.from_arrays([pa.array([1]), pa.array([2.0]), pa.array([3.0])], ["ds", "y", "y"]), path)
    with pytest.raises(DataError, match=r"twice\.parquet: the header repeats 'y'; give every column its own name"):
        read_table(path)


@pytest.mark.parametrize("header", ["," * 1_000_000, '"a\nb"' + "," * 1_000_000, "ds;" + '"x;"' + ";" * 1_000_000])
@pytest.mark.parametrize("packed", [False, True])
def test_a_header_of_a_million_columns_is_refused_before_it_is_parsed(
    tmp_path: Path, header: str, packed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pa.csv, "read_csv", lambda *_: pytest.fail("the parser ran"))
    content = f"{header}\n1,2\n".encode()
    path = write(tmp_path, "wide.csv", gzip.compress(content, compresslevel=1) if packed else content)
    tracemalloc.start()
    with pytest.raises(DataError, match=r"wide\.csv has more than 50,000 columns"):
        read_table(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 15 * len(content)


def test_a_parquet_file_of_too_many_columns_is_refused_before_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pd.DataFrame({name: [1.0] for name in "abcd"})
    assert len(_read_parquet(parquet_bytes(frame), "wide.parquet", "unique_id", max_columns=4)) == 1
    monkeypatch.setattr(pa.parquet, "read_table", lambda *_, **__: pytest.fail("the parser ran"))
    with pytest.raises(DataError, match=r"wide\.parquet has more than 3 columns"):
        _read_parquet(parquet_bytes(frame), "wide.parquet", "unique_id", max_columns=3)


def test_a_parquet_file_that_expands_too_much_is_refused_before_it_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    content = parquet_bytes(pd.DataFrame({"ds": np.zeros(1 << 20, np.int8)}))
    assert len(_read_parquet(content, "a.parquet", "unique_id", max_columns=3)) == 1 << 20
    monkeypatch.setattr(reader, "_ALWAYS_READ", 1 << 20)
    monkeypatch.setattr(pa.parquet, "read_table", lambda *_, **__: pytest.fail("the parser ran"))
    with pytest.raises(DataError, match=r"a\.parquet expands to 8,388,608 bytes"):
        _read_parquet(content, "a.parquet", "unique_id", max_columns=3)


def test_a_caller_may_allow_fewer_columns() -> None:
    assert read_csv_text(b"a,b,c\n1,2,3\n", max_columns=3).columns == ["a", "b", "c"]
    for header in (b"a,b,c,d", b'a,b,c,"d\ne"', b"a;b;c;d", b",,,"):
        with pytest.raises(DataError, match="the table has more than 3 columns"):
            read_csv_text(header + b"\n1,2,3,4\n", max_columns=3)


def test_standard_input_has_the_limit_of_columns_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pa.csv, "read_csv", lambda *_: pytest.fail("the parser ran"))
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"," * 100_000 + b"\n1\n")))
    with pytest.raises(DataError, match="standard input has more than 50,000 columns"):
        read_table("-")


@given(
    cells=st.lists(st.text('ab,"\n ;', max_size=2), min_size=1, max_size=3, unique=True),
    delimiter=st.sampled_from([",", ";"]),
)
def test_the_header_has_as_many_cells_as_the_parser_finds(cells: list[str], delimiter: str) -> None:
    sink = io.StringIO()
    csv.writer(sink, delimiter=delimiter, lineterminator="\n").writerow([*"cdefghij", *cells])
    header, found = _header(f"{sink.getvalue()}row".encode(), "a.csv")
    parse = pa.csv.ParseOptions(delimiter=found, newlines_in_values=True)
    text = sink.getvalue() + found.join("1" * len(header)) + "\n"
    assert pa.csv.read_csv(io.BytesIO(text.encode()), parse_options=parse).num_columns == len(header)


def test_a_nul_byte_in_the_header_is_refused(tmp_path: Path) -> None:
    for header in ("unique_id\0,ds,y", "unique_id,ds,y\0", '"a\n\0",ds,y'):
        with pytest.raises(DataError, match=r"a\.csv: .*NUL byte in column [13]"):
            read_table(write(tmp_path, "a.csv", f"{header}\na,1,2\n"))
