"""`--config`: defaults from a TOML file."""

import json
from pathlib import Path

import pytest

from leapts import LeapTS
from tests.cli.conftest import FEW_STEPS, Leapts


def test_flags_override_the_file(leapts: Leapts, data: Path, tmp_path: Path) -> None:
    config = tmp_path / "run.toml"
    config.write_text(
        'horizon = 6\nmax-steps = 5\ninput_size = 12\nwindows = 2\nfreq = "D"\n'
        "[model]\nhidden_size = 8\n[training]\npatience = 3\n"
    )
    arguments = ["fit", data, "--config", config, "--max-steps", 3, "--out", tmp_path / "m", "--json"]
    answer = json.loads(leapts(*arguments).out)
    assert (answer["horizon"], answer["training"]["steps"]) == (6, 3)
    fitted = LeapTS.load(tmp_path / "m").predictor_
    assert (fitted.config.hidden_size, fitted.training.patience) == (8, 3)


def test_old_names_in_the_file_work_with_a_note(leapts: Leapts, data: Path, tmp_path: Path) -> None:
    config, file = tmp_path / "run.toml", tmp_path / "cv.csv"
    config.write_text(f'season = 5\noutput = "{file}"\nstatistical = false\nlevel = [60]\n')
    arguments = ["backtest", data, "--config", config, "--horizon", 6, "--windows", 1, *FEW_STEPS, "--json"]
    result = leapts(*arguments)
    assert json.loads(result.out)["season"] == 5
    assert json.loads(result.out)["file"] == str(file)
    for new in ("season-length", "out", "baselines"):
        assert f"is now {new};" in result.err


@pytest.mark.parametrize(
    ("table", "named"),
    [
        ("[training]\npatiense = 3", "patience"),
        ("[training]\npatience = -1", "-1"),
        ("[model]\nhiden_size = 8", "hidden_size"),
    ],
)
def test_errors_in_tables_name_the_file_and_the_option(
    leapts: Leapts, data: Path, tmp_path: Path, table: str, named: str
) -> None:
    config = tmp_path / "run.toml"
    config.write_text(f"horizon = 6\n{table}\n")
    result = leapts("fit", data, "--config", config, "--out", tmp_path / "m")
    assert result.code == 2
    assert f"{config}: {table.partition(chr(10))[0]}" in result.err
    assert named in result.err
