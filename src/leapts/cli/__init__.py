"""The command line: a thin layer over the library. Results go to standard output, all else to standard error."""

import os
import signal
from collections.abc import Sequence
from types import FrameType

__all__ = ["main", "run"]


def main() -> None:
    """Run the command line of this process."""
    signal.signal(signal.SIGINT, _interrupt)
    from leapts.cli import app

    app.main()


def run(arguments: Sequence[str]) -> int:
    """Run a command in this process and return its exit code."""
    from leapts.cli import app

    return app.run(arguments)


def _interrupt(_: int, frame: FrameType | None) -> None:
    """End at once during an import, where libraries swallow the interrupt or turn it into an error of their own."""
    while frame is not None:
        if frame.f_globals.get("__name__") == "importlib._bootstrap":
            os.write(2, b"interrupted\n")
            os._exit(130)
        frame = frame.f_back
    raise KeyboardInterrupt
