"""Folders of Parquet files: what is in them, and forecasts put in place whole."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet

from leapts.data.writing import write_frame
from leapts.errors import DataError


def parquet_files(folder: Path) -> list[Path]:
    """The data files of a folder and the folders below, in order; hidden ones are somebody's unfinished business.

    Raises:
        DataError: When there are none.
    """
    if not folder.is_dir():
        raise DataError(f"{folder} is no folder; an engine reads a folder of Parquet files")
    files = [
        path
        for path in sorted(folder.rglob("*.parquet"))
        if not any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)
    ]
    if not files:
        raise DataError(f"{folder} holds no Parquet files; write the data there as *.parquet")
    return files


def count_rows(files: Sequence[Path]) -> int:
    """The rows of all files, from what stands at their ends.

    Raises:
        DataError: When one is no Parquet file.
    """
    rows = 0
    for path in files:
        try:
            rows += pa.parquet.read_metadata(path).num_rows
        except (pa.ArrowException, OSError) as error:
            raise DataError(f"{path} cannot be read as Parquet ({error}); write it again, or take it away") from error
    return rows


def hold_whole_series(files: Sequence[Path], id_col: str, most_rows: int) -> bool:
    """Whether no series is in two files, and no file has more rows than these, from what stands at their ends.

    A series is in one file alone if its name lies between the first and the last name of no other. Files that do not
    say what is in them are taken to share series.
    """
    spans = []
    for path in files:
        about = pa.parquet.read_metadata(path)
        if id_col not in about.schema.names or about.num_rows > most_rows:
            return False
        column = about.schema.names.index(id_col)
        groups = [about.row_group(number).column(column).statistics for number in range(about.num_row_groups)]
        if any(group is None or not group.has_min_max for group in groups):
            return False
        if groups:
            spans.append((min(group.min for group in groups), max(group.max for group in groups)))
    if len({type(name) for span in spans for name in span}) > 1:
        return False
    spans.sort()
    return all(last < first for (_, last), (first, _) in pairwise(spans))


@dataclass(frozen=True)
class Destination:
    """Where the forecasts of a job go: part by part beside the folder asked for, and in its place when all are there.

    A job that was cut off finds the parts it has finished under the same name, and does the others.
    """

    out: Path
    job: str

    @classmethod
    def of(cls, out: Path, job: Sequence[object]) -> "Destination":
        """The destination of a job that is described by these values.

        Raises:
            DataError: When something is in the way.
        """
        if out.exists():
            raise DataError(f"{out} is there already; choose another name, or take it away")
        if not out.parent.is_dir():
            raise DataError(f"the folder {out.parent} does not exist; make it first")
        return cls(out.absolute(), hashlib.blake2b(repr(list(job)).encode(), digest_size=8).hexdigest())

    @property
    def parts(self) -> Path:
        """Where the parts gather."""
        return self.out.with_name(f".{self.out.name}.{self.job}")

    def part(self, number: int) -> Path:
        """One part's file."""
        return self.parts / f"part-{number:05d}.parquet"

    def write(self, number: int, table: pa.Table) -> None:
        """Put one part in place."""
        write_frame(table, self.part(number))

    def finish(self) -> None:
        """All parts are there: give them the name asked for."""
        self.parts.rename(self.out)
