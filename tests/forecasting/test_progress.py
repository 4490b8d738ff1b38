"""Progress of training: shown on terminals only, one bar for several fits."""

import pytest

from leapts.forecasting.progress import TrainingBar, progress_bar
from leapts.training.loop import TrainingStep


def _step(number: int, validation: float | None = None) -> TrainingStep:
    return TrainingStep(number, 4, 0.5, validation, validation)


def test_lower_step_begins_the_next_fit() -> None:
    with TrainingBar(3) as bar:
        for number in (1, 2, 1):
            bar(_step(number))
        assert (bar.tasks[0].description, bar.tasks[0].completed) == ("training 2 of 3", 1)
        bar.at_fit(3)
        bar(_step(1))
        assert bar.tasks[0].description == "training 3 of 3"


def test_validation_error_stays_until_the_next_check() -> None:
    with TrainingBar() as bar:
        bar(_step(1, 0.25))
        bar(_step(2))
        assert bar.tasks[0].fields == {"loss": "0.5000", "validation": "0.2500"}
        assert bar.tasks[0].description == "training"


def test_pipe_gets_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    with TrainingBar() as bar:
        bar(_step(1))
    with progress_bar("auto") as shown:
        assert shown is None
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("progress", [None, False])
def test_progress_can_be_switched_off(progress: bool | None) -> None:
    with progress_bar(progress) as shown:
        assert shown is None


def test_true_shows_what_auto_shows(capfd: pytest.CaptureFixture[str]) -> None:
    with progress_bar(True) as shown:
        assert shown is None  # the tests write to no terminal
    assert capfd.readouterr().err == ""
