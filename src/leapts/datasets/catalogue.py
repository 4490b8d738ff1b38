"""The data sets LeapTS knows, as rows of `catalogue.toml`; listing them needs neither torch nor pandas."""

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
    """One form a set, or a part of it, may be kept in.

    Attributes:
        name: The file's name within the data folder.
        part: Which part of the set it holds: `all`, or M4's `train`, `test` and `naive2`.
        checksum: `sha256:` and the digest, or `git:` and the blob id; None when nobody published one.
        url: Where it can be downloaded; None where it cannot be had without a browser.
    """

    name: str
    part: str = "all"
    checksum: str | None = None
    url: str | None = None


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """One row of the catalogue.

    Attributes:
        name: As the paper spells it.
        kind: Kept in files, simulated when asked for, or bundled with the package.
        domain: What it is about.
        series: How many series.
        length: Steps in each series; None when they differ.
        observations: All values together (of the training part, where that is kept apart).
        freq: The frequency, a pandas alias or an integer step.
        season: Steps in a season, as the benchmarks count it.
        time: Whether to go by the timestamps, or by rows because the timestamps are irregular by nature.
        split: The standard borders; None where the test part is kept apart.
        input_size: The paper's look-back, where it has one.
        horizons: The paper's horizons (or, for sets the paper does not have, sensible ones).
        long_horizons: The paper's long horizons, where it has any.
        licence: What the owner says, or "not stated".
        page: Where people find it.
        files: The forms it may be kept in, the best first.
        note: What one should know before using it.
    """

    name: str
    kind: Kind
    domain: str
    series: int
    length: int | None
    observations: int
    freq: str | int
    season: int
    time: Literal["calendar", "row"]
    split: Split | None
    input_size: int | None
    horizons: tuple[int, ...]
    long_horizons: tuple[int, ...]
    licence: str
    page: str
    files: tuple[StoredFile, ...]
    note: str

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts it is kept in, the main one first."""
        return tuple(dict.fromkeys(file.part for file in self.files)) or ("all",)


@cache
def catalogue() -> dict[str, Dataset]:
    """All rows, by name."""
    text = (resources.files("leapts.datasets") / "catalogue.toml").read_text(encoding="utf-8")
    rows = [_dataset(row) for row in tomllib.loads(text)["dataset"]]
    return {row.name: row for row in rows}


def find(name: str) -> Dataset:
    """The row of that name; upper and lower case do not matter.

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
    """The file of a set that comes with the package."""
    return resources.files("leapts.datasets") / "bundled" / dataset.files[0].name


def _dataset(row: dict[str, Any]) -> Dataset:
    length = row.get("length")
    return Dataset(
        name=row["name"],
        kind=row["kind"],
        domain=row["domain"],
        series=row["series"],
        length=length,
        observations=row.get("observations") or row["series"] * length,
        freq=row["freq"],
        season=row["season"],
        time=row.get("time", "calendar"),
        split=_split(row),
        input_size=row.get("input_size"),
        horizons=tuple(row["horizons"]),
        long_horizons=tuple(row.get("long_horizons", ())),
        licence=row["licence"],
        page=row["page"],
        files=tuple(StoredFile(**file) for file in row.get("files", ())),
        note=row.get("note", ""),
    )


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
    """The first of the forms of a part that is in the folder, if any is."""
    for file in files_of(dataset, part):
        if (folder / file.name).is_file():
            return folder / file.name
    return None


def files_of(dataset: Dataset, part: str) -> list[StoredFile]:
    """The forms a part may be kept in, the best first."""
    return [file for file in dataset.files if file.part == part]
