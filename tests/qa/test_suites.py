"""The command line of the stress suites, and results under earlier names."""

import ast
from pathlib import Path

import pytest

from leapts.errors import ConfigError
from leapts_bench import results
from leapts_qa import suites
from leapts_qa.__main__ import main
from leapts_qa.history import SUITES_BEFORE, as_now
from leapts_qa.outcome import Outcome
from leapts_qa.suites import SUITES, StressSuite, commits_since, latest, read, run_pending

ROOT = Path(__file__).parents[2]
BEFORE = {"campaign": "kills", "unit": "save", "cases": 2, "ends": {"caught": 2}, "failed": 0, "failures": []}


def test_every_stored_result_belongs_to_a_suite_of_today() -> None:
    done = latest(read(ROOT / "qa" / "results"))
    assert {name for name, _ in done} == set(SUITES)
    assert all((name, unit) in done for name, suite in SUITES.items() for unit in suite.units)


def test_earlier_names_are_translated() -> None:
    line = as_now({**BEFORE, "figures": {"looks": 3}})
    assert (line["suite"], line["ends"], line["figures"]) == (
        "crash consistency",
        {"detected": 2},
        {"checks of the open ports": 3},
    )
    assert as_now(line) is line
    assert set(SUITES_BEFORE.values()) <= set(SUITES)


def test_the_page_is_that_of_the_results(tmp_path: Path) -> None:
    assert main(["page", "--out", str(tmp_path / "page.md")]) == 0
    assert (tmp_path / "page.md").read_text() == (ROOT / "docs" / "reliability.md").read_text()


def test_only_units_that_are_not_done_or_failed_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []

    def run(unit: str, folder: Path) -> Outcome:
        tried.append(unit)
        assert folder.is_dir()
        outcome = Outcome()
        outcome.count("fine") if tried.count(unit) > 1 or unit == "one" else outcome.fail("broken")
        return outcome

    monkeypatch.setattr(suites, "SUITES", {"small": StressSuite("It holds.", ("one", "two"), run, 0)})
    assert run_pending([], tmp_path, seconds=60, tell=lambda _: None) == 1
    assert run_pending([], tmp_path, seconds=60, tell=lambda _: None) == 0
    assert run_pending([], tmp_path, seconds=60, tell=lambda _: None) == 0
    assert tried == ["one", "two", "two"]
    assert len(results.read(tmp_path / suites.FILE)) == 3


def test_units_of_earlier_commits_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []

    def run(unit: str, folder: Path) -> Outcome:  # noqa: ARG001
        tried.append(unit)
        outcome = Outcome()
        outcome.count("fine")
        return outcome

    monkeypatch.setattr(suites, "SUITES", {"small": StressSuite("It holds.", ("one", "two"), run, 0)})
    old = {"suite": "small", "unit": "one", **Outcome().to_line(), "seconds": 1, "commit": "0" * 40}
    results.append(tmp_path / suites.FILE, old)
    current = commits_since("HEAD")
    for _ in range(2):
        assert run_pending([], tmp_path, seconds=60, tell=lambda _: None, current=current) == 0
    assert tried == ["one", "two"]


def test_commits_since_one_are_those_on_top_of_it() -> None:
    latest_commit = results.provenance()["commit"]
    assert commits_since("HEAD") == {latest_commit}
    with pytest.raises(ConfigError, match="'nowhere'"):
        commits_since("nowhere")


def test_an_unknown_suite_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"'kills'.*crash consistency"):
        run_pending(["kills"], tmp_path, seconds=1, tell=print)


def test_the_benchmarks_do_not_import_the_stress_suites() -> None:
    for path in (ROOT / "benchmarks").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom):
                assert not (node.module or "").startswith("leapts_qa"), path
            elif isinstance(node, ast.Import):
                assert not any(name.name.startswith("leapts_qa") for name in node.names), path
