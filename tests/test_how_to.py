"""The Python of every how-to page runs, and its commands have their options."""

import re
import runpy
import shlex
from importlib import resources
from pathlib import Path

import pytest
import typer.main

from leapts.cli.app import app

PAGES = Path(__file__).parents[1] / "docs" / "how-to"
# Packages a page needs, and files its Python writes.
NEEDS = {"hyperparameter-tuning": "optuna", "hugging-face-hub": "huggingface_hub", "experiment-tracking": "tensorboard"}
WRITES = {
    "backtesting": [],
    "anomalies": [],
    "check-a-model": [],
    "covariates": [],
    "prediction-intervals": [],
    "unseen-series": [],
    "zero-shot": ["model"],
    "explain": [],
    "hyperparameter-tuning": ["best.toml", "search.db"],
    "onnx-export": ["model.pt2"],
    "hugging-face-hub": ["weather-model"],
    "experiment-tracking": ["runs"],
    "pandas-polars-pyarrow": [],
    "ensemble": [],
    "knowledge-distillation": [],
}


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (PAGES / f"{page}.md").read_text(), flags=re.DOTALL)


@pytest.mark.usefixtures("unchecked_shapes")
@pytest.mark.parametrize("page", WRITES)
def test_python_of_a_page_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if page in NEEDS:
        pytest.importorskip(NEEDS[page])
    bundled = resources.files("leapts.datasets") / "bundled" / "seattle_weather.csv"
    (tmp_path / "weather.csv").write_bytes(bundled.read_bytes())
    monkeypatch.chdir(tmp_path)
    Path("example.py").write_text("\n".join(blocks(page, "python")))
    runpy.run_path("example.py", run_name="__main__")
    written = sorted(path.name for path in tmp_path.iterdir() if path.name not in ("weather.csv", "example.py"))
    assert written == WRITES[page]


COMMANDS = [
    "anomalies",
    "check-a-model",
    "explain",
    "hyperparameter-tuning",
    "onnx-export",
    "knowledge-distillation",
    "backtesting",
    "prediction-intervals",
]


@pytest.mark.parametrize("page", COMMANDS)
def test_commands_of_a_page_have_their_options(page: str) -> None:
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    lines = [shlex.split(line) for block in blocks(page, "console") for line in block.splitlines()]
    assert lines
    for program, command, *arguments in lines:
        assert program == "leapts"
        known = {name for parameter in commands[command].params for name in parameter.opts}
        assert {argument for argument in arguments if argument.startswith("-")} <= known


def test_links_of_every_page_exist() -> None:
    for page in PAGES.glob("*.md"):
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            assert target.startswith("http") or (page.parent / target).exists(), f"{page.name}: {target}"


def test_every_page_with_python_is_run() -> None:
    # tests/integrations/test_pages.py runs the first five, tests/model/test_registration.py the last.
    elsewhere = {"neuralforecast", "darts", "sktime", "gluonts", "fev", "custom-scheduler"}
    with_python = {page.stem for page in PAGES.glob("*.md") if blocks(page.stem, "python")}
    assert with_python == WRITES.keys() | elsewhere
