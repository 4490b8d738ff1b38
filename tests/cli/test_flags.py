"""Flags: help and limits from the options they stand for, old names, lists, and errors that name them."""

import json
from pathlib import Path

import pytest

from leapts.cli.app import as_flags
from leapts.cli.options import parse_levels
from leapts.config import FitConfig, ReadOptions, TrainingConfig
from leapts.errors import ConfigError
from tests.cli.conftest import FEW_STEPS, Leapts


@pytest.mark.parametrize("command", ["fit", "backtest", "tune"])
def test_help_has_the_description_of_every_shared_option(leapts: Leapts, command: str) -> None:
    shown = " ".join(leapts(command, "--help").out.split()).lower()
    fields = [ReadOptions.model_fields[name] for name in ("id_col", "time_col", "layout", "fill", "duplicates")]
    fields += [FitConfig.model_fields["h"], TrainingConfig.model_fields["max_steps"]]
    for field in fields:
        assert field.description is not None
        assert field.description.lower() in shown


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("keep one, or pass duplicates='last'", "keep one, or pass --duplicates last"),
        ("pass fill='ffill', 'interpolate' or a number", "pass --fill ffill, interpolate or a number"),
        ("pass a longer freq=", "pass a longer --freq"),
        ("h=0: must be at least 1", "--horizon 0: must be at least 1"),
        ("max_steps='abc': must be a whole number", "--max-steps abc: must be a whole number"),
        ("learning_rate=-1.0: must be greater than 0", "--learning-rate -1.0: must be greater than 0"),
        ("level=[0.8] is a share", "--level 0.8 is a share"),
        ("pass id_col='my shop'", "pass --id-col 'my shop'"),
        ("n_windows=0 and step_size=3 must be at least 1", "--windows 0 and --step-size 3 must be at least 1"),
    ],
)
def test_options_in_errors_become_flags(message: str, shown: str) -> None:
    assert as_flags(message) == shown


@pytest.mark.parametrize(
    "message",
    [
        "series 'freq=3' has 2 values",
        'the column "h=1" is text',
        "there is no option 'max_steps=1'",
        "training.max_steps=3",
        "the model's batch_size=3",
        "width=3",
    ],
)
def test_names_from_data_and_other_options_stay(message: str) -> None:
    assert as_flags(message) == message


def test_error_of_the_library_names_the_flag(leapts: Leapts, data: Path, tmp_path: Path) -> None:
    fit = ["fit", data, "--horizon", 6, "--out", tmp_path / "m", *FEW_STEPS]
    assert "--learning-rate -1" in leapts(*fit, "--learning-rate", -1).error_line
    lines = data.read_text().splitlines()
    gap = tmp_path / "gap.csv"
    gap.write_text("\n".join([*lines[:30], *lines[31:]]) + "\n")
    line = leapts("fit", gap, *fit[2:]).error_line
    assert "--fill ffill" in line
    assert "fill=" not in line


def test_levels_are_separated_by_commas_or_repeated(leapts: Leapts, model: Path) -> None:
    assert parse_levels(["80,95", "99.5"]) == [80, 95, 99.5]
    assert parse_levels(None) == []
    with pytest.raises(ConfigError, match=r"--level '80,x'"):
        parse_levels(["80,x"])
    once, twice = leapts("predict", model, "--level", "60,80"), leapts("predict", model, "--level", 60, "--level", 80)
    assert once == twice
    assert "LeapTS-hi-80" in once.out.splitlines()[0]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (["--output", "{}"], "--out"),
        (["--output={}"], "--out"),
        (["-o", "{}", "--safe-cells"], "--escape-formulas"),
    ],
)
def test_old_flags_of_predict_work_with_a_note(
    leapts: Leapts, model: Path, tmp_path: Path, old: list[str], new: str
) -> None:
    file = tmp_path / "f.csv"
    result = leapts("predict", model, *(flag.format(file) for flag in old))
    assert result.code == 0
    assert file.exists()
    assert [new in line for line in result.err.splitlines()] == [True]


def test_old_flags_of_backtest_and_report_work_with_a_note(
    leapts: Leapts, data: Path, model: Path, tmp_path: Path
) -> None:
    arguments = ["backtest", data, "--horizon", 6, "--windows", 1, "--season", 5, "--no-neural", "--json"]
    result = leapts(*arguments, *FEW_STEPS)
    assert json.loads(result.out)["season"] == 5
    assert "--season-length" in result.err
    assert "--baselines naive" in result.err
    page = tmp_path / "page.html"
    assert "--max-series" in leapts("report", model, data, "-o", page, "--most-series", 1).err
    assert page.exists()


@pytest.mark.parametrize("command", ["predict", "backtest", "report"])
def test_old_flags_are_not_in_the_help(leapts: Leapts, command: str) -> None:
    shown = leapts(command, "--help").out
    for old in ("--output", "--season ", "--most-series", "--safe-cells", "--no-neural", "--statistical"):
        assert old not in shown
