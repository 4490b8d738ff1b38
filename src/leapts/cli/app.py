"""All commands, their exit codes and error messages."""

import errno
import io
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from leapts import __version__
from leapts.cli import analyse, backtest, datasets, demo, export, fit, predict, report, serve, tune
from leapts.cli.config_file import current_flags
from leapts.cli.options import as_flags
from leapts.cli.terminal import Interrupted, complain, help_if_alone, note, say
from leapts.errors import LeapTSError, WorkerLostError
from leapts.training import launcher

GOOD, UNEXPECTED, WRONG_INPUT, INTERRUPTED, BROKEN_PIPE = 0, 1, 2, 130, 141

# Raised by the parser for unknown options and invalid values; only its subclass is public.
_UsageError: type[Exception] = typer.BadParameter.__mro__[1]

app = typer.Typer(
    name="leapts",
    help="Forecast many time series many steps ahead, and see every leap of a forecast.",
    epilog="Start here:  leapts demo",
    context_settings={"help_option_names": ["-h", "--help"]},
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("demo", epilog=demo.EXAMPLE)(demo.demo)
app.command("fit", epilog=fit.EXAMPLE)(fit.fit)
app.command("predict", epilog=predict.EXAMPLE)(predict.predict)
app.command("backtest", epilog=backtest.EXAMPLE)(backtest.backtest)
app.command("tune", epilog=tune.EXAMPLE)(tune.tune)
app.command("export", epilog=export.EXAMPLE)(export.export)
app.command("report", epilog=report.EXAMPLE)(report.report)
app.command("analyse", epilog=analyse.EXAMPLE)(analyse.analyse)
app.command("serve", epilog=serve.EXAMPLE)(serve.serve)
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
    help_if_alone(context)


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

    Args:
        arguments: Arguments of the shell, without the name of the program.

    Returns:
        0 on success; 2 for invalid input; 1 for an unexpected error; 130 when interrupted; 141 when the reader of a
        pipe is gone.
    """
    # Not taken from the parser, since parsing may fail.
    debug = "--debug" in arguments
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
        message = error.format_message() if hasattr(error, "format_message") else str(error)
        context = getattr(error, "ctx", None)
        complain(f"error: {message.rstrip('.')} (see {context.command_path if context else 'leapts'} --help)")
        return WRONG_INPUT
    except (LeapTSError, ImportError, OSError) as error:
        if debug:
            _show_traceback()
        if _is_full_output(error):
            _stop_writing()
        expected = (
            isinstance(error, LeapTSError)
            or _is_users_file(error)
            or _is_missing_extra(error)
            or _is_full_output(error)
        )
        # All processes of a launch find the same error, and the first reports it; a lost worker is reported by any.
        if launcher.is_first() or isinstance(error, WorkerLostError) or not expected:
            complain(f"error: {_in_words(error)}" if expected else _unexpected(error))
        return WRONG_INPUT if expected and not isinstance(error, WorkerLostError) else UNEXPECTED
    except Exception as error:
        if debug:
            _show_traceback()
        complain(_unexpected(error))
        return UNEXPECTED
    if outcome == INTERRUPTED:
        complain("interrupted")
    return outcome if isinstance(outcome, int) else GOOD


def _in_words(error: Exception) -> str:
    if isinstance(error, OSError) and not isinstance(error, LeapTSError):
        return f"{error.filename or 'standard output'}: {error.strerror}"
    return as_flags(str(error))


def _is_users_file(error: Exception) -> bool:
    """Whether a file or folder named by the user cannot be used."""
    codes = (
        *(errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT, errno.EEXIST, errno.EISDIR, errno.ENOTDIR),
        *(errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.ELOOP, errno.ENAMETOOLONG),
    )
    return isinstance(error, OSError) and error.filename is not None and error.errno in codes


def _is_full_output(error: Exception) -> bool:
    """Whether standard output cannot be written to; files opened by name have a filename."""
    codes = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
    return isinstance(error, OSError) and error.filename is None and error.errno in codes


def _is_missing_extra(error: Exception) -> bool:
    return isinstance(error, ImportError) and "pip install" in str(error)


def _unexpected(error: Exception) -> str:
    return f"error: unexpected {type(error).__name__}: {error} (run again with --debug for the traceback)"


def _show_traceback() -> None:
    """Show the traceback of the error being handled, with control characters escaped."""
    for line in traceback.format_exc().rstrip().split("\n"):
        note(line)


def _stop_writing() -> None:
    """Redirect standard output to the null device, so that the flush at exit does not fail again."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, sys.stdout.fileno())
