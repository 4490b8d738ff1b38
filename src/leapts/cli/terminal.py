"""Everything that reaches the screen: notes, tables, bars, CSV and JSON, with names from data made harmless."""

import json
import math
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from datetime import date
from typing import TYPE_CHECKING, Any

import typer
from rich import box
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from leapts.wording import printable

if TYPE_CHECKING:
    from leapts.training import TrainingStep

WIDTH_OF_PIPES = 120
_QUOTED = re.compile(r'"(?:[^"]|"")*"')


class Interrupted(Exception):  # noqa: N818 - stopping is no error
    """The user stopped a command; the message says what is kept."""


def say(text: str) -> None:
    """One line of result."""
    _console().print(_harmless(text), soft_wrap=True)


def note(text: str) -> None:
    """One line beside the result."""
    _console(stderr=True).print(_harmless(text), soft_wrap=True)


def complain(text: str) -> None:
    """One line about what went wrong; lines within it are joined, so that it stays one."""
    note(" ".join(text.split()))


def help_if_alone(context: typer.Context) -> None:
    """Show the help of a group of commands that was called without one."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def show_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A table; columns whose cells are all numbers are set to the right."""
    cells = [[_cell(value) for value in row] for row in rows]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for number, name in enumerate(columns):
        is_number = bool(cells) and all(_looks_like_number(row[number]) for row in cells)
        table.add_column(_harmless(name), justify="right" if is_number else "left", no_wrap=is_number)
    for row in cells:
        table.add_row(*(_harmless(cell) for cell in row))
    _console().print(table)


def write_json(value: Any) -> None:
    """One JSON object and a new line, and nothing else."""
    text = json.dumps(_plain(value), ensure_ascii=False, allow_nan=False, default=_by_iso)
    # JSON can spell whatever could command a terminal; to a program it is the same.
    if not text.isprintable():
        text = "".join(one if one.isprintable() else json.dumps(one)[1:-1] for one in text)
    write_bytes(text.encode() + b"\n")


def write_bytes(content: bytes) -> None:
    """Text in UTF-8 as it is, for the next program; a terminal is shown it line by line, with nothing it would obey."""
    sys.stdout.flush()
    if is_terminal():
        # Within quotes, as CSV has them, the end of a line is part of a name.
        text = _QUOTED.sub(lambda name: printable(name[0]), content.decode(errors="replace"))
        content = "\n".join(map(printable, text.split("\n"))).encode()
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()


def is_terminal() -> bool:
    """Whether results are read by a person."""
    return sys.stdout.isatty()


class TrainingBar:
    """A progress bar that hears of every step of training; silent unless standard error is a terminal."""

    def __init__(self, fits: int = 1) -> None:
        """Prepares the bar.

        Args:
            fits: How many models will be fitted one after the other.
        """
        self._fits, self._fit, self._last_step = fits, 1, 0
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("loss {task.fields[loss]}  validation {task.fields[validation]}"),
            TimeRemainingColumn(),
            console=_console(stderr=True),
            transient=True,
        )
        self._task = self._progress.add_task(self._title(), total=None, start=False, loss="-", validation="-")

    def __enter__(self) -> "TrainingBar":
        if self._progress.console.is_terminal:
            self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        # Stopping what was never started would still print an empty line.
        if self._progress.console.is_terminal:
            self._progress.stop()

    def __call__(self, step: "TrainingStep") -> None:
        """After every step of training."""
        if step.step <= self._last_step:
            self._fit += 1
            self._progress.reset(self._task, description=self._title(), start=False)
        if self._last_step == 0 or step.step <= self._last_step:
            self._progress.start_task(self._task)
        self._last_step = step.step
        if step.validation is not None:
            self._progress.update(self._task, validation=f"{step.validation:.4f}")
        self._progress.update(self._task, completed=step.step, total=step.max_steps, loss=f"{step.loss:.4f}")

    def at_fit(self, number: int) -> None:
        """Say which of the fits begins, when it is not simply the next one."""
        self._fit, self._last_step = number, 0
        self._progress.reset(self._task, description=self._title(), start=False)

    def _title(self) -> str:
        return "training" if self._fits == 1 else f"training {self._fit} of {self._fits}"


@contextmanager
def download_bar(name: str) -> Iterator["DownloadBar"]:
    """A progress bar in bytes; silent unless standard error is a terminal."""
    progress = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
        console=_console(stderr=True),
        transient=True,
    )
    with progress if progress.console.is_terminal else nullcontext():
        yield DownloadBar(progress, name)


class DownloadBar:
    """Hears of the bytes that have arrived."""

    def __init__(self, progress: Progress, name: str) -> None:
        self._progress = progress
        self._task = progress.add_task(printable(name), total=None)

    def __call__(self, done: int, total: int | None) -> None:
        """After every piece."""
        self._progress.update(self._task, completed=done, total=total)


def _console(*, stderr: bool = False) -> Console:
    """Made anew each time, because the streams may have been replaced since."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else WIDTH_OF_PIPES
    return Console(stderr=stderr, width=width, markup=False, highlight=False, emoji=False)


def _harmless(text: object) -> Text:
    """Text that is shown as it is: no markup, no control characters."""
    return Text(printable(text))


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1e4 or not math.isfinite(value) else f"{value:,.0f}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return "" if value is None else str(value)


def _looks_like_number(cell: str) -> bool:
    try:
        float(cell.replace(",", "").rstrip(" %") or 0)
    except ValueError:
        return False
    return True


def _plain(value: Any) -> Any:
    """What JSON cannot hold, infinities and NaN, becomes null."""
    if isinstance(value, dict):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _by_iso(value: Any) -> Any:
    if isinstance(value, date):  # a datetime is one, too
        return value.isoformat()
    if hasattr(value, "item"):
        return value.item()
    return str(value)
