"""Check of the M4 metrics: the official Naive2 forecasts must score as published.

    LEAPTS_DATA=data python -m leapts_bench.m4_naive2

Reads `M4_<frequency>_{train,test,naive2}.parquet` (columns `id`, `t`, `y`) from the directory that `LEAPTS_DATA` names,
prints SMAPE and MASE for each frequency and over all 100,000 series, and exits with 1 when one of them is off in the
third decimal.
"""

import os
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

from leapts.forecasting.metrics import mase, naive_scale, owa, smape


class Figures(NamedTuple):
    """SMAPE and MASE of Naive2 over a number of series."""

    series: int
    smape: float
    mase: float


SEASONS = {"Yearly": 1, "Quarterly": 4, "Monthly": 12, "Weekly": 1, "Daily": 1, "Hourly": 24}
PUBLISHED = {
    "Yearly": Figures(23_000, 16.342, 3.974),
    "Quarterly": Figures(24_000, 11.012, 1.371),
    "Monthly": Figures(48_000, 14.427, 1.063),
    "Weekly": Figures(359, 9.161, 2.777),
    "Daily": Figures(4_227, 3.045, 3.278),
    "Hourly": Figures(414, 18.383, 2.395),
    "all": Figures(100_000, 13.564, 1.912),
}


def measure(directory: Path) -> dict[str, Figures]:
    """Compute the figures of Naive2 for each frequency, and over all series under `all`."""
    measured = {frequency: _measure_frequency(directory, frequency) for frequency in SEASONS}
    counts, smapes, mases = zip(*measured.values(), strict=True)
    overall = Figures(sum(counts), np.average(smapes, weights=counts), np.average(mases, weights=counts))
    return measured | {"all": overall}


def _measure_frequency(directory: Path, frequency: str) -> Figures:
    values, offsets = _series(directory / f"M4_{frequency}_train.parquet")
    actual, forecast = (_matrix(directory / f"M4_{frequency}_{part}.parquet") for part in ("test", "naive2"))
    scale = naive_scale(values, offsets, SEASONS[frequency])
    return Figures(len(actual), smape(actual, forecast), mase(actual, forecast, scale))


def _series(path: Path) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Read all values and the start of each series; files hold series one after the other, in order of time."""
    table = pq.read_table(path, columns=["t", "y"], use_threads=False)
    starts = np.flatnonzero(table["t"].to_numpy() == 1)
    return table["y"].to_numpy(), np.append(starts, table.num_rows)


def _matrix(path: Path) -> npt.NDArray[np.float64]:
    values, offsets = _series(path)
    return values.reshape(len(offsets) - 1, -1)


def main() -> int:
    """Print the table; return 1 if a figure is wrong."""
    directory = os.environ.get("LEAPTS_DATA")
    if directory is None:
        sys.exit("set LEAPTS_DATA to the directory that holds M4_<frequency>_{train,test,naive2}.parquet")
    measured = measure(Path(directory))
    print(f"{'':10} {'series':>7} {'SMAPE':>7} {'(M4)':>7} {'MASE':>6} {'(M4)':>6}")
    wrong = 0
    for name, official in PUBLISHED.items():
        found = measured[name]
        agrees = (
            found.series == official.series
            and round(found.smape, 3) == official.smape
            and round(found.mase, 3) == official.mase
        )
        wrong += not agrees
        mark = "" if agrees else "  <- off"
        figures = f"{found.smape:7.3f} {official.smape:7.3f} {found.mase:6.3f} {official.mase:6.3f}"
        print(f"{name:10} {found.series:7} {figures}{mark}")
    everything = measured["all"]
    relative = owa(everything.smape, everything.mase, PUBLISHED["all"].smape, PUBLISHED["all"].mase)
    print(f"OWA of Naive2 relative to the published Naive2: {relative:.4f}")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
