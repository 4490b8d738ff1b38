"""The command line: a thin layer over the library. Results go to standard output, all else to standard error.

Commands are imported on demand, so that Ctrl-C during the imports ends with one line, too.
"""

import sys
from collections.abc import Sequence

__all__ = ["main", "run"]


def main() -> None:
    """Run the command line of this process."""
    try:
        from leapts.cli import app
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(130)
    app.main()


def run(arguments: Sequence[str]) -> int:
    """Run a command in this process and return its exit code."""
    from leapts.cli import app

    return app.run(arguments)
