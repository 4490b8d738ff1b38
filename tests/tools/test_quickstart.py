"""Blocks of the quickstart run in their order, with few training steps."""

import re
import runpy
import shlex
from pathlib import Path

import pytest

from leapts.cli import run
from quickstart import PAGE, PICTURES, README, rewritten


def test_every_block_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    session = tmp_path / "session.py"
    done = []

    def follow(kind: str, code: str) -> str:
        if kind == "python":
            session.write_text((session.read_text() if session.exists() else "") + code + "\n")
            runpy.run_path(str(session))
            return ""
        for command in code.splitlines():
            words = shlex.split(command)
            if words[0] != "leapts":
                assert Path(words[-1]).exists(), command
                continue
            short = ["--max-steps", "5"] if words[1] in ("fit", "backtest") else []
            assert run([*words[1:], *short]) == 0, command
            done.append(words[1])
        return ""

    rewritten(PAGE.read_text(), follow)
    assert done == ["fit", "backtest", "predict", "analyse", "report"]
    assert all((tmp_path / made).exists() for made in PICTURES)
    assert (tmp_path / "report.html").exists()


def test_start_page_has_the_example_of_the_readme_and_commands_that_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    start = (PAGE.parent / "index.md").read_text()
    examples = [
        re.findall(r"```python\n.*?```\n\n```text\n.*?```", page, re.DOTALL) for page in (start, README.read_text())
    ]
    assert examples[0] == examples[1] != []
    for command in re.findall(r"^leapts (.*)", start, re.MULTILINE):
        words = shlex.split(command)
        short = ["--max-steps", "5"] if words[0] == "demo" else []
        assert run([*words, *short]) == 0, command
    assert (tmp_path / "leapts-demo" / "report.html").exists()


def test_output_goes_below_its_command() -> None:
    page = "```console\nleapts version\n```\n\n```text\nold\n```\n\nWords.\n\n```python\nx = 1\n```\n"
    assert rewritten(page, lambda kind, code: f"{kind}: {code}\n") == page.replace("old", "console: leapts version")


def test_every_place_for_output_is_filled() -> None:
    assert not re.search(r"```text\n```", PAGE.read_text())
