"""Run the example notebooks and store their outputs in them.

python tools/run_notebooks.py      needs: pip install nbclient ipykernel
"""

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

NOTEBOOKS = sorted((Path(__file__).parents[1] / "examples").glob("*.ipynb"))
KEY = "leapts"  # of the digest in the metadata of a notebook


def main() -> None:
    """Run every notebook in an empty folder."""
    import nbformat
    from nbclient import NotebookClient

    os.environ["OMP_NUM_THREADS"] = "1"
    for path in NOTEBOOKS:
        notebook = nbformat.read(path, as_version=4)
        with tempfile.TemporaryDirectory() as folder:
            place = {"metadata": {"path": folder}}
            NotebookClient(notebook, kernel_name="python3", resources=place, record_timing=False).execute()
        for cell in notebook.cells:
            if cell.cell_type == "code":  # without the lines of progress, which are empty in the end
                cell.outputs = [one for one in cell.outputs if one.get("data", one).get("text/html") != ""]
        kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
        notebook.metadata = {"kernelspec": kernel, KEY: {"sources": digest(notebook)}}
        nbformat.write(notebook, path)
        print(path.name)


def digest(notebook: Mapping[str, Any]) -> str:
    """Compute the digest of all code, to tell whether the outputs belong to it."""
    sources = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    return hashlib.sha256(json.dumps(sources).encode()).hexdigest()


if __name__ == "__main__":
    main()
