"""Faults are found where they can be, put in one at a time, and believed to be noticed only when a test fails."""

import ast
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from leapts_bench.mutation.mutants import Mutant, changed, mutants_of
from leapts_bench.mutation.summary import section
from leapts_bench.mutation.targets import TARGETS, Target
from leapts_bench.mutation.trying import NOT_RUN, SURVIVED, try_all

SOURCE = '''
"""Words."""
LIMIT = 3

def clipped(x: int | None, low: int = 0) -> int:
    """At most three."""
    if x > LIMIT and True:
        raise_it = f"{x + 1}" + "words"
        return LIMIT
    return max(low, x)

class Unused:
    def grow(self) -> None:
        self.size = 1
        self.size += 1
        print(not self)
'''
CHANGES = {
    "`3` becomes `4`",
    "`0` becomes `1`",
    "`if x > LIMIT and True:` becomes `if not (x > LIMIT and True):`",
    "`x > LIMIT and True` becomes `x > LIMIT or True`",
    "`x > LIMIT` becomes `x >= LIMIT`",
    "`True` becomes `False`",
    "`return LIMIT` becomes `return None`",
    "`return max(low, x)` becomes `return None`",
    "`self.size = 1` left out",
    "`1` becomes `2`",
    "`self.size += 1` left out",
    "`print(not self)` left out",
    "`not self` becomes `self`",
}
TESTS = """
from words import clipped

def test_clipped():
    assert [clipped(x) for x in (-1, 2, 3, 4)] == [0, 2, 3, 3]
"""


def test_code_is_changed_but_not_words_and_types() -> None:
    mutants = mutants_of(SOURCE)
    assert {mutant.what for mutant in mutants} == CHANGES
    assert len({mutant.key for mutant in mutants}) == len(mutants)
    texts = {ast.unparse(changed(SOURCE, mutant.number)) for mutant in mutants}
    assert len(texts | {ast.unparse(ast.parse(SOURCE))}) == len(mutants) + 1


def test_a_change_keeps_its_key_when_other_functions_change() -> None:
    keys = [mutant.key for mutant in mutants_of(SOURCE)]
    moved = [mutant.key for mutant in mutants_of(SOURCE.replace("LIMIT = 3", "OTHER = 5\nLIMIT = 3"))]
    assert set(keys) < set(moved)
    other = {mutant.key for mutant in mutants_of(SOURCE.replace("max(low, x)", "max(x, low)"))}
    assert {key.split()[0] for key in set(keys) - other} == {"clipped"}


@pytest.fixture
def target(tmp_path: Path) -> Target:
    (tmp_path / "src" / "leapts").mkdir(parents=True)
    (tmp_path / "tests").mkdir()
    (tmp_path / "pytest.ini").write_text("[pytest]\npythonpath = src/leapts\n")
    (tmp_path / "src" / "leapts" / "words.py").write_text(SOURCE)
    (tmp_path / "tests" / "test_clipped.py").write_text(TESTS)
    return Target("words.py", ("test_clipped.py",), root=tmp_path)


def _tried(target: Target, tmp_path: Path, mutants: Sequence[Mutant] | None = None) -> dict[str, str]:
    """What became of each change; told from other processes, so through a file."""
    told = tmp_path / "told"
    told.touch()

    def found(mutant: object, verdict: str) -> None:
        with told.open("a") as file:
            file.write(f"{getattr(mutant, 'what', '')}|{verdict}\n")

    try_all(target, mutants_of(SOURCE) if mutants is None else mutants, found)
    return dict(line.rsplit("|", 1) for line in told.read_text().splitlines())


def test_a_fault_is_noticed_where_a_test_fails_and_only_there(target: Target, tmp_path: Path) -> None:
    verdicts = _tried(target, tmp_path)
    unused = {what for what in CHANGES if "self" in what or what == "`1` becomes `2`"}
    assert verdicts.keys() == CHANGES
    assert {what for what, verdict in verdicts.items() if verdict == NOT_RUN} == unused
    assert [what for what, verdict in verdicts.items() if verdict == SURVIVED] == ["`x > LIMIT` becomes `x >= LIMIT`"]
    assert set(verdicts.values()) == {NOT_RUN, SURVIVED, "tests/test_clipped.py::test_clipped"}


def test_what_all_tests_share_is_made_once_and_kept_for_every_fault(target: Target, tmp_path: Path) -> None:
    made = tmp_path / "made"
    shared = f"""
import pytest

@pytest.fixture(scope="session")
def shared():
    with open({str(made)!r}, "a") as file:
        file.write("once")

@pytest.mark.parametrize("low", [0, 1])
def test_shared(shared, low):
    assert clipped(-1, low) == low
"""
    (tmp_path / "tests" / "test_clipped.py").write_text(f"{TESTS}{shared}")
    mutants = [mutant for mutant in mutants_of(SOURCE) if mutant.in_function]
    verdicts = _tried(replace(target, first="test_shared"), tmp_path, mutants)
    assert len(verdicts) == len({mutant.what for mutant in mutants})
    assert made.read_text() == "once"


@pytest.mark.parametrize("kind", ["failing", "none"])
def test_tests_that_fail_by_themselves_or_are_missing_notice_nothing(kind: str, target: Target, tmp_path: Path) -> None:
    tests = TESTS.replace("-1, 2", "-1, 1") if kind == "failing" else ""
    (tmp_path / "tests" / "test_clipped.py").write_text(tests)
    with pytest.raises(RuntimeError, match=r"words\.py, without a fault"):
        _tried(target, tmp_path)


def test_the_page_counts_what_is_still_in_the_code_and_judges_what_was_not_noticed() -> None:
    target = TARGETS[0]
    mutants = mutants_of(target.source.read_text())
    lines = [
        {"module": target.module, "key": mutant.key, "place": mutant.place, "what": mutant.what, "noticed": noticed}
        | {"by": "a test" if noticed else SURVIVED}
        for mutant, noticed in [(mutants[0], False), (mutants[0], True), (mutants[1], False)]
    ]
    gone = {**lines[0], "key": "of a function that is gone"}
    text = section([*lines, gone])
    assert f"| `{target.module}` | 2 of {len(mutants)} | 1 | 50.0 % |" in text
    assert text.count(f"- `{target.module}`") == 1
    assert f"{mutants[1].what}: not judged" in text
