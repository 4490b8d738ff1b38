"""Run the pages with printed output, and write output and pictures back into them.

python tools/quickstart.py
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
PAGE = ROOT / "docs" / "quickstart.md"
PICTURES = {"forecast.png": "quickstart-forecast.png", "analysis.png": "quickstart-analysis.png"}
README = ROOT / "README.md"
_EXAMPLE = re.compile(r"```python\n.*?\n```\n\n```text\n.*?```\n", re.DOTALL)
_BLOCKS = re.compile(r"```(python|console)\n(.*?)\n```\n(?:(\n```text\n).*?```\n)?", re.DOTALL)


def main() -> None:
    """Run every block of the quickstart and of the README, in order."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        PAGE.write_text(rewritten(PAGE.read_text(), lambda kind, code: run(kind, code, folder)))
        for made, kept in PICTURES.items():
            shutil.copyfile(folder / made, PAGE.parent / "images" / kept)
        example = _EXAMPLE.search(README.read_text())
        if example is None:
            raise SystemExit("README.md has no Python block followed by its output")
        shown = rewritten(example[0], lambda kind, code: run(kind, code, folder))
        for page in (README, PAGE.parent / "index.md"):
            page.write_text(_EXAMPLE.sub(lambda _: shown, page.read_text(), count=1))


def rewritten(page: str, run: Callable[[str, str], str]) -> str:
    """Page with the output of each command below it, where the page has a `text` block.

    Args:
        page: Markdown.
        run: Given the language of a block and its code, returns the output.
    """

    def with_output(block: re.Match[str]) -> str:
        output = run(block[1], block[2])
        shown = f"{block[3]}{output}```\n" if block[3] else ""
        return f"```{block[1]}\n{block[2]}\n```\n{shown}"

    return _BLOCKS.sub(with_output, page)


def run(kind: str, code: str, folder: Path) -> str:
    """Run a block and return its output, without notes about extras that are not installed.

    Raises:
        SystemExit: When the block fails.
    """
    program = code
    if kind == "python":
        # Each Python block continues those before it, as in a notebook.
        session = folder / ".session.py"
        earlier = session.read_text() if session.exists() else ""
        session.write_text(f"{earlier}{code}\n")
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
