"""Runs the tutorial and writes what its commands print, and the pictures they make, back into the documentation.

python tools/tutorial.py
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "tutorial.md"
PICTURES = {"forecast.svg": "tutorial-forecast.svg", "analysis.png": "tutorial-analysis.png"}
_BLOCKS = re.compile(r"```(python|console)\n(.*?)\n```\n(?:(\n```text\n).*?```\n)?", re.DOTALL)


def main() -> None:
    """Run every block in a folder of its own, in order."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        PAGE.write_text(rewritten(PAGE.read_text(), lambda kind, code: run(kind, code, folder)))
        for made, kept in PICTURES.items():
            shutil.copyfile(folder / made, PAGE.parent / "images" / kept)


def rewritten(page: str, run: Callable[[str, str], str]) -> str:
    """The page with what its commands print below them, where it has a place for it.

    Args:
        page: The text.
        run: From the language of a block and its code to what it printed.
    """

    def with_output(block: re.Match[str]) -> str:
        output = run(block[1], block[2])
        shown = f"{block[3]}{output}```\n" if block[3] else ""
        return f"```{block[1]}\n{block[2]}\n```\n{shown}"

    return _BLOCKS.sub(with_output, page)


def run(kind: str, code: str, folder: Path) -> str:
    """What a block prints, without the lines that only tell which extras are not there.

    Raises:
        SystemExit: When it fails.
    """
    program = code
    if kind == "python":
        # Each block goes on from those before it, as in one session.
        session = folder / ".session.py"
        done_before = session.read_text() if session.exists() else ""
        session.write_text(f"{done_before}{code}\n")
        program = f"{sys.executable} {session}"
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "100"}
    leapts = f'leapts() {{ {sys.executable} -m leapts "$@"; }}\n'
    done = subprocess.run(
        ["bash", "-ec", leapts + program],
        check=False,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode:
        raise SystemExit(f"{code}\n{done.stdout}")
    lines = [line.rstrip() for line in done.stdout.splitlines()]
    return "".join(f"{line}\n" for line in lines if line and not line.startswith("note: not compared"))


if __name__ == "__main__":
    main()
