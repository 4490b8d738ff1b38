import gzip
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import make_bundled
from leapts.datasets import loading
from leapts.datasets.catalogue import Dataset, StoredFile, find
from leapts.datasets.download import matches
from leapts.datasets.loading import load, load_dataset
from leapts.errors import DataError

BUNDLED = make_bundled.BUNDLED


def small(name: str, file: str, *, series: int, length: int | None, observations: int) -> Dataset:
    """A row of the catalogue with its size changed, so that a test can write its file."""
    return replace(find(name), files=(StoredFile(name=file),), series=series, length=length, observations=observations)


def test_the_bundled_set_loads_without_a_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LEAPTS_DATA", raising=False)
    panel = load("SeattleWeather")
    assert panel.series == ("precipitation", "temp_max", "temp_min", "wind")
    assert panel.is_aligned
    assert (panel.freq, panel.matrix().shape) == ("D", (4, 1461))


def test_shop_sales_are_monthly_and_seasonal() -> None:
    panel = load("ShopSales")
    assert (panel.freq, panel.matrix().shape) == ("MS", (4, 144))
    months = panel.matrix().reshape(4, 12, 12)  # [shop, year, month]
    peaks = months.argmax(dim=2).mode(dim=1).values + 1
    assert dict(zip(panel.series, peaks.tolist(), strict=True)) == {
        "bookshop": 12,
        "garden_center": 5,
        "ice_cream_parlor": 7,
        "ski_rental": 1,
    }


def test_retail_promotions_sell_more_on_promotion() -> None:
    panel = load("RetailPromotions")
    assert (panel.freq, panel.matrix().shape) == ("D", (4, 731))
    assert panel.unused == ("price", "promo")
    assert float(panel.values.min()) > 0
    frame = pd.read_csv(BUNDLED / "retail_promotions.csv")
    means = frame.groupby(["unique_id", "promo"])["y"].mean().unstack()
    assert (means[1] > 1.4 * means[0]).all()
    prices = frame.groupby(["unique_id", "promo"])["price"].max().unstack()
    assert (prices[1] < prices[0]).all()


@pytest.mark.parametrize("name", ["SeattleWeather", "ShopSales", "RetailPromotions"])
def test_bundled_files_have_their_checksums(name: str) -> None:
    (file,) = find(name).files
    assert file.checksum is not None
    assert matches(BUNDLED / file.name, file.checksum)


@pytest.mark.parametrize("name", ["shop_sales", "retail_promotions"])
def test_generated_files_are_what_the_script_makes(name: str) -> None:
    made = getattr(make_bundled, name)()
    pd.testing.assert_frame_equal(pd.read_csv(BUNDLED / f"{name}.csv"), made, check_dtype=False)


@pytest.mark.parametrize("by_variable", [True, False])
def test_a_set_is_read_from_the_folder_given_or_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_variable: bool
) -> None:
    (tmp_path / "a.csv").write_text("date,x,y\n2024-01-01 00:00:00,1,2\n2024-01-01 01:00:00,3,4\n")
    monkeypatch.setenv("LEAPTS_DATA", str(tmp_path) if by_variable else "nowhere")
    row = small("ETTh1", "a.csv", series=2, length=2, observations=4)
    panel = load_dataset(row, None if by_variable else tmp_path)
    assert panel.matrix().tolist() == [[1, 3], [2, 4]]


def test_irregular_sets_are_read_by_row(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("date,x\n2024-01-01 00:10,1\n2024-01-01 00:10,2\n2024-01-01 05:00,3\n")
    panel = load_dataset(small("Weather", "a.csv", series=1, length=3, observations=3), tmp_path)
    assert (panel.freq, panel.values.tolist()) == (1, [1, 2, 3])


def test_a_matrix_of_text_is_one_line_a_step(tmp_path: Path) -> None:
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(b"1,2\n3,4\n5,6\n"))
    panel = load_dataset(small("Electricity", "a.txt.gz", series=2, length=3, observations=6), tmp_path)
    assert panel.matrix().tolist() == [[1, 3, 5], [2, 4, 6]]


def test_of_traffic_the_flow_is_read(tmp_path: Path) -> None:
    data = np.arange(12.0).reshape(3, 2, 2)
    np.savez(tmp_path / "a.npz", data=data)
    panel = load_dataset(small("PEMS04", "a.npz", series=2, length=3, observations=6), tmp_path)
    np.testing.assert_array_equal(panel.matrix(), data[:, :, 0].T)


def test_pickled_arrays_are_not_opened(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", data=np.array([{}], dtype=object))
    with pytest.raises(DataError, match=r"a\.npz holds no array 'data' of numbers .*pickle"):
        load_dataset(small("PEMS04", "a.npz", series=1, length=1, observations=1), tmp_path)


def test_m4_lines_are_ragged(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('"V1","V2","V3","V4"\n"Y1","5","6","7"\n"Y2",8.5,,\n')
    panel = load_dataset(small("M4-Yearly", "a.csv", series=2, length=None, observations=4), tmp_path)
    assert panel.series == ("Y1", "Y2")
    assert panel.lengths.tolist() == [3, 1]
    assert panel.values.tolist() == [5, 6, 7, 8.5]


def test_a_part_of_a_set_is_not_taken_for_the_whole(tmp_path: Path) -> None:
    (tmp_path / "ETTh1.csv").write_text("date,x\n2024-01-01 00:00,1\n2024-01-01 01:00,3\n")
    with pytest.raises(
        DataError, match=r"ETTh1 has 7 series with 121,940 values in all, but this file " r"has 1 with 2"
    ):
        load("ETTh1", tmp_path)


def test_a_missing_file_tells_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match=r"looked for ETTh1.parquet or ETTh1.csv\); run: leapts datasets " r"fetch ETTh1"
    ):
        load("ETTh1", tmp_path)
    with pytest.raises(DataError, match=r"looked for weather.*\); get it from https://"):
        load("Weather", tmp_path)


def test_no_folder_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LEAPTS_DATA", raising=False)
    with pytest.raises(DataError, match=r"folder .* set LEAPTS_DATA"):
        load("ETTh1")


def test_an_unknown_part_is_refused() -> None:
    with pytest.raises(DataError, match="M4-Daily has no part 'val'; it has 'train', 'test', 'naive2'"):
        load("M4-Daily", part="val")


def test_scenarios_load_by_name() -> None:
    panel = load("Scenario3", seed=1)
    assert (len(panel), panel.lengths.tolist(), panel.series) == (1, [20_000], ("z",))


def test_what_is_no_number_in_a_stored_set_is_said(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(gzip.compress(b"1,2\n3,x\n"))
    with pytest.raises(DataError, match=r"a\.txt is not a matrix of numbers .*copy the file again"):
        loading._read_text_matrix(tmp_path / "a.txt")
    (tmp_path / "a.csv").write_text('"V1","V2"\n"one",1,2\n"two",1,x\n')
    with pytest.raises(DataError, match=r"a\.csv: line 3 holds text"):
        loading._read_m4_lines(tmp_path / "a.csv")
