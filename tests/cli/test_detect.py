"""`leapts detect` shows anomalies, by a saved model and by the pretrained one."""

import csv
import json
import re
from pathlib import Path

import pytest

from tests.cli.conftest import Leapts, table


@pytest.fixture
def spiked(tmp_path: Path) -> Path:
    """Newer data with one spike, on 2024-05-20."""
    path = tmp_path / "spiked.csv"
    path.write_text(re.sub("b,2024-05-20,1", "b,2024-05-20,4", table(rows=150)))
    return path


def test_a_spike_is_shown_and_written(leapts: Leapts, model: Path, spiked: Path, tmp_path: Path) -> None:
    out = tmp_path / "scores.csv"
    result = leapts("detect", model, spiked, "--alert-rate", 0.2, "-o", out)
    assert result.code == 0, result.err
    assert any(words[:2] == ["b", "2024-05-20"] for line in result.out.splitlines() if (words := line.split()))
    rows = list(csv.DictReader(out.read_text().splitlines()))
    assert len(rows) == 60
    answer = json.loads(leapts("detect", model, spiked, "--alert-rate", 0.2, "--json").out)
    assert answer["observations"] == 60
    marked = [row for row in rows if row["anomaly"] == "true"]
    assert [row["ds"] for row in answer["anomalies"]] == [row["ds"] for row in marked]


def test_the_pretrained_model_needs_a_horizon(leapts: Leapts, spiked: Path, model: Path) -> None:
    answer = json.loads(leapts("detect", "pretrained", spiked, "--horizon", 10, "--json").out)
    assert answer["observations"] == 2 * 140
    assert ("b", "2024-05-20") in [(row["unique_id"], row["ds"][:10]) for row in answer["anomalies"]]
    for arguments in (["pretrained", spiked], [model, spiked, "--horizon", 10]):
        result = leapts("detect", *arguments)
        assert result.code == 2
        assert "--horizon" in result.error_line


def test_nothing_found_is_said(leapts: Leapts, model: Path, spiked: Path) -> None:
    result = leapts("detect", model, spiked, "--alert-rate", 1e-6)
    assert result.out.startswith("anomalies: 0 of 60 observations")
