"""Progress of training, shown in terminals and notebooks."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress

from leapts.training.loop import Progress, TrainingStep


class TrainingBar(RichProgress):
    """Progress bar of one or several fits on standard error; silent unless that is a terminal."""

    def __init__(self, fits: int = 1) -> None:
        console = Console(stderr=True, quiet=not sys.stderr.isatty())
        errors = TextColumn("loss {task.fields[loss]}  validation {task.fields[validation]}")
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), errors, TimeRemainingColumn())
        super().__init__(*columns, console=console, transient=True, disable=console.quiet)
        self._fits = fits
        self._task = self.add_task("training", total=None, loss="-", validation="-")
        self.at_fit(1)

    def at_fit(self, number: int) -> None:
        """Begin the bar of a fit."""
        self._fit, self._last_step = number, 0
        self.reset(self._task, description="training" if self._fits == 1 else f"training {number} of {self._fits}")

    def __call__(self, step: TrainingStep) -> None:
        """Update the bar after a training step; a lower step than the last begins the next fit."""
        if step.step <= self._last_step:
            self.at_fit(self._fit + 1)
        self._last_step = step.step
        fields: dict[str, Any] = {} if step.validation is None else {"validation": f"{step.validation:.4f}"}
        self.update(self._task, completed=step.step, total=step.max_steps, loss=f"{step.loss:.4f}", **fields)


ShowProgress = Progress | Literal["auto"] | bool | None


@contextmanager
def progress_bar(progress: ShowProgress) -> Iterator[Progress | None]:
    """Show progress for `"auto"` or True in a terminal or a notebook, not in a pipe or a job."""
    ipython = sys.modules.get("IPython")
    if progress is None or progress is False or callable(progress):
        yield progress or None
    elif ipython is not None and type(ipython.get_ipython()).__name__ == "ZMQInteractiveShell":
        with _notebook_line(ipython.display) as show:
            yield show
    elif sys.stderr is not None and sys.stderr.isatty():
        with TrainingBar() as bar:
            yield bar
    else:
        yield None


@contextmanager
def _notebook_line(display: Any) -> Iterator[Progress]:
    """Show one line of text, which is updated a hundred times during training and removed at its end."""
    handle = display.display(display.HTML(""), display_id=True)

    def show(step: TrainingStep) -> None:
        if step.step % max(1, step.max_steps // 100) == 0:
            best = "" if step.best is None else f", validation MAE {step.best:.3g} (scaled)"
            handle.update(display.HTML(f"training: step {step.step} of {step.max_steps}{best}"))

    yield show
    handle.update(display.HTML(""))
