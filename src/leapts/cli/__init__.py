"""The command line: thin front doors to the library. Results go to standard output, all else to standard error."""

from leapts.cli.app import main, run

__all__ = ["main", "run"]
