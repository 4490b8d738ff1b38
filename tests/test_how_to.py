"""The how-to pages tell the truth: their Python runs, and their commands exist."""

import re
import runpy
import shlex
from importlib import resources
from pathlib import Path

import pytest
import typer.main

from leapts.cli.app import app

PAGES = Path(__file__).parents[1] / "docs" / "how-to"
# What a page needs, and what running it leaves behind.
NEEDS = {"tune": "optuna", "hub": "huggingface_hub", "tracking": "tensorboard"}
LEAVES = {
    "tune": ["best.toml", "search.db"],
    "export": ["model.pt2"],
    "hub": ["weather-model"],
    "tracking": ["runs"],
    "frames": [],
    "means": [],
    "teaching": [],
}


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (PAGES / f"{page}.md").read_text(), flags=re.DOTALL)


@pytest.mark.usefixtures("unchecked_shapes")
@pytest.mark.parametrize("page", LEAVES)
def test_the_python_of_a_page_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if page in NEEDS:
        pytest.importorskip(NEEDS[page])
    bundled = resources.files("leapts.data") / "bundled" / "seattle_weather.csv"
    (tmp_path / "weather.csv").write_bytes(bundled.read_bytes())
    monkeypatch.chdir(tmp_path)
    (example,) = blocks(page, "python")
    Path("example.py").write_text(example)
    runpy.run_path("example.py", run_name="__main__")
    left = sorted(path.name for path in tmp_path.iterdir() if path.name not in ("weather.csv", "example.py"))
    assert left == LEAVES[page]


@pytest.mark.parametrize("page", ["tune", "export", "teaching"])
def test_the_commands_of_a_page_have_their_options(page: str) -> None:
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    lines = [shlex.split(line) for block in blocks(page, "console") for line in block.splitlines()]
    assert lines
    for program, command, *arguments in lines:
        assert program == "leapts"
        known = {name for parameter in commands[command].params for name in parameter.opts}
        assert {argument for argument in arguments if argument.startswith("-")} <= known


def test_every_page_links_somewhere_that_exists() -> None:
    for page in PAGES.glob("*.md"):
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            assert target.startswith("http") or (page.parent / target).exists(), f"{page.name}: {target}"
