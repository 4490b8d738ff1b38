"""The output folder appears complete, and an interrupted job finds its finished parts."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from leapts.cli import run
from leapts.errors import DataError
from leapts.integrations.ray.parquet import Destination, count_rows, hold_whole_series, parquet_files

TABLE = pa.table({"x": [1, 2, 3]})


def test_the_output_folder_appears_when_the_job_is_finished(tmp_path: Path) -> None:
    destination = Destination.of(tmp_path / "out", ["job"])
    destination.parts.mkdir()
    destination.write(3, TABLE)
    assert not destination.out.exists()
    destination.finish()
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert pa.parquet.read_table(destination.out).equals(TABLE)


def test_the_same_job_finds_its_parts_and_another_does_not(tmp_path: Path) -> None:
    first = Destination.of(tmp_path / "out", ["data", 3])
    first.parts.mkdir()
    first.write(0, TABLE)
    assert Destination.of(tmp_path / "out", ["data", 3]).part(0).exists()
    assert not Destination.of(tmp_path / "out", ["data", 4]).part(0).exists()


def test_an_existing_output_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=f"{tmp_path.name} exists"):
        Destination.of(tmp_path, [])
    with pytest.raises(DataError, match="no does not exist"):
        Destination.of(tmp_path / "no" / "where", [])


def test_hidden_files_are_not_read(tmp_path: Path) -> None:
    for name in ("b.parquet", "a/c.parquet", ".d/e.parquet", "_f.parquet", "g.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        pa.parquet.write_table(TABLE, tmp_path / name)
    files = parquet_files(tmp_path)
    assert [path.name for path in files] == ["c.parquet", "b.parquet"]
    assert count_rows(files) == 6
    (tmp_path / "b.parquet").write_bytes(b"no such thing")
    with pytest.raises(DataError, match=r"b\.parquet cannot be read as Parquet"):
        count_rows(files)
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="empty has no Parquet files"):
        parquet_files(tmp_path / "empty")


@pytest.mark.parametrize(
    ("names", "whole"),
    [
        ([["a", "b", "a"], ["c"]], True),
        ([["c"], ["a", "b"]], True),
        ([["a", "b"], ["b", "c"]], False),
        ([["a", "c"], ["b"]], False),  # the ranges overlap
        ([["a", "a", "a", "a"]], False),  # too large
        ([[1, 2], [3]], True),
        ([[1, 2], ["a"]], False),  # names of two kinds cannot be compared
    ],
)
def test_files_of_whole_series_are_found_from_metadata(tmp_path: Path, names: list[list[object]], whole: bool) -> None:
    for number, content in enumerate(names):
        pa.parquet.write_table(pa.table({"id": content}), tmp_path / f"{number}.parquet", row_group_size=1)
    assert hold_whole_series(parquet_files(tmp_path), "id", max_rows=3) is whole


def test_files_without_statistics_may_share_series(tmp_path: Path) -> None:
    for name in ("a", "b"):
        pa.parquet.write_table(pa.table({"id": [name]}), tmp_path / f"{name}.parquet", write_statistics=False)
    assert not hold_whole_series(parquet_files(tmp_path), "id", max_rows=3)
    assert not hold_whole_series(parquet_files(tmp_path), "other", max_rows=3)


@pytest.mark.parametrize("arguments", [["--engine", "ray"], ["--address", "auto"], ["--engine", "ray", "-o", "x"]])
def test_options_of_ray_need_the_engine_ray(arguments: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["predict", "model", *arguments]) == 2
    assert "--engine ray" in capfd.readouterr().err
