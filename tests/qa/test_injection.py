"""A short share of the injection payloads; all two hundred run with `make stress`."""

import shutil
from pathlib import Path

import pytest
from prometheus_client import generate_latest

from leapts.cli import terminal
from leapts.data import frames
from leapts.report import page
from leapts.server import app, metrics
from leapts_qa import injection
from leapts_qa.injection_payloads import PAYLOADS

in_browser = pytest.mark.skipif(shutil.which("chromium") is None, reason="needs Chromium: apt-get install chromium")


def test_there_are_two_hundred_payloads() -> None:
    assert len(set(PAYLOADS)) == 200


@pytest.mark.parametrize(
    ("unit", "every", "cases"),
    [
        ("tables", 1, 200),
        ("labels", 1, 202),
        ("terminal", 40, 95),
        ("file names", 50, 24),
        ("logs", 20, 20),
        ("figures", 40, 5),
        pytest.param("report", 4, 48, marks=[in_browser, pytest.mark.slow]),
        pytest.param("titles", 40, 5, marks=in_browser),
        pytest.param("page", 20, 30, marks=[in_browser, pytest.mark.slow]),
    ],
)
def test_names_are_shown_as_text(unit: str, every: int, cases: int, tmp_path: Path) -> None:
    outcome = injection.run(unit, tmp_path, every=every)
    assert not outcome.failures
    assert outcome.cases == cases


@in_browser
def test_markup_in_the_page_is_detected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "escape", lambda text: text)
    monkeypatch.setattr(injection, "PAYLOADS", ("<img src=//leak.invalid>", "<b onclick=x>y</b>"))
    assert len(injection.run("titles", tmp_path).failures) == 2


def test_a_formula_is_detected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "is_formula", lambda _: False)
    assert len(injection.run("tables", tmp_path).failures) > 20


def test_a_terminal_escape_sequence_is_detected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "printable", str)
    monkeypatch.setattr(injection, "PAYLOADS", ("\x1b[2J",))
    assert injection.run("terminal", tmp_path).failures


def test_a_forged_metric_is_detected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "generate_latest", lambda own: generate_latest(own).replace(b"\\n", b"\n"))
    with pytest.raises(ValueError, match="no line of metrics"):
        injection.run("labels", tmp_path)


def test_a_forged_log_line_is_detected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "printable", str)
    monkeypatch.setattr(injection, "PAYLOADS", ("a\nb",))
    assert injection.run("logs", tmp_path).failures
