"""Output to the terminal: lines, tables, a progress bar, CSV and JSON, with control characters escaped."""

import json
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich import box
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from leapts.messages import printable

WIDTH_OF_PIPES = 120
_NUMBER = re.compile(r"(-?(\d[\d,]*(\.\d+)?(e[-+]\d+)?|inf|nan))?( %)?")
_QUOTED = re.compile(r'"(?:[^"]|"")*"')


class Interrupted(Exception):  # noqa: N818 - not an error
    """A command was stopped by the user; the message says what is kept."""


def say(text: str, *, stderr: bool = False) -> None:
    """Print one line of the result."""
    _console(stderr=stderr).print(Text(printable(text)), soft_wrap=True)


def note(text: str) -> None:
    """Print one line to standard error."""
    say(text, stderr=True)


def complain(text: str) -> None:
    """Print an error on one line of standard error."""
    note(" ".join(text.split()))


def say_files(**files: object) -> None:
    """Print the path of each file that was written; None stands for one that was not."""
    for what, path in files.items():
        if path is not None:
            say(f"{what:<9} {path}")


def show_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table; columns of numbers are aligned to the right."""
    cells = [[_cell(value) for value in row] for row in rows]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for number, name in enumerate(columns):
        is_number = bool(cells) and all(_NUMBER.fullmatch(row[number]) for row in cells)
        table.add_column(Text(printable(name)), justify="right" if is_number else "left", no_wrap=is_number)
    for row in cells:
        table.add_row(*(Text(printable(cell)) for cell in row))
    _console().print(table)


def write_json(value: Any) -> None:
    """Print one JSON object and a newline; infinities and NaN, which JSON does not have, become null."""
    finite = json.loads(json.dumps(value, default=_plain), parse_constant=lambda _: None)
    text = json.dumps(finite, ensure_ascii=False)
    # Escapes keep control characters from the terminal, and parse to the same text.
    if not text.isprintable():
        text = "".join(one if one.isprintable() else json.dumps(one)[1:-1] for one in text)
    write_bytes(text.encode() + b"\n")


def write_bytes(content: bytes) -> None:
    """Write UTF-8 text unchanged to a pipe; to a terminal with control characters escaped."""
    sys.stdout.flush()
    if is_terminal():
        # Line breaks inside the quotes of CSV belong to a name.
        text = _QUOTED.sub(lambda name: printable(name[0]), content.decode(errors="replace"))
        content = "\n".join(map(printable, text.split("\n"))).encode()
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()


def is_terminal() -> bool:
    """Whether standard output is a terminal."""
    return sys.stdout.isatty()


@contextmanager
def download_bar(name: str) -> Iterator[Callable[[int, int | None], None]]:
    """Show a progress bar in bytes; silent unless standard error is a terminal."""
    columns = TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn(), TimeRemainingColumn()
    console = Console(stderr=True, quiet=not sys.stderr.isatty())
    with Progress(*columns, console=console, transient=True, disable=console.quiet) as progress:
        task = progress.add_task(printable(name), total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


def _console(*, stderr: bool = False) -> Console:
    """Make a console for the current streams, which tests and callers replace."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else WIDTH_OF_PIPES
    return Console(stderr=stderr, width=width, markup=False, highlight=False, emoji=False)


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1e4 or not math.isfinite(value) else f"{value:,.0f}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return "" if value is None else str(value)


def _plain(value: Any) -> Any:
    """Convert a date, a numpy number or a path for JSON."""
    if hasattr(value, "isoformat"):
        return value.isoformat()
    return value.item() if hasattr(value, "item") else str(value)
