"""The notebooks run as they stand, cell after cell, and hold no outputs that could fall behind."""

import json
import runpy
import tempfile
from pathlib import Path
from typing import Any

import matplotlib.pyplot
import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))


def _cells(path: Path) -> list[dict[str, Any]]:
    cells: list[dict[str, Any]] = json.loads(path.read_text())["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


def test_there_is_a_notebook_for_each_thing_promised() -> None:
    assert {path.stem for path in NOTEBOOKS} >= {"csv_to_report", "reading_the_schedule", "comparing_with_others"}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_without_a_warning(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "cells.py"
    program.write_text("\n\n".join("".join(cell["source"]) for cell in _cells(path)))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    matplotlib.use("agg")
    runpy.run_path(str(program))
    matplotlib.pyplot.close("all")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_holds_no_outputs(path: Path) -> None:
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in _cells(path))
