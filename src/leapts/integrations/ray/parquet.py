"""Read folders of Parquet files, and write forecasts to one."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet

from leapts.data.frames import write_frame
from leapts.errors import DataError


def parquet_files(folder: Path) -> list[Path]:
    """List the Parquet files of a folder and its subfolders, in order, without hidden ones.

    Raises:
        DataError: When there are none.
    """
    if not folder.is_dir():
        raise DataError(f"{folder} is not a folder; --engine ray reads a folder of Parquet files")
    files = [
        path
        for path in sorted(folder.rglob("*.parquet"))
        if not any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)
    ]
    if not files:
        raise DataError(f"{folder} has no Parquet files; write the data there as *.parquet")
    return files


def count_rows(files: Sequence[Path]) -> int:
    """Count the rows of all files from their metadata.

    Raises:
        DataError: When a file is not Parquet.
    """
    rows = 0
    for path in files:
        try:
            rows += pa.parquet.read_metadata(path).num_rows
        except (pa.ArrowException, OSError) as error:
            raise DataError(f"{path} cannot be read as Parquet ({error}); write it again, or remove it") from error
    return rows


def hold_whole_series(files: Sequence[Path], id_col: str, max_rows: int) -> bool:
    """Check from metadata that no series is in two files, and no file has more than `max_rows` rows.

    Series are in one file each if the ranges of names of the files do not overlap. Files without statistics are assumed
    to share series.
    """
    spans = []
    for path in files:
        about = pa.parquet.read_metadata(path)
        if id_col not in about.schema.names or about.num_rows > max_rows:
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
    """The output folder of a job.

    Parts are written to a hidden folder next to it, which is renamed when all parts are written. An interrupted job
    finds its finished parts there, and writes the others.
    """

    out: Path
    job: str

    @classmethod
    def of(cls, out: Path, job: Sequence[object]) -> "Destination":
        """Create the destination of a job; `job` holds everything its result depends on.

        Raises:
            DataError: When the folder exists already, or its parent does not.
        """
        if out.exists():
            raise DataError(f"{out} exists already; choose another name, or remove it")
        if not out.parent.is_dir():
            raise DataError(f"the folder {out.parent} does not exist; make it first")
        return cls(out.absolute(), hashlib.blake2b(repr(list(job)).encode(), digest_size=8).hexdigest())

    @property
    def parts(self) -> Path:
        """Return the hidden folder of the parts."""
        return self.out.with_name(f".{self.out.name}.{self.job}")

    def part(self, number: int) -> Path:
        """Return the file of one part."""
        return self.parts / f"part-{number:05d}.parquet"

    def write(self, number: int, table: pa.Table) -> None:
        """Write one part."""
        write_frame(table, self.part(number))

    def finish(self) -> None:
        """Rename the folder of parts to the output folder."""
        self.parts.rename(self.out)
