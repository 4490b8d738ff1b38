import io
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch

from leapts.data.frames import csv_bytes, write_frame
from leapts.data.validation import read_panel
from leapts.errors import DataError

FRAME = pd.DataFrame(
    {
        "unique_id": ["007", "007", 'a "b", c'],
        "ds": pd.to_datetime(["2024-01-01 00:00", "2024-01-01 01:00", "2024-01-01 00:00"]),
        "y": [0.1 + 0.2, 1e-17, -3.0],
    }
)


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.parquet"])
@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_a_written_frame_reads_back_the_same(tmp_path: Path, name: str, kind: str) -> None:
    frame: Any = {"pandas": FRAME, "polars": pl.from_pandas(FRAME), "pyarrow": pa.Table.from_pandas(FRAME)}[kind]
    panel, again = read_panel(frame), read_panel(write_frame(frame, tmp_path / name))
    assert again.series == panel.series
    assert torch.equal(again.values, panel.values)
    assert (again.first == panel.first).all()
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_equal_frames_make_equal_files(tmp_path: Path) -> None:
    one, two = (write_frame(FRAME, tmp_path / name).read_bytes() for name in ("a.csv.gz", "b.csv.gz"))
    assert one == two


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "a.csv"
    target.write_bytes(b"old")

    def fail(_: int) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        write_frame(FRAME, target)
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_name_without_a_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"a\.xlsx: .*\.csv, \.csv\.gz, \.parquet"):
        write_frame(FRAME, tmp_path / "a.xlsx")


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="nowhere does not exist"):
        write_frame(FRAME, tmp_path / "nowhere" / "a.csv")


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_escaped_cells_hold_no_formula(kind: str) -> None:
    names = ["=1", "+1", "-1", "@a", "\t=1", "\r=1", "\uff1d1", "'=1", "plain", "a=1", "'quoted", None]
    source = pd.DataFrame({"=column": names, "y": [-1.0] * len(names)})
    frame: Any = {"pandas": source, "polars": pl.from_pandas(source), "pyarrow": pa.Table.from_pandas(source)}[kind]
    safe = pd.read_csv(io.BytesIO(csv_bytes(frame, escape_formulas=True)))
    assert list(safe.columns) == ["'=column", "y"]
    assert safe["'=column"].tolist()[:11] == [*(f"'{name}" for name in names[:8]), *names[8:11]]
    assert safe["'=column"].isna().tolist() == [False] * 11 + [True]
    assert (safe["y"] == -1).all()
    assert b"'=" not in csv_bytes(source.head(7))


def test_categories_and_files_are_escaped_too(tmp_path: Path) -> None:
    frame = pd.DataFrame({"unique_id": pd.Categorical(["=1", "b"]), "y": [1, 2]})
    target = write_frame(frame, tmp_path / "a.csv", escape_formulas=True)
    assert pd.read_csv(target)["unique_id"].tolist() == ["'=1", "b"]


def test_a_folder_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "a.csv").mkdir()
    with pytest.raises(DataError, match=r"a\.csv is a folder; choose another name"):
        write_frame(FRAME, tmp_path / "a.csv")


def test_fractions_of_seconds_are_kept() -> None:
    frame = FRAME.assign(ds=pd.to_datetime(["2024-01-01 00:00:00.5"] * 3))
    assert b"2024-01-01 00:00:00.5" in csv_bytes(frame)
    assert b"2024-01-01 01:00:00," in csv_bytes(FRAME)
