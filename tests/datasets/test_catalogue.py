import subprocess
import sys
from urllib.parse import urlsplit

import pytest

from leapts.data.frequency import parse_frequency, seasonal_period
from leapts.data.splits import Span
from leapts.datasets.catalogue import Dataset, bundled_file, catalogue, find
from leapts.errors import DataError

PAPER = {
    "ETTh1",
    "ETTh2",
    "ETTm1",
    "ETTm2",
    "Electricity",
    "Exchange",
    "Weather",
    "ILI",
    "SP500",
    "COVID",
    "Wiki",
    "PEMS04",
    "PEMS07",
    "M4-Yearly",
    "M4-Quarterly",
    "M4-Monthly",
    "M4-Weekly",
    "M4-Daily",
    "M4-Hourly",
    "Scenario1",
    "Scenario2",
    "Scenario3",
}
ROWS = list(catalogue().values())


def test_every_set_of_the_paper_has_a_row() -> None:
    assert set(catalogue()) >= PAPER
    assert sum(row.series for row in ROWS if row.name.startswith("M4-")) == 100_000


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_rows_are_consistent(row: Dataset) -> None:
    parse_frequency(row.freq)
    assert row.licence
    assert row.horizons == tuple(sorted(row.horizons))
    if row.split is not None:
        assert row.length is not None
        assert 0 < row.split.train.stop <= row.split.val.stop < row.split.test.stop <= row.length
        assert row.split.test.stop - row.split.test.start >= max(row.horizons)
        assert seasonal_period(row.freq) == row.season
    for file in row.files:
        assert file.url is None or urlsplit(file.url).scheme == "https"
        kind, _, digest = (file.checksum or "none:").partition(":")
        assert len(digest) == {"sha256": 64, "git": 40, "none": 0}[kind]
    assert (row.kind == "synthetic") == (not row.files)


@pytest.mark.parametrize(
    ("name", "test"),
    [
        ("ETTh1", (11520, 14400)),
        ("ETTm2", (46080, 57600)),
        ("ILI", (773, 966)),
        ("Exchange", (6071, 7588)),
        ("Weather", (42157, 52696)),
        ("Electricity", (21044, 26304)),
        ("Scenario1", (16000, 20000)),
    ],
)
def test_splits_are_those_of_the_benchmarks(name: str, test: tuple[int, int]) -> None:
    split = find(name).split
    assert split is not None
    assert split.test == Span(*test)


def test_names_are_found_in_any_case() -> None:
    assert find("etth1").name == "ETTh1"


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(DataError, match=r"there is no data set 'ETTh3'; did you mean 'ETTh[12]'\?"):
        find("ETTh3")
    with pytest.raises(DataError, match="there are 'ETTh1', "):
        find("???")


@pytest.mark.parametrize("row", [row for row in ROWS if row.kind == "bundled"], ids=lambda row: row.name)
def test_bundled_sets_are_small(row: Dataset) -> None:
    assert len(bundled_file(row).read_bytes()) < 150_000


def test_listing_the_catalogue_imports_neither_torch_nor_pandas() -> None:
    program = (
        "import sys; from leapts.datasets import catalogue, download; "
        "catalogue.catalogue(); "
        "sys.exit(bool({'torch', 'pandas', 'pyarrow'} & set(sys.modules)))"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
