"""`leapts demo` writes a model, tables and a report."""

import csv
import json
from pathlib import Path

from tests.cli.conftest import Leapts


def test_all_named_files_exist(leapts: Leapts, tmp_path: Path) -> None:
    result = leapts("demo", "--out", tmp_path / "deep" / "demo", "--max-steps", 2)
    assert result.code == 0, result.err
    for name in ("model", "zero-shot.csv", "forecast.csv", "trace.csv", "forecast.png", "report.html"):
        assert (tmp_path / "deep" / "demo" / name).exists()
        assert str(tmp_path / "deep" / "demo" / name) in result.out
    rows = list(csv.DictReader((tmp_path / "deep" / "demo" / "forecast.csv").read_text().splitlines()))
    assert {row["unique_id"] for row in rows} == {"bookshop", "garden_center", "ice_cream_parlor", "ski_rental"}
    assert min(float(row["LeapTS"]) for row in rows) > 0  # sales cannot be negative
    assert "zero-shot" in result.out
    again = leapts("demo", "--out", tmp_path / "deep" / "demo", "--max-steps", 2, "--json")
    assert set(json.loads(again.out)["files"]) == {"model", "zero_shot", "forecast", "trace", "picture", "report"}
