"""All commands, their exit codes and error messages."""

import errno
import io
import os
import re
import shlex
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError

from leapts import __version__
from leapts.cli import (
    analyse,
    backtest,
    datasets,
    demo,
    detect,
    evaluate,
    explain,
    export,
    fit,
    forecast,
    predict,
    report,
    serve,
    tune,
)
from leapts.cli.config_file import OLD_FLAGS, RENAMED
from leapts.cli.options import FLAGS
from leapts.cli.terminal import Interrupted, complain, note, say
from leapts.errors import LeapTSError, WorkerLostError
from leapts.messages import explain as explain_invalid
from leapts.training import launcher

GOOD, UNEXPECTED, WRONG_INPUT, INTERRUPTED, BROKEN_PIPE = 0, 1, 2, 130, 141
# Codes of system errors: no room to write, and a file or folder that cannot be used.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
_PLACE = (
    *(errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT, errno.EEXIST, errno.EISDIR, errno.ENOTDIR),
    *(errno.ELOOP, errno.ENAMETOOLONG),
)
_TEXT = r"'[^']*'|\"[^\"]*\""
_OPTION = re.compile(
    # An option with a value, or with several to choose from; else quoted text, which may come from data and stays.
    rf"(?<![\w.'\"-])(?P<name>{'|'.join(FLAGS)})=(?P<value>(?:{_TEXT})(?:, '\w+')*|\[[^\]]*\]|[\w.+-]*\w)?"
    rf"|(?<!\w)(?:{_TEXT})(?!\w)"
)
# Raised by the parser for unknown options and invalid values; only its subclass is public.
_UsageError: type[Exception] = typer.BadParameter.__mro__[1]

app = typer.Typer(
    name="leapts",
    epilog="Start here:  leapts demo",
    context_settings={"help_option_names": ["-h", "--help"]},
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for _module in (
    demo,
    forecast,
    fit,
    predict,
    explain,
    backtest,
    evaluate,
    detect,
    tune,
    export,
    report,
    analyse,
    serve,
):
    _name, _examples = _module.__name__.rpartition(".")[2], str(_module.__doc__).partition("\n\n")[2]
    app.command(_name, epilog=f"\b\n{_examples}")(getattr(_module, _name))
app.add_typer(datasets.app, name="datasets")


@app.command("version", epilog="Example:  leapts version")
def version() -> None:
    """Print the version."""
    say(f"leapts {__version__}")


def _print_version(wanted: bool) -> None:
    if wanted:
        version()
        raise typer.Exit


@app.callback()
def root(
    context: typer.Context,
    version: Annotated[  # noqa: ARG001 - its callback prints it
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version.")
    ] = False,
) -> None:
    """Forecast many time series many steps ahead, and see every leap of a forecast."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main() -> None:
    """Run the command line and exit with its code."""
    for stream in ("stdout", "stderr"):
        if getattr(sys, stream) is None:  # closed by the caller
            setattr(sys, stream, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 - open until exit
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Characters that the terminal cannot encode are escaped, as on standard error.
        sys.stdout.reconfigure(errors="backslashreplace")
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command.

    Returns:
        0 on success; 2 for invalid input; 1 for an unexpected error; 130 when interrupted; 141 when the reader of a
        pipe is gone.
    """
    try:
        outcome = app(current_flags(arguments), prog_name="leapts", standalone_mode=False)
        sys.stdout.flush()
    except (Interrupted, KeyboardInterrupt, typer.Abort) as stop:
        if launcher.is_first():
            complain(str(stop) or "interrupted")
        return INTERRUPTED
    except (BrokenPipeError, SystemExit) as stop:
        # The parser and rich exit with code 1 after a broken pipe, and only then.
        if isinstance(stop, SystemExit) and stop.code != 1:
            raise
        _stop_writing()
        return BROKEN_PIPE
    except _UsageError as error:
        complain(f"error: {_usage(error)}")
        return WRONG_INPUT
    except Exception as error:
        # --debug is not taken from the parser, since parsing may fail.
        return _report(error, debug="--debug" in arguments)
    if outcome == INTERRUPTED:
        complain("interrupted")
    return outcome if isinstance(outcome, int) else GOOD


def current_flags(arguments: Sequence[str]) -> list[str]:
    """Replace flags under their old names by the new ones, with a note for each."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    current: list[str] = []
    for argument in arguments[:end]:
        name, equals, value = argument.partition("=")
        new = OLD_FLAGS.get(name, [name])
        if name in OLD_FLAGS:
            note(RENAMED.format(name, " ".join(new)))
        current += [f"{new[0]}={value}"] if equals else new
    return [*current, *arguments[end:]]


def _usage(error: Exception) -> str:
    """Describe an invalid command line: the flag, its value and what it must be."""
    message = error.format_message() if hasattr(error, "format_message") else str(error)
    if isinstance(error.__cause__, ValidationError):  # newer parsers validate with pydantic, and repeat its phrases
        flag = max(getattr(getattr(error, "param", None), "opts", [""]), key=len)
        value, reason = error.__cause__.errors()[0]["input"], explain_invalid(error.__cause__)
        message = f"{flag}: {reason}" if repr(value) in reason else f"{flag} {value}: {reason}"
    context = getattr(error, "ctx", None)
    return f"{message.rstrip('.')} (see {context.command_path if context else 'leapts'} --help)"


def _report(error: Exception, *, debug: bool) -> int:
    """Print an error on one line, and return the exit code."""
    if debug:
        for line in traceback.format_exc().rstrip().split("\n"):
            note(line)
    is_output = isinstance(error, OSError) and error.filename is None and error.errno in _FULL
    if is_output:
        _stop_writing()
    is_file = isinstance(error, OSError) and error.filename is not None and error.errno in (*_FULL, *_PLACE)
    is_missing_extra = isinstance(error, ImportError) and "pip install" in str(error)
    expected = isinstance(error, LeapTSError) or is_output or is_file or is_missing_extra
    # All processes of a launch find the same error, and the first reports it; a lost worker is reported by any.
    if launcher.is_first() or isinstance(error, WorkerLostError) or not expected:
        if not expected:
            text = f"unexpected {type(error).__name__}: {error} (run again with --debug for the traceback)"
        elif isinstance(error, OSError) and not isinstance(error, LeapTSError):
            text = f"{error.filename or 'standard output'}: {error.strerror}"
        else:
            text = as_flags(str(error))
        complain(f"error: {text}")
    return WRONG_INPUT if expected and not isinstance(error, WorkerLostError) else UNEXPECTED


def as_flags(message: str) -> str:
    """Write the options that an error message names as flags: `--fill ffill` for `fill='ffill'`."""

    def flag(match: re.Match[str]) -> str:
        if match["name"] is None:
            return match[0]
        value = (match["value"] or "").strip("[]")
        return f"{FLAGS[match['name']]} {re.sub(_TEXT, lambda text: shlex.quote(text[0][1:-1]), value)}".rstrip()

    return _OPTION.sub(flag, message)


def _stop_writing() -> None:
    """Redirect standard output to the null device, so that the flush at exit does not fail again."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, sys.stdout.fileno())
