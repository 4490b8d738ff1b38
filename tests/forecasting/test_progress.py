"""A progress bar is shown where a person watches, and nowhere else."""

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from leapts.forecasting.progress import progress_bar
from leapts.training.loop import TrainingStep

STEP = TrainingStep(step=50, max_steps=100, loss=1.0, validation=None, best=0.25)


def test_pipes_and_jobs_have_no_bar(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bar("auto") as show:
        assert show is None
    assert capsys.readouterr() == ("", "")


def test_a_callback_is_passed_on_unchanged() -> None:
    seen: list[TrainingStep] = []
    with progress_bar(seen.append) as show:
        assert show is not None
        show(STEP)
    assert seen == [STEP]
    with progress_bar(None) as show:
        assert show is None


def test_a_terminal_shows_steps_and_the_validation_error(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with progress_bar("auto") as show:
        assert show is not None
        show(STEP)
    out, err = capsys.readouterr()
    assert out == ""
    assert "50 of 100" in err
    assert "0.25" in err


def test_a_notebook_shows_one_line_and_removes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []

    class ZMQInteractiveShell:
        """The shell of a notebook."""

    def display(html: str, *, display_id: bool) -> SimpleNamespace:
        assert display_id
        shown.append(html)
        return SimpleNamespace(update=shown.append)

    notebook: Any = SimpleNamespace(get_ipython=ZMQInteractiveShell, display=SimpleNamespace(HTML=str, display=display))
    monkeypatch.setitem(sys.modules, "IPython", notebook)
    with progress_bar("auto") as show:
        assert show is not None
        show(STEP)
        show(STEP._replace(step=51, max_steps=1000))  # between two hundredths
    assert shown[0] == shown[-1] == ""
    assert ["50 of 100" in line for line in shown] == [False, True, False]
