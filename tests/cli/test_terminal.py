"""Names from data cannot control the terminal; imports and output are kept small."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pyarrow
import pytest

from leapts.cli.predict import show_forecast
from leapts.cli.terminal import complain, show_table, write_bytes, write_json
from tests.cli.conftest import FEW_STEPS, Leapts, environment, table

NASTY = "\x1b[31mred\x1b[0m [red]markup[/red] :smile: \u202ereversed"


@pytest.mark.parametrize("arguments", [["--help"], ["fit", "--help"], ["version"], ["datasets", "list"]], ids=" ".join)
def test_torch_and_pandas_are_not_imported_without_need(arguments: list[str]) -> None:
    script = (
        "import sys; from leapts.cli import run; code = run(sys.argv[1:]); "
        "sys.exit(code or (9 if {'torch', 'pandas'} & set(sys.modules) else 0))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments], env=environment(), capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_names_cannot_control_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    show_table([NASTY], [[NASTY]])
    complain(f"error: {NASTY}\nand a second line")
    out, err = capsys.readouterr()
    for text in (out, err):
        assert "\x1b" not in text
        assert "\u202e" not in text
    assert "\\x1b[31mred" in out
    assert "[red]markup[/red]" in " ".join(out.split())
    assert ":smile:" in out
    assert len(err.splitlines()) == 1


def test_numbers_as_names_and_timestamps_have_no_separators(capsys: pytest.CaptureFixture[str]) -> None:
    frame = pyarrow.table({"unique_id": [1001, 1001], "ds": [2025, 2026], "LeapTS": [12345.0, 2.5]})
    show_forecast(frame, 2)
    out = capsys.readouterr().out
    assert "1001  2025  12,345" in " ".join(out.split()).replace(" ", "  ")


def test_series_names_survive_fit_and_predict(leapts: Leapts, tmp_path: Path) -> None:
    names = ["=1+1", "[bold]x", "a\x1bb"]
    file = tmp_path / "nasty.csv"
    file.write_text(table(names))
    assert leapts("fit", file, "--horizon", 6, "--out", tmp_path / "m", *FEW_STEPS).code == 0
    answer = json.loads(leapts("predict", tmp_path / "m", "--json").out)
    assert list(dict.fromkeys(row["unique_id"] for row in answer["forecast"])) == names


def test_file_names_cannot_control_the_terminal(leapts: Leapts) -> None:
    result = leapts("predict", "no\x1b[31msuch")
    assert "\x1b" not in result.err
    assert "no\\x1b[31msuch" in result.error_line


def test_json_has_null_for_nan_and_infinity(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    write_json({"mase": float("inf"), "mae": [float("nan"), 1.5]})
    assert json.loads(capfdbinary.readouterr().out) == {"mase": None, "mae": [None, 1.5]}


def test_progress_bar_is_shown_on_terminals_only(leapts: Leapts, data: Path, tmp_path: Path) -> None:
    arguments = ["fit", str(data), "--horizon", "6", "--out", str(tmp_path / "m"), *FEW_STEPS]
    assert leapts(*arguments).err == ""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "leapts", *arguments],
        env={**environment(), "TERM": "xterm"},
        stdout=subprocess.DEVNULL,
        stderr=theirs,
    )
    os.close(theirs)
    seen = b""
    try:
        while piece := os.read(ours, 4096):
            seen += piece
    except OSError:  # how a terminal says that its other end is closed
        pass
    os.close(ours)
    assert process.wait(30) == 0
    assert b"training" in seen
    assert b"validation" in seen


@pytest.fixture
def at_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("leapts.cli.terminal.is_terminal", lambda: True)


def test_json_escapes_control_characters(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    name = "\x1b[2J \x9b2J \u202e \x7f \U000e0041 \udc80 \u00e4"
    write_json({"name": name})
    out = capfdbinary.readouterr().out.decode()
    assert out.rstrip("\n").isprintable()
    assert "\u00e4" in out
    assert json.loads(out) == {"name": name}


@pytest.mark.usefixtures("at_terminal")
def test_csv_on_a_terminal_is_escaped(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    write_bytes(b'"a\x1b[2J","b\nc"\n1,2\n')
    assert capfdbinary.readouterr().out == b'"a\\x1b[2J","b\\nc"\n1,2\n'


def test_csv_in_a_pipe_is_unchanged(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    write_bytes(b'"a\x1b[2J","b\nc"\n')
    assert capfdbinary.readouterr().out == b'"a\x1b[2J","b\nc"\n'


def test_traceback_cannot_control_the_terminal(leapts: Leapts, model: Path) -> None:
    result = leapts("predict", model, "--debug", "-o", "no\x1b[31m/such.csv")
    assert result.code == 2
    assert "Traceback" in result.err
    assert "\x1b" not in result.err


def test_formulas_are_escaped_on_request(leapts: Leapts, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(table(["=1+1", "b"]))
    assert leapts("fit", tmp_path / "a.csv", "--horizon", 6, "--out", tmp_path / "m", *FEW_STEPS).code == 0
    written = tmp_path / "forecast.csv"
    assert (
        leapts("predict", tmp_path / "m", "-o", written, "--trace", tmp_path / "trace.csv", "--escape-formulas").code
        == 0
    )
    for path in (written, tmp_path / "trace.csv"):
        assert '"\'=1+1"' in path.read_text()
        assert '"=1+1"' not in path.read_text()
    assert '"=1+1"' in leapts("predict", tmp_path / "m").out
