"""Covariate tasks of fev-bench whose targets are public in full; no forecaster here reads the covariates yet."""

from pathlib import Path
from typing import NamedTuple

import pandas as pd

from leapts_bench.gift.series import SeriesSet, Task


class _Shape(NamedTuple):
    file: str
    freq: str
    season: int
    horizon: int
    windows: int
    id_col: str | None = None


_AIR_QUALITY_TARGETS = ["C6H6(GT)", "CO(GT)", "NO2(GT)", "NOx(GT)"]
_TASKS = {
    **{f"epf_{market}": _Shape(f"epf_{market}", "h", 24, 24, 20) for market in ("np", "pjm", "be", "fr", "de")},
    "uci_air_quality_1H": _Shape("uci_air_quality", "h", 24, 168, 20),
    "uci_air_quality_1D": _Shape("uci_air_quality", "D", 7, 28, 11),
    "proenfo_gfc12": _Shape("gfc12", "h", 24, 168, 10, "unique_id"),
    "walmart": _Shape("walmart", "W-FRI", 1, 39, 1, "unique_id"),
    "rossmann_1D": _Shape("rossmann", "D", 7, 48, 10, "Store"),
    "rossmann_1W": _Shape("rossmann", "W", 1, 13, 8, "Store"),
}


def tasks() -> list[str]:
    """List the tasks."""
    return list(_TASKS)


def horizon_of(name: str) -> int:
    """Horizon of a task."""
    return _TASKS[name].horizon


def files_of(name: str) -> list[str]:
    """Files that a task is built from, relative to the data folder."""
    return [f"covariates/{_TASKS[name].file}.parquet"]


def load(name: str, folder: Path) -> Task:
    """Load the targets of a task from the data folder."""
    shape = _TASKS[name]
    frame = pd.read_parquet(folder / files_of(name)[0])
    targets = _AIR_QUALITY_TARGETS if shape.file == "uci_air_quality" else ["y"]
    if name == "uci_air_quality_1D":
        frame = frame.set_index("ds")[targets].resample("D").mean().iloc[1:-1].reset_index()  # whole days
    if name == "rossmann_1W":
        daily = frame.pivot(index="ds", columns="Store", values="y").astype("float64")
        weekly = daily.resample("W").sum().iloc[1:-1]  # whole weeks, from Monday to Sunday
        series, start = SeriesSet.from_columns(weekly), weekly.index[0]
    else:
        start = frame["ds"].iloc[0]
        series = (
            SeriesSet.from_columns(frame[targets]) if shape.id_col is None else SeriesSet.from_long(frame, shape.id_col)
        )
    return Task(name, series, start, shape.freq, shape.season, shape.horizon, shape.windows, len(targets))
