"""Errors give one line on standard error and the right exit code."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import FEW_STEPS, Leapts, outside, table

USAGE = {
    "unknown command": (["fot"], "fit"),
    "unknown option": (["--nonsense"], "--nonsense"),
    "missing argument": (["fit"], "DATA"),
    "missing option": (["fit", "x.csv", "--out", "m"], "--horizon"),
    "zero horizon": (["fit", "x.csv", "--out", "m", "--horizon", "0"], "--horizon"),
    "text for a number": (["fit", "x.csv", "--out", "m", "--horizon", "ten"], "--horizon"),
    "fraction of a step": (["fit", "x.csv", "--out", "m", "--horizon", "2.5"], "--horizon"),
    "too many threads": (["predict", "m", "--threads", "1000"], "256"),
    "unknown layout": (["fit", "x.csv", "--out", "m", "--horizon", "2", "--layout", "tall"], "tall"),
}


@pytest.mark.parametrize("case", USAGE)
def test_invalid_command_line_gives_one_line(leapts: Leapts, case: str) -> None:
    arguments, word = USAGE[case]
    result = leapts(*arguments)
    assert result.code == 2
    assert result.error_line.startswith("error: ")
    assert word in result.error_line
    assert "--help" in result.error_line
    assert not re.search("Input should|[Vv]alue error|valid integer", result.error_line)


def _fit(*arguments: object) -> list[object]:
    return ["fit", *arguments, "--horizon", 6, "--out", "m", *FEW_STEPS]


INPUT: dict[str, tuple[list[object], str]] = {
    "missing file": (_fit("nosuch.csv"), "neither a file nor a data set"),
    "misspelled data set": (_fit("SeatleWeather"), "SeattleWeather"),
    "unknown data set": (_fit("dataset:Nonsense"), "Nonsense"),
    "data set not downloaded": (_fit("ETTh1"), "leapts datasets fetch ETTh1"),
    "read options with a data set": (_fit("SeattleWeather", "--freq", "h"), "--freq"),
    "folder for a file": (_fit("."), "directory"),
    "empty file": (_fit("empty.csv"), "empty"),
    "text that is not a table": (_fit("text.csv"), "text.csv"),
    "short series": (_fit("short.csv"), "7 values"),
    "missing column": (_fit("waves.csv", "--target-col", "sold", "--layout", "long"), "sold"),
    "frequency other than the data": (_fit("waves.csv", "--freq", "h"), "freq"),
    "invalid frequency": (_fit("waves.csv", "--freq=--5"), "not a frequency"),
    "share for a level": (["predict", "model", "--level", "0.8"], "0.8"),
    "file for a checkpoint folder": ([*_fit("waves.csv"), "--checkpoint", "waves.csv"], "waves.csv: it is a file"),
    "unknown fill": (_fit("waves.csv", "--fill", "magic"), "magic"),
    "resume without checkpoint": (_fit("waves.csv", "--resume"), "--checkpoint"),
    "level above 100": (["predict", "model", "--level", "101"], "101"),
    "missing model": (["predict", "nowhere"], "nowhere"),
    "folder without a model": (["predict", "."], "config.json"),
    "unknown suffix": (["predict", "model", "-o", "f.xlsx"], "f.xlsx"),
    "one file for two outputs": (["predict", "model", "-o", "f.csv", "--trace", "f.csv"], "--trace"),
    "report inside the model": (_fit("waves.csv", "--report", "m/report.html"), "inside --out"),
    "folder for the best options": (["tune", "waves.csv", "--horizon", 6, "--out", "model"], "best.toml"),
    "missing folder": (["predict", "model", "-o", "no/f.csv"], "no"),
    "frequency other than the model": (["predict", "model", "hourly.csv"], "freq"),
    "more windows than data": (["backtest", "waves.csv", "--horizon", 6, "--windows", 50], "50"),
    "file in place of the model": (["fit", "waves.csv", "--horizon", 6, "--out", "waves.csv"], "waves.csv"),
    "file in place of the demo": (["demo", "--out", "waves.csv"], "waves.csv"),
    "missing configuration": (_fit("waves.csv", "--config", "no.toml"), "no.toml"),
    "invalid TOML": (_fit("waves.csv", "--config", "text.csv"), "TOML"),
    "misspelled option in configuration": (_fit("waves.csv", "--config", "typo.toml"), "did you mean max-steps?"),
    "list for a single value": (_fit("waves.csv", "--config", "kind.toml"), "a single value"),
    "misspelled model option": (_fit("waves.csv", "--config", "model.toml"), "hiden_size"),
    "truth value for a number": (_fit("waves.csv", "--config", "switch.toml"), "max-steps must have a value"),
    "checkpoint inside the model": ([*_fit("waves.csv"), "--checkpoint", "m/state"], "m/state is inside --out"),
    "forecast over its data": (["predict", "model", "waves.csv", "-o", "./waves.csv"], "overwritten"),
    "trace over its data": (["predict", "model", "waves.csv", "--trace", "waves.csv"], "overwritten"),
    "backtest over its data": (["backtest", "waves.csv", "--horizon", 6, "-o", "waves.csv"], "overwritten"),
    "column with the name of a baseline": (
        ["backtest", "naive.csv", "--horizon", 6, "--target-col", "SeasonalNaive", *FEW_STEPS],
        "has the name of another column",
    ),
    "unknown scenario": (["datasets", "make", "ETTh1", "--out", "x.csv"], "Scenario1"),
    "no folder to fetch to": (["datasets", "fetch", "ETTh1"], "--to"),
    "nothing to fetch": (["datasets", "fetch", "Scenario1", "--to", "."], "no download"),
    "file to fetch is missing": (["datasets", "fetch", "ETTh1", "--from", ".", "--to", "d"], "ETTh1.csv"),
}


@pytest.fixture
def workplace(tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with all kinds of input, which is the working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LEAPTS_DATA", raising=False)
    (tmp_path / "model").symlink_to(model)
    (tmp_path / "waves.csv").write_text(table())
    (tmp_path / "short.csv").write_text(table(rows=7))
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "text.csv").write_text("once upon a time\nthere was, a wave\n")
    (tmp_path / "hourly.csv").write_text("ds,y\n" + "".join(f"2024-01-01 {h:02d}:00,{h}\n" for h in range(24)))
    (tmp_path / "typo.toml").write_text("max-step = 3\n")
    (tmp_path / "kind.toml").write_text("max-steps = [3]\n")
    (tmp_path / "switch.toml").write_text("max-steps = true\n")
    (tmp_path / "naive.csv").write_text(table().replace(",y", ",SeasonalNaive", 1))
    (tmp_path / "model.toml").write_text("[model]\nhiden_size = 3\n")
    return tmp_path


@pytest.mark.parametrize("case", INPUT)
@pytest.mark.usefixtures("workplace")
def test_invalid_input_gives_one_line_and_code_2(leapts: Leapts, case: str) -> None:
    arguments, words = INPUT[case]
    result = leapts(*arguments)
    assert result.code == 2, result.err
    assert result.error_line.startswith("error: ")
    assert words in result.error_line


def test_process_exits_with_the_code(tmp_path: Path) -> None:
    result = outside(["datasets", "fetch", "ETTh1", "--from", tmp_path, "--to", tmp_path])
    assert result.code == 2
    assert result.error_line.startswith("error: ")


@pytest.mark.usefixtures("workplace")
def test_debug_shows_the_traceback(leapts: Leapts) -> None:
    result = leapts("predict", "nowhere", "--debug")
    assert result.code == 2
    assert "Traceback" in result.err
    assert result.err.splitlines()[-1].startswith("error: nowhere")


def test_unexpected_error_has_code_1_and_names_debug(
    leapts: Leapts, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("the moon\nfell")

    monkeypatch.setattr("leapts.forecasting.estimator.LeapTS.predict", fail)
    result = leapts("predict", model)
    assert result.code == 1
    assert result.error_line == (
        "error: unexpected RuntimeError: the moon fell (run again with --debug for the traceback)"
    )
    assert "Traceback" in leapts("predict", model, "--debug").err


def test_unwritable_out_is_found_before_training(leapts: Leapts, workplace: Path) -> None:
    (workplace / "file").write_text("")
    result = leapts("fit", "waves.csv", "--horizon", 6, "--out", "file/model", "--max-steps", 10**6)
    assert result.code == 2
    assert "file" in result.error_line


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="there no file can be made, whoever asks")
@pytest.mark.usefixtures("workplace")
def test_unwritable_folder_is_found_before_the_fit(leapts: Leapts) -> None:
    for option in (["-o", "/proc/x.csv"], ["--report", "/proc/x.html"]):
        result = leapts("backtest", "waves.csv", "--horizon", 6, "--max-steps", 10**6, *option)
        assert (result.code, "choose another folder" in result.error_line) == (2, True)


@pytest.mark.parametrize("option", [["--threads", 2], ["--escape-formulas"], ["--trace", "t.csv"]])
def test_options_that_ray_cannot_use_are_refused(leapts: Leapts, data: Path, model: Path, option: list[object]) -> None:
    line = leapts("predict", model, data, "-o", "forecasts", "--engine", "ray", *option).error_line
    assert str(option[0]) in line


@pytest.mark.parametrize(
    "arguments",
    [
        ["predict", "-o", "f.csv"],
        ["predict", "--trace", "config.json"],
        ["report", "-o", "r.html"],
        ["export", "--out", "m.onnx"],
        ["analyse", "--plot", "x.png"],
    ],
)
def test_outputs_inside_the_model_folder_are_refused(
    leapts: Leapts, data: Path, model: Path, arguments: list[str]
) -> None:
    command, option, name = arguments
    before = {path.name: path.read_bytes() for path in model.iterdir()}
    result = leapts(command, model, *([data] if command in ("report", "analyse") else []), option, model / name)
    assert (result.code, f"{model / name} is inside the model folder" in result.error_line) == (2, True)
    assert {path.name: path.read_bytes() for path in model.iterdir()} == before


def test_closed_and_full_streams_are_handled(leapts: Leapts, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listing = f"{shlex.quote(sys.executable)} -m leapts datasets list"
    closed = subprocess.run(["sh", "-c", f"{listing} >&-"], capture_output=True, text=True, check=False)
    assert (closed.returncode, closed.stderr) == (0, "")
    missing = f"{shlex.quote(sys.executable)} -m leapts fit nothing.csv --horizon 2 --out nowhere"
    deaf = subprocess.run(["sh", "-c", f"{missing} 2>&-"], capture_output=True, text=True, check=False)
    assert (deaf.returncode, deaf.stdout) == (2, "")
    if Path("/dev/full").exists():
        full = subprocess.run(["sh", "-c", f"{listing} > /dev/full"], capture_output=True, text=True, check=False)
        assert (full.returncode, full.stderr) == (2, "error: standard output: No space left on device\n")
    monkeypatch.setattr(sys, "stdin", None)
    result = leapts("predict", model, "-")
    assert (result.code, "standard input is closed" in result.error_line) == (2, True)
