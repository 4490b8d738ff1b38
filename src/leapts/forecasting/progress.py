"""A progress bar for training in terminals and notebooks."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

from leapts.training.loop import Progress, TrainingStep


@contextmanager
def progress_bar(progress: Progress | Literal["auto"] | None) -> Iterator[Progress | None]:
    """Show a bar for `"auto"` in a terminal or a notebook, but not in a pipe or a job."""
    if progress != "auto":
        yield progress
    elif (shell := _notebook()) is not None:
        with _notebook_line(shell) as show:
            yield show
    elif sys.stderr is not None and sys.stderr.isatty():
        with _terminal_bar() as show:
            yield show
    else:
        yield None


def _notebook() -> Any:
    """Return the display module of IPython inside a notebook; None elsewhere."""
    ipython: Any = sys.modules.get("IPython")
    in_notebook = ipython is not None and type(ipython.get_ipython()).__name__ == "ZMQInteractiveShell"
    return ipython.display if in_notebook else None


def _text(step: TrainingStep) -> str:
    best = "" if step.best is None else f", validation MAE {step.best:.3g} (scaled)"
    return f"fitting: step {step.step} of {step.max_steps}{best}"


@contextmanager
def _notebook_line(display: Any) -> Iterator[Progress]:
    """Show one line of text, which is updated a hundred times during training and removed at its end."""
    handle = display.display(display.HTML(""), display_id=True)

    def show(step: TrainingStep) -> None:
        if step.step % max(1, step.max_steps // 100) == 0:
            handle.update(display.HTML(_text(step)))

    yield show
    handle.update(display.HTML(""))


@contextmanager
def _terminal_bar() -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("fitting", total=None)

        def show(step: TrainingStep) -> None:
            bar.update(task, completed=step.step, total=step.max_steps, description=_text(step))

        yield show
