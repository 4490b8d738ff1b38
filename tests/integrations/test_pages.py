"""The example of each how-to page runs."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGES = Path(__file__).parents[2] / "docs" / "how-to"


@pytest.mark.parametrize("tool", ["neuralforecast", "darts", "sktime", "gluonts", "fev"])
def test_the_example_of_the_page_runs(tool: str, tmp_path: Path) -> None:
    pytest.importorskip(tool, reason=f"{tool} is not installed")
    blocks = re.findall(r"```python\n(.*?)```", (PAGES / f"{tool}.md").read_text(), flags=re.DOTALL)
    assert blocks
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(blocks)], check=False, cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
