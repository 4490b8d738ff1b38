"""The notebooks are stored with their outputs, and a new run gives tables of the same shape."""

import ast
import json
import re
import tempfile
from pathlib import Path
from typing import Any

import matplotlib.pyplot
import pytest

from run_notebooks import KEY, NOTEBOOKS, digest

PICTURES = {"csv_to_report": 1, "reading_the_schedule": 4, "comparing_with_others": 1}


def _notebook(path: Path) -> dict[str, Any]:
    notebook: dict[str, Any] = json.loads(path.read_text())
    return notebook


def _cells(path: Path) -> list[dict[str, Any]]:
    return [cell for cell in _notebook(path)["cells"] if cell["cell_type"] == "code"]


def _shape(html: str) -> tuple[list[str], int]:
    """Headings of a table, and the number of its rows."""
    head, _, body = html.partition("</thead>")
    return re.findall(r"<th[^>]*>(.*?)</th>", head), body.count("<tr")


def test_there_is_a_notebook_for_each_topic() -> None:
    assert {path.stem for path in NOTEBOOKS} == PICTURES.keys()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_outputs_are_stored_and_belong_to_the_code(path: Path) -> None:
    notebook = _notebook(path)
    assert notebook["metadata"][KEY]["sources"] == digest(notebook), "run python tools/run_notebooks.py"
    outputs = [output for cell in _cells(path) for output in cell["outputs"]]
    assert {output["output_type"] for output in outputs} <= {"execute_result", "display_data"}  # no warnings, no errors
    assert sum("image/png" in output["data"] for output in outputs) == PICTURES[path.stem]
    assert [cell["execution_count"] for cell in _cells(path)] == [*range(1, len(_cells(path)) + 1)]


@pytest.mark.slow
@pytest.mark.usefixtures("unchecked_shapes")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_new_run_has_the_stored_tables_and_no_warning(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    matplotlib.use("agg")
    names: dict[str, Any] = {"__name__": "__main__"}
    compared = 0
    for cell in _cells(path):
        code = ast.parse("".join(cell["source"]))
        last = code.body[-1] if isinstance(code.body[-1], ast.Expr) else None
        code.body = code.body[:-1] if last is not None else code.body
        exec(compile(code, str(path), "exec"), names)
        value: Any = None if last is None else eval(compile(ast.Expression(last.value), str(path), "eval"), names)
        for output in cell["outputs"]:
            if "text/html" in output["data"]:
                assert _shape(value._repr_html_()) == _shape("".join(output["data"]["text/html"]))
                compared += 1
    matplotlib.pyplot.close("all")
    assert compared >= 2
