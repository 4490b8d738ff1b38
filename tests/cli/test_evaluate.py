"""`leapts evaluate` shows errors, drift and a verdict."""

import csv
import json
from pathlib import Path

from tests.cli.conftest import Leapts, table


def test_errors_and_verdict_are_shown(leapts: Leapts, model: Path, tmp_path: Path) -> None:
    newer, out = tmp_path / "newer.csv", tmp_path / "forecasts.csv"
    newer.write_text(table(rows=150))
    result = leapts("evaluate", model, newer, "-o", out)
    assert (result.code, result.err) == (0, "")
    lines = result.out.splitlines()
    assert lines[-1].startswith(("still good: ", "recalibrate: ", "fit again: "))
    assert [words[0] for line in lines if (words := line.split())][2:4] == ["LeapTS", "SeasonalNaive"]
    answer = json.loads(leapts("evaluate", model, newer, "--level", 80, "--json").out)
    assert answer["windows"] == 2 * (30 // 6)
    assert list(answer["coverage"]) == ["80"]
    rows = list(csv.DictReader(out.read_text().splitlines()))
    assert len(rows) == 6 * answer["windows"]
    assert set(rows[0]) >= {"cutoff", "y", "LeapTS", "LeapTS-lo-95", "SeasonalNaive"}


def test_data_of_the_fit_are_refused(leapts: Leapts, model: Path, data: Path) -> None:
    result = leapts("evaluate", model, data)
    assert result.code == 2
    assert "newer data" in result.error_line
