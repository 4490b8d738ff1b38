"""The sets: seven small public ones, samples of M4, and the cheap configurations of GIFT-Eval."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from leapts_bench.gift import gift_eval
from leapts_bench.gift.series import SeriesSet, Task

WINDOWS = 5
M4_SERIES = 100
_MIN_HORIZONS = 7  # of an M4 series in the sample: five windows, and two horizons to fit to


class _SmallSet(NamedTuple):
    time_col: str
    freq: str  # of pandas
    season: int  # of MASE
    horizon: int
    left_out: tuple[str, ...] = ()  # columns


SMALL = {
    "co2_weekly": _SmallSet("date", "W-SAT", 1, 13),
    "elnino_monthly": _SmallSet("date", "MS", 12, 12),
    "nile_yearly": _SmallSet("year", "YS", 1, 6),
    "seattle_weather_daily": _SmallSet("date", "D", 1, 14, ("weather",)),
    "sunspots_yearly": _SmallSet("year", "YS", 1, 6),
    "us_employment_monthly": _SmallSet("date", "MS", 12, 12),
    "us_macro_quarterly": _SmallSet("date", "QS", 4, 8),
}
M4 = {f"m4_{name}_sample": f"m4_{name}/{frequency}/short" for name, frequency in gift_eval.M4.items()}
GIFT = tuple(
    f"{name}/short"
    for name in (
        "ett1/D",
        "ett1/W",
        "ett2/D",
        "ett2/W",
        "jena_weather/D",
        "us_births/D",
        "us_births/W",
        "us_births/M",
        "saugeen/D",
        "saugeen/W",
        "saugeen/M",
        "hospital/M",
        "car_parts/M",
    )
)


def horizon_of(name: str) -> int:
    """Horizon of a set."""
    return SMALL[name].horizon if name in SMALL else gift_eval.horizon_of(M4.get(name, name))


def files_of(name: str) -> list[str]:
    """Files that a set is read from, relative to the data folder."""
    return [f"small/{name}.parquet"] if name in SMALL else gift_eval.files_of(M4.get(name, name))


def load(name: str, folder: Path) -> Task:
    """Load a set from the data folder, with the windows to forecast."""
    if name in SMALL:
        return _small(name, pd.read_parquet(folder / files_of(name)[0]))
    if name not in M4:
        return gift_eval.load(name, folder)
    whole = gift_eval.load(M4[name], folder)
    long_enough = np.flatnonzero(whole.series.lengths >= _MIN_HORIZONS * whole.horizon)
    chosen = np.sort(np.random.default_rng(0).choice(long_enough, M4_SERIES, replace=False))
    every = np.split(whole.series.values, whole.series.ends[:-1])
    sample = SeriesSet.of([every[number] for number in chosen])
    return Task(name, sample, whole.start, whole.freq, whole.season, whole.horizon, WINDOWS)


def _small(name: str, frame: pd.DataFrame) -> Task:
    known = SMALL[name]
    first = frame[known.time_col].iloc[0]
    start = pd.Timestamp(f"{first}-01-01") if known.time_col == "year" else pd.Timestamp(first)
    series = SeriesSet.from_columns(frame.drop(columns=[known.time_col, *known.left_out]))
    return Task(name, series, start, known.freq, known.season, known.horizon, WINDOWS)
