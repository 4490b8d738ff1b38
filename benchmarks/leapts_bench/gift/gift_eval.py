"""Configurations of GIFT-Eval whose data are public in full."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from leapts_bench.gift.series import SeriesSet, Task

MAX_WINDOWS = 20
MAX_YEARLY_LENGTH = 300  # the benchmark leaves out the longer series of M4 Yearly
TERMS = {"short": 1, "medium": 10, "long": 15}  # horizons of the short term


class Frequency(NamedTuple):
    """Season and horizons of a frequency."""

    alias: str  # of pandas
    season: int  # of SeasonalNaive and of MASE
    horizon: int  # of the short term
    m4_horizon: int
    has_terms: bool = False  # medium and long terms, too


FREQUENCIES = {
    "10T": Frequency("10min", 144, 48, 48, has_terms=True),
    "15T": Frequency("15min", 96, 48, 48, has_terms=True),
    "H": Frequency("h", 24, 48, 48, has_terms=True),
    "D": Frequency("D", 1, 30, 14),
    "W": Frequency("W", 1, 8, 13),
    "M": Frequency("MS", 12, 12, 18),
    "Q": Frequency("QS", 4, 8, 8),
    "A": Frequency("YS", 1, 6, 6),
}
M4 = {"hourly": "H", "daily": "D", "weekly": "W", "monthly": "M", "quarterly": "Q", "yearly": "A"}
_SETS = {
    "ett1": ("15T", "H", "D", "W"),
    "ett2": ("15T", "H", "D", "W"),
    "jena_weather": ("10T", "H", "D"),
    "us_births": ("D", "W", "M"),
    "saugeen": ("D", "W", "M"),
    "hospital": ("M",),
    "car_parts": ("M",),
    **{f"m4_{name}": (frequency,) for name, frequency in M4.items()},
}
_FILES = {"ett1": "ETTm1.parquet", "ett2": "ETTm2.parquet", "jena_weather": "weather.parquet"}
_BIN_SIZES = {"15T": {"15T": 1, "H": 4, "D": 96, "W": 672}, "D": {"D": 1, "W": 7}}


def configurations() -> list[str]:
    """List the configurations as `set/frequency/term`."""
    return list(_names())


def horizon_of(name: str) -> int:
    """Horizon of a configuration."""
    dataset, frequency, term = name.split("/")
    known = FREQUENCIES[frequency]
    return known.m4_horizon if dataset.startswith("m4_") else known.horizon * TERMS[term]


def files_of(name: str) -> list[str]:
    """Files that a configuration is built from, relative to the data folder."""
    dataset = name.split("/")[0]
    if dataset.startswith("m4_"):
        frequency = dataset.removeprefix("m4_").capitalize()
        return [f"M4_{frequency}_train.parquet", f"M4_{frequency}_test.parquet"]
    return [_FILES.get(dataset, f"gift/{dataset}.parquet")]


def load(name: str, folder: Path) -> Task:
    """Load a configuration from the data folder."""
    dataset, frequency, _ = name.split("/")
    known = FREQUENCIES[frequency]
    files = [folder / file for file in files_of(name)]
    alias, start = known.alias, pd.Timestamp("1750-01-01")  # the benchmark has no timestamps for M4 either
    match dataset:
        case "ett1" | "ett2":
            frame = pd.read_parquet(files[0]).set_index("date")
            series, start = _bin_means(frame, _BIN_SIZES["15T"][frequency]), frame.index[0]
        case "jena_weather":
            frame = pd.read_parquet(files[0]).set_index("date")
            frame = frame[~frame.index.duplicated()].asfreq("10min")
            if frequency != "10T":
                frame = frame.resample(alias).mean().iloc[:-1]  # the last bin has a single value
            series, start = SeriesSet.from_columns(frame), frame.index[0]
        case "us_births" | "saugeen":
            frame = pd.read_parquet(files[0]).set_index("ds")[["y"]]
            start = frame.index[0]
            if frequency == "M":
                months = frame.resample(alias)
                series = SeriesSet.from_columns(months.sum() if dataset == "us_births" else months.mean())
            else:
                series = _bin_means(frame, _BIN_SIZES["D"][frequency])
        case "hospital" | "car_parts":
            frame = pd.read_parquet(files[0])
            series, start = SeriesSet.from_long(frame, "unique_id"), frame["ds"].iloc[0]
        case _:
            series = _joined(*files)
    if frequency == "W":
        alias = f"W-{start.strftime('%a').upper()}"
    horizon = horizon_of(name)
    count = 1 if dataset.startswith("m4_") else _window_count(int(series.lengths.min()), horizon)
    return Task(name, series, start, alias, known.season, horizon, count)


def _names() -> Iterator[str]:
    for dataset, frequencies in _SETS.items():
        for frequency in frequencies:
            has_terms = FREQUENCIES[frequency].has_terms and not dataset.startswith("m4_")
            yield from (f"{dataset}/{frequency}/{term}" for term in (TERMS if has_terms else ("short",)))


def _window_count(shortest: int, horizon: int) -> int:
    """Windows in the last tenth of the shortest series."""
    return min(max(1, math.ceil(0.1 * shortest / horizon)), MAX_WINDOWS)


def _bin_means(frame: pd.DataFrame, size: int) -> SeriesSet:
    """Mean of every `size` rows from the first; an incomplete last bin is dropped."""
    values = frame.to_numpy("float64")
    bins = len(values) // size
    means = values[: bins * size].reshape(bins, size, -1).mean(1)
    return SeriesSet(means.T.ravel(), np.full(means.shape[1], bins))


def _joined(train_file: Path, test_file: Path) -> SeriesSet:
    """Join the training and test parts of an M4 frequency."""
    train, test = (_stored(file) for file in (train_file, test_file))
    parts = zip(np.split(train.values, train.ends[:-1]), np.split(test.values, test.ends[:-1]), strict=True)
    is_yearly = train_file.name == "M4_Yearly_train.parquet"
    kept = [pair for pair in parts if not is_yearly or len(pair[0]) <= MAX_YEARLY_LENGTH]
    return SeriesSet.of([np.concatenate(pair) for pair in kept])


def _stored(file: Path) -> SeriesSet:
    """Read an M4 file; `t` counts the values of every series from 1."""
    frame = pd.read_parquet(file, columns=["t", "y"])
    starts = np.flatnonzero(frame["t"].to_numpy() == 1)
    return SeriesSet(frame["y"].to_numpy("float64"), np.diff(np.append(starts, len(frame))))
