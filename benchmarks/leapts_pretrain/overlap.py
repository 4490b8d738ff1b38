"""Refuse series for pretraining that are part of a test set, by name and by content.

The content is compared by fingerprints of short windows, each scaled to its range: a copy is found at any offset, in
any linear unit, and in double or single precision.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
from numpy.lib.stride_tricks import sliding_window_view

from leapts.errors import DataError
from leapts.messages import quoted
from leapts_bench.gift import fev_bench, gift_eval
from leapts_pretrain.corpus import CorpusSet, Series

Fingerprints = npt.NDArray[np.uint64]

WINDOW = 16  # values of a fingerprint
LEVELS = 255  # of a value within the range of its window
MIN_DISTINCT_STEPS = 8  # a window with fewer different steps is too plain to tell: a line, a few counts
TEST_STRIDE = 5  # between the fingerprints of a test series
MIN_MATCHES = 2  # windows that a series and the test sets share
MAX_SHARE = 0.5  # of a set's series; a set with more is a test set under another name

# How words in names of test sets and of their families begin; those that end in _ are whole words.
TEST_WORDS = (
    *("etth", "ettm", "ett1", "ett2", "ett_", "jena", "births", "saugeen", "hospital", "car_parts", "carparts"),
    *("tourism", "visnights", "nn3_", "nn5_", "m1_", "m3_", "m5_", "atm_", "cash_", "covid", "illness", "ili", "flu_"),
    *("epidemic", "epf_", "day_ahead", "comed", "gfc12", "gefcom2012_load", "gefcom2014_load", "ercot", "walmart"),
    *("rossmann", "favorita", "bike", "vic_elec", "elecdemand", "elecdaily", "electricity", "exchange", "sp500"),
    *("stock", "employment", "unemployment", "pems", "sf_traffic", "taxi", "wiki", "web_traffic", "peyton"),
    *("car_sales", "vehicle", "solar_energy", "elnino", "nile_", "sunspot", "macro", "co2_weekly", "seattle"),
    *("uci_air", "air_quality_uci"),
)
TEST_FOLDERS = ("gift/", "covariates/", "small/")
# Test files in which every column, or every series of the long form, is a test series.
WIDE_FILES = (
    *("ETTh1", "ETTh2", "ETTm1", "ETTm2", "weather", "exchange_rate", "national_illness", "SP500", "covid"),
    *("covid_exact", "wiki", "sz_taxi", "partial_electricity_7x26304", "partial_electricity_203x1000"),
    *("partial_traffic_6x17544", "partial_solar_12x52560", "small/elnino_monthly", "small/co2_weekly"),
    *("small/us_macro_quarterly", "small/nile_yearly", "small/sunspots_yearly", "small/seattle_weather_daily"),
    "small/us_employment_monthly",
)
M4_FREQUENCIES = ("Yearly", "Quarterly", "Monthly", "Weekly", "Daily", "Hourly")


def refuse_by_name(source: CorpusSet) -> None:
    """Refuse a set whose name, file or member names a test set.

    Raises:
        DataError: When it does.
    """
    for text in (source.name, source.file, source.member):
        words = "_" + re.sub(r"[\W_]+", "_", text).lower() + "_"
        found = [word for word in TEST_WORDS if f"_{word}" in words]
        is_file = text.removesuffix(".parquet") in WIDE_FILES or text.endswith("_test.parquet")
        if found or is_file or text.startswith(TEST_FOLDERS):
            word = quoted(found[0] if found else text)
            raise DataError(f"{quoted(source.name)}: {word} is a test set or a relative of one, no training data")


def without_overlap(name: str, series: list[Series], tests: Fingerprints) -> list[Series]:
    """Drop the series that share windows with a test set.

    Raises:
        DataError: When too many of them do.
    """
    kept = [one for one in series if matches(one, tests) < MIN_MATCHES]
    if len(series) - len(kept) > MAX_SHARE * len(series):
        raise DataError(
            f"{quoted(name)}: {len(series) - len(kept)} of {len(series)} series share values with test sets; "
            "take the set out of corpus.toml"
        )
    return kept


def matches(series: npt.NDArray[np.floating], tests: Fingerprints) -> int:
    """Count the different windows that a series and the test sets share; `tests` is sorted."""
    own = np.unique(fingerprints(series))
    return int((tests[np.minimum(np.searchsorted(tests, own), len(tests) - 1)] == own).sum())


def fingerprints(series: npt.NDArray[np.floating], stride: int = 1) -> Fingerprints:
    """Compute the fingerprints of the windows of a series that have no missing values and enough different steps."""
    if len(series) < WINDOW:
        return np.empty(0, np.uint64)
    windows = sliding_window_view(np.asarray(series, np.float64), WINDOW)[::stride]
    low, high = windows.min(axis=1, keepdims=True), windows.max(axis=1, keepdims=True)
    usable = (high > low)[:, 0]  # false where a value is missing
    scaled = (windows[usable] - low[usable]) / (high - low)[usable]
    levels = np.round(scaled * LEVELS).astype(np.uint8)
    steps = np.sort(np.diff(levels.astype(np.int16), axis=1), axis=1)
    varied = (np.diff(steps, axis=1) != 0).sum(axis=1) + 1 >= MIN_DISTINCT_STEPS
    words = np.ascontiguousarray(levels[varied]).view(np.uint64)
    mixed: Fingerprints = words[:, 0] * np.uint64(0x9E3779B97F4A7C15) ^ words[:, 1] * np.uint64(0xC2B2AE3D27D4EB4F)
    return mixed


def fingerprints_of_tests(data: Path) -> Fingerprints:
    """Compute the fingerprints of all test sets in the data folder, sorted and without duplicates."""
    parts = [fingerprints(series, TEST_STRIDE) for series in _test_series(data)]
    parts += [fingerprints(series) for series in _ends_of_m4(data)]
    return np.unique(np.concatenate(parts))


def _test_series(data: Path) -> Iterator[npt.NDArray[np.float64]]:
    """Read the test series: stored files, and what the protocols of GIFT-Eval and fev-bench make of them."""
    for name in WIDE_FILES:
        frame = pd.read_parquet(data / f"{name}.parquet").select_dtypes("number")
        yield from frame.to_numpy(np.float64).T
    tasks = [gift_eval.load(name, data) for name in _once(gift_eval.configurations()) if not name.startswith("m4_")]
    tasks += [fev_bench.load(name, data) for name in fev_bench.tasks()]
    for task in tasks:
        yield from np.split(task.series.values, task.series.ends[:-1])


def _once(configurations: Iterable[str]) -> list[str]:
    """Keep one term of every set and frequency: their series are the same."""
    return list({name.rsplit("/", 1)[0]: name for name in configurations}.values())


def _ends_of_m4(data: Path) -> Iterator[npt.NDArray[np.float64]]:
    """Read the test parts of M4, each after the last values of its training part: every window holds a test value."""
    for frequency in M4_FREQUENCIES:
        train, test = (
            pd.read_parquet(data / f"M4_{frequency}_{part}.parquet").groupby("id", sort=False)["y"]
            for part in ("train", "test")
        )
        pasts, targets = train.tail(WINDOW - 1), test.tail(10**6)
        past_ends = np.cumsum(np.minimum(train.size().to_numpy(), WINDOW - 1))[:-1]
        target_ends = np.cumsum(test.size().to_numpy())[:-1]
        for past, target in zip(
            np.split(pasts.to_numpy(np.float64), past_ends),
            np.split(targets.to_numpy(np.float64), target_ends),
            strict=True,
        ):
            yield np.concatenate([past, target])
