"""What goes wrong ends with one line and the right exit code."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import FEW_STEPS, Leapts, outside, table

USAGE = {
    "no such command": (["fot"], "fit"),
    "no such option": (["--nonsense"], "--nonsense"),
    "a missing argument": (["fit"], "DATA"),
    "a missing option": (["fit", "x.csv", "--out", "m"], "--horizon"),
    "a horizon of nothing": (["fit", "x.csv", "--out", "m", "--horizon", "0"], "--horizon"),
    "a word for a number": (["fit", "x.csv", "--out", "m", "--horizon", "ten"], "--horizon"),
    "a layout there is not": (["fit", "x.csv", "--out", "m", "--horizon", "2", "--layout", "tall"], "tall"),
}


@pytest.mark.parametrize("case", USAGE)
def test_a_wrong_command_line_is_one_line(leapts: Leapts, case: str) -> None:
    arguments, word = USAGE[case]
    result = leapts(*arguments)
    assert result.code == 2
    assert result.error_line.startswith("error: ")
    assert word in result.error_line
    assert "--help" in result.error_line


def _fit(*arguments: object) -> list[object]:
    return ["fit", *arguments, "--horizon", 6, "--out", "m", *FEW_STEPS]


INPUT: dict[str, tuple[list[object], str]] = {
    "no such file": (_fit("nosuch.csv"), "neither a file nor a data set"),
    "nearly a data set": (_fit("SeatleWeather"), "SeattleWeather"),
    "no such data set": (_fit("dataset:Nonsense"), "Nonsense"),
    "a data set that is elsewhere": (_fit("ETTh1"), "leapts datasets fetch ETTh1"),
    "a data set read otherwise": (_fit("SeattleWeather", "--freq", "h"), "--freq"),
    "a folder for a file": (_fit("."), "directory"),
    "an empty file": (_fit("empty.csv"), "empty"),
    "not a table": (_fit("text.csv"), "text.csv"),
    "too little data": (_fit("short.csv"), "7 values"),
    "no such column": (_fit("waves.csv", "--target-col", "sold", "--layout", "long"), "sold"),
    "a wrong frequency": (_fit("waves.csv", "--freq", "h"), "freq"),
    "a frequency that is none": (_fit("waves.csv", "--freq=--5"), "not a frequency"),
    "a share for a level": (["predict", "model", "--level", "0.8"], "for 80 % say 80"),
    "a file for the state": ([*_fit("waves.csv"), "--checkpoint", "waves.csv"], "it is a file; name a folder"),
    "a fill that is none": (_fit("waves.csv", "--fill", "magic"), "magic"),
    "resume without checkpoint": (_fit("waves.csv", "--resume"), "--checkpoint"),
    "a level too high": (["predict", "model", "--level", "101"], "101"),
    "no such model": (["predict", "nowhere"], "nowhere"),
    "a folder that is no model": (["predict", "."], "config.json"),
    "an ending that tells nothing": (["predict", "model", "-o", "f.xlsx"], "f.xlsx"),
    "one file for two": (["predict", "model", "-o", "f.csv", "--trace", "f.csv"], "--trace"),
    "a report inside the model": (_fit("waves.csv", "--report", "m/report.html"), "inside --out"),
    "a folder for the best options": (["tune", "waves.csv", "--horizon", 6, "--out", "model"], "best.toml"),
    "a folder that is missing": (["predict", "model", "-o", "no/f.csv"], "no"),
    "other data than the model's": (["predict", "model", "hourly.csv"], "freq"),
    "more windows than data": (["backtest", "waves.csv", "--horizon", 6, "--windows", 50], "50"),
    "the place of a model taken": (["fit", "waves.csv", "--horizon", 6, "--out", "waves.csv"], "waves.csv"),
    "the place of a demo taken": (["demo", "--out", "waves.csv"], "waves.csv"),
    "no configuration": (_fit("waves.csv", "--config", "no.toml"), "no.toml"),
    "a broken configuration": (_fit("waves.csv", "--config", "text.csv"), "TOML"),
    "a configuration that misspells": (_fit("waves.csv", "--config", "typo.toml"), "did you mean max-steps?"),
    "a configuration of the wrong kind": (_fit("waves.csv", "--config", "kind.toml"), "a single value"),
    "a model option there is not": (_fit("waves.csv", "--config", "model.toml"), "hiden_size"),
    "a switch for a number": (_fit("waves.csv", "--config", "switch.toml"), "max-steps is no switch"),
    "state inside the model": ([*_fit("waves.csv"), "--checkpoint", "m/state"], "which holds the model alone"),
    "a forecast over its data": (["predict", "model", "waves.csv", "-o", "./waves.csv"], "would be lost"),
    "a trace over its data": (["predict", "model", "waves.csv", "--trace", "waves.csv"], "would be lost"),
    "a back-test over its data": (["backtest", "waves.csv", "--horizon", 6, "-o", "waves.csv"], "would be lost"),
    "a column of a baseline's name": (
        ["backtest", "naive.csv", "--horizon", 6, "--target-col", "SeasonalNaive", *FEW_STEPS],
        "has the name of another column",
    ),
    "a scenario there is not": (["datasets", "make", "ETTh1", "--out", "x.csv"], "Scenario1"),
    "nowhere to fetch to": (["datasets", "fetch", "ETTh1"], "--to"),
    "nothing to fetch": (["datasets", "fetch", "Scenario1", "--to", "."], "no download"),
    "nothing to fetch from": (["datasets", "fetch", "ETTh1", "--from", ".", "--to", "d"], "ETTh1.csv"),
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
def test_wrong_input_is_one_line_and_code_2(leapts: Leapts, case: str) -> None:
    arguments, words = INPUT[case]
    result = leapts(*arguments)
    assert result.code == 2, result.err
    assert result.error_line.startswith("error: ")
    assert words in result.error_line


def test_the_shell_sees_the_code(tmp_path: Path) -> None:
    result = outside(["datasets", "fetch", "ETTh1", "--from", tmp_path, "--to", tmp_path])
    assert result.code == 2
    assert result.error_line.startswith("error: ")


@pytest.mark.usefixtures("workplace")
def test_debug_shows_where(leapts: Leapts) -> None:
    result = leapts("predict", "nowhere", "--debug")
    assert result.code == 2
    assert "Traceback" in result.err
    assert result.err.splitlines()[-1].startswith("error: nowhere")


def test_the_unexpected_is_code_1_and_says_how_to_see_more(
    leapts: Leapts, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("the moon\nfell")

    monkeypatch.setattr("leapts.forecaster.facade.LeapTS.predict", fail)
    result = leapts("predict", model)
    assert result.code == 1
    assert result.error_line == ("error: unexpected RuntimeError: the moon fell (run again with --debug to see where)")
    assert "Traceback" in leapts("predict", model, "--debug").err


def test_a_place_that_cannot_be_written_to_is_found_before_training(leapts: Leapts, workplace: Path) -> None:
    (workplace / "file").write_text("")
    result = leapts("fit", "waves.csv", "--horizon", 6, "--out", "file/model", "--max-steps", 10**6)
    assert result.code == 2
    assert "file" in result.error_line


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="there no file can be made, whoever asks")
@pytest.mark.usefixtures("workplace")
def test_a_folder_that_takes_no_files_is_found_before_the_work(leapts: Leapts) -> None:
    for option in (["-o", "/proc/x.csv"], ["--report", "/proc/x.html"]):
        result = leapts("backtest", "waves.csv", "--horizon", 6, "--max-steps", 10**6, *option)
        assert (result.code, "choose another folder" in result.error_line) == (2, True)


@pytest.mark.parametrize("option", [["--threads", 2], ["--safe-cells"]])
def test_what_an_engine_cannot_heed_is_refused(leapts: Leapts, data: Path, model: Path, option: list[object]) -> None:
    line = leapts("predict", model, data, "-o", "forecasts", "--engine", "ray", *option).error_line
    assert "leave out --threads, --safe-cells" in line


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
def test_nothing_is_written_into_a_models_folder(leapts: Leapts, data: Path, model: Path, arguments: list[str]) -> None:
    command, option, name = arguments
    before = {path.name: path.read_bytes() for path in model.iterdir()}
    result = leapts(command, model, *([data] if command in ("report", "analyse") else []), option, model / name)
    assert (result.code, "is inside the model's folder" in result.error_line) == (2, True)
    assert {path.name: path.read_bytes() for path in model.iterdir()} == before


def test_streams_may_be_closed_and_full(leapts: Leapts, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
