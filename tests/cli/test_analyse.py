"""`leapts analyse` shows schedules by volatility."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Leapts


def test_every_bin_and_the_total_are_shown(leapts: Leapts, model: Path, data: Path) -> None:
    result = leapts("analyse", model, data, "--bins", 3)
    assert (result.code, result.err) == (0, "")
    assert [line.split()[0] for line in result.out.splitlines() if line.strip()][-4:] == ["1", "2", "3", "all"]
    answer = json.loads(leapts("analyse", model, data, "--bins", 3, "--json").out)
    assert [one["windows"] for one in answer["bins"]] == [69, 69, 68]
    assert answer["overall"]["windows"] == 206
    assert answer["separation"] is None


def test_groups_are_measured_and_drawn(leapts: Leapts, model: Path, data: Path, tmp_path: Path) -> None:
    figure = tmp_path / "figure.svg"
    result = leapts("analyse", model, data, "--groups", "^.", "--plot", figure, "--json")
    assert result.code == 0, result.err
    assert -1 <= json.loads(result.out)["separation"] <= 1
    assert figure.read_text(encoding="utf-8").startswith("<?xml")


@pytest.mark.parametrize(("pattern", "words"), [("(", "not a regular expression"), ("zzz", "matches nothing")])
def test_invalid_groups_are_refused(leapts: Leapts, model: Path, data: Path, pattern: str, words: str) -> None:
    result = leapts("analyse", model, data, "--groups", pattern)
    assert result.code == 2
    assert words in result.error_line
