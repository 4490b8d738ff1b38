"""`leapts explain` tells what forecasts are made of, and what a decision changes."""

import json
from pathlib import Path

import pandas as pd
import pytest

from tests.cli.conftest import Leapts


def test_each_series_is_told_in_words(leapts: Leapts, model: Path, tmp_path: Path) -> None:
    found = leapts("explain", model, "-o", tmp_path / "parts.csv")
    assert found.code == 0
    assert [line[:2] for line in found.out.splitlines()[:2]] == ["a:", "b:"]
    parts = pd.read_csv(tmp_path / "parts.csv")
    names = [name for name in parts.columns if name not in ("unique_id", "ds", "LeapTS")]
    assert (parts[names].sum(axis=1) - parts["LeapTS"]).abs().max() < 1e-4


def test_json_has_the_effect_of_a_decision(leapts: Leapts, model: Path, data: Path) -> None:
    told = json.loads(leapts("explain", model, data, "--do", 'gate={"0": 0}', "--do", "length=2", "--json").out)
    assert told["do"] == {"gate": {"0": 0}, "length": 2}
    assert [one["series"] for one in told["series"]] == ["a", "b"]
    assert all(isinstance(one["effect"], float) for one in told["series"])
    plain = json.loads(leapts("explain", model, data, "--json").out)
    assert plain["series"][0]["effect"] == 0
    assert plain["series"][0]["parts"] == told["series"][0]["parts"]


def test_a_table_shows_effects(leapts: Leapts, model: Path) -> None:
    found = leapts("explain", model, "--do", 'schedule=[2, ["short", 2], 2]')
    assert found.code == 0
    assert "effect" in found.out


@pytest.mark.parametrize("entry", ["scale", "scale=", "promo=0"])
def test_a_decision_that_is_none_is_refused(leapts: Leapts, model: Path, entry: str) -> None:
    found = leapts("explain", model, "--do", entry)
    assert found.code == 2
    assert entry.partition("=")[0] in found.error_line
