"""Data sets of `catalogue.toml`; listing them imports neither torch nor pandas."""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Literal

from leapts.data.splits import Split, split_by_fractions, split_by_months
from leapts.errors import DataError
from leapts.messages import listed, nearest, quoted

Kind = Literal["files", "synthetic", "bundled"]


@dataclass(frozen=True, kw_only=True)
class StoredFile:
    """A file of a data set, or of a part of it."""

    name: str  # file's name in the data folder
    part: str = "all"  # part of the set: `all`, or `train`, `test` and `naive2` of M4
    checksum: str | None = None  # `sha256:` and the digest, or `git:` and the blob id; None if none was published
    url: str | None = None  # download address; None if it needs a browser


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """A data set of the catalogue."""

    name: str  # name, spelled as in the paper
    kind: Kind  # in files, simulated, or bundled with the package
    domain: str  # subject
    series: int  # number of series
    length: int | None = None  # number of steps of each series; None if they differ
    observations: int  # number of all values (of the training part, if it has files of its own)
    freq: str | int  # frequency, a pandas alias or an integer step
    season: int  # season length in steps, as in the benchmarks
    # Whether to use timestamps, or row numbers because the timestamps are irregular.
    time: Literal["calendar", "row"] = "calendar"
    split: Split | None = None  # standard split; None if the test part has files of its own
    input_size: int | None = None  # input size of the paper, if any
    horizons: tuple[int, ...]  # horizons of the paper, or usual ones for sets the paper does not use
    long_horizons: tuple[int, ...] = ()  # long horizons of the paper, if any
    licence: str  # license that the owner states, or "not stated"
    page: str  # web page
    files: tuple[StoredFile, ...] = ()  # files that may hold it, the preferred one first
    note: str = ""  # what to know before using it

    @property
    def parts(self) -> tuple[str, ...]:
        """Names of the parts, the main one first."""
        return tuple(dict.fromkeys(file.part for file in self.files)) or ("all",)


@cache
def catalogue() -> dict[str, Dataset]:
    """Read all data sets, by name."""
    text = (resources.files("leapts.datasets") / "catalogue.toml").read_text(encoding="utf-8")
    rows = [_dataset(row) for row in tomllib.loads(text)["dataset"]]
    return {row.name: row for row in rows}


def find(name: str) -> Dataset:
    """Find a data set by name, ignoring case.

    Raises:
        DataError: When there is none, with the nearest name.
    """
    rows = catalogue()
    folded = {known.casefold(): known for known in rows}
    if name.casefold() in folded:
        return rows[folded[name.casefold()]]
    near = nearest(name, list(rows))
    hint = f"did you mean {quoted(near)}?" if near else f"there are {listed(rows)}"
    raise DataError(f"there is no data set {quoted(name)}; {hint}")


def bundled_file(dataset: Dataset) -> Traversable:
    """Return the file of a bundled data set."""
    return resources.files("leapts.datasets") / "bundled" / dataset.files[0].name


def _dataset(row: dict[str, Any]) -> Dataset:
    parsed = {
        "observations": row.get("observations") or row["series"] * row["length"],
        "split": _split(row),
        "horizons": tuple(row["horizons"]),
        "long_horizons": tuple(row.get("long_horizons", ())),
        "files": tuple(StoredFile(**file) for file in row.get("files", ())),
    }
    return Dataset(**{**row, **parsed})


def _split(row: dict[str, Any]) -> Split | None:
    rule = row.get("split")
    if rule is None:
        return None
    if "months" in rule:
        train, val, test = rule["months"]
        return split_by_months(train, val, test, steps_per_day=row["season"])
    train, _, test = rule["shares"]
    return split_by_fractions(row["length"], train, test)


def stored_file(dataset: Dataset, folder: Path, part: str) -> Path | None:
    """Find the preferred file of a part that is in the folder; None if there is none."""
    paths = (folder / file.name for file in files_of(dataset, part))
    return next((path for path in paths if path.is_file()), None)


def files_of(dataset: Dataset, part: str) -> list[StoredFile]:
    """List the files that may hold a part, the preferred one first."""
    return [file for file in dataset.files if file.part == part]
