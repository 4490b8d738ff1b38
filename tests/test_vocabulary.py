"""Names and headings use the field's words; coined words that were dropped must not return.

`docs/glossary.md` has the words of the project, and the standard word each of them is not.
"""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
# The dropped word, and what to write instead.
DROPPED = {
    "teachers": "distill_from, knowledge distillation",
    "teaching": "knowledge distillation",
    "taught": "distilled, student",
    "lessons": "distillation targets",
    "pick": "auto config",
    "picks": "auto config",
    "picked": "auto config",
    "strangers": "unseen series, untrusted names, adversarial clients",
    "stamp": "timestamp",
    "stamps": "timestamps",
    "zone": "timezone",
    "zones": "timezones",
    "deviations": "standard deviations",
    "looks": "validation checks",
    "futures": "targets",
    "luck": "noise",
    "light": "inference copy",
    "replay": "traced graph",
    "squash": "tanh",
    "borders": "split boundaries",
    "filling": "imputation",
    "joint": "multivariate",
    "apart": "univariate",
    "variate_identity": "series_embedding",
    "unmoved": "constant series",
    "peers": "baselines",
    "cure": "hint",
    "shelf": "registry",
    "guard": "middleware",
    "intake": "request body",
    "wire": "schemas",
    "waiting": "admission control",
    "doors": "endpoints",
    "lean": "compact variant",
    "settle": "final selection",
    "refine": "local search",
    "kin": "fallback recipe",
    "kills": "crash consistency",
    "campaigns": "stress suites",
    "safe_cells": "escape_formulas",
    "most_series": "max_series",
}
# Flags and fields that are refused as a whole; as part of a longer name they are fine.
DROPPED_PREFIXES = {"MOST_": "MAX_", "FEWEST_": "MIN_", "LARGEST_": "MAX_"}  # of constants
DROPPED_FLAGS = {"--output": "--out", "--season": "--season-length"}
# Still there. An entry goes when its name does; none may be added.
PENDING = frozenset[str]()


def _dropped_words(name: str) -> list[str]:
    """Find dropped words in a name; of `file:name`, only the name is looked at."""
    local = name.split(".md:")[-1].split(".py:")[-1]
    prefixes = [prefix for prefix in DROPPED_PREFIXES if local.startswith(prefix)]
    words = re.sub(r"([a-z])([A-Z])", r"\1 \2", local).lower()
    words = re.sub(r"standard[ _]deviations", "", words)
    whole = re.sub(r"[\W_]+", "_", words).strip("_")
    return prefixes + [word for word in DROPPED if re.search(rf"(?:^|_){word}(?:_|$)", whole)]


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield name
            yield from _leaves(inner)
    else:
        yield from value


def interface_names() -> set[str]:
    """Exports, options, methods, flags and JSON fields, as stored in public_api.toml."""
    return set(_leaves(tomllib.loads((ROOT / "tests" / "public_api.toml").read_text())))


def module_names() -> set[str]:
    """Files of the library, and the public names each of them defines."""
    source, found = ROOT / "src", set()
    for path in (source / "leapts").rglob("*.py"):
        place = str(path.relative_to(source))
        found |= {place} | {f"{place}:{name}" for name in _public_names(ast.parse(path.read_text()))}
    return found


def _public_names(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names = [node.name]
        elif isinstance(node, ast.Assign):
            names = [target.id for target in node.targets if isinstance(target, ast.Name)]
        else:
            names = []
        yield from (name for name in names if not name.startswith("_"))


def headings() -> set[str]:
    """Names and headings of the pages, each with its file."""
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    found = {str(page.relative_to(ROOT)) for page in pages}
    for page in pages:
        lines = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL).splitlines()
        name = page.relative_to(ROOT)
        found |= {f"{name}:{line.lstrip('# ').replace(' ', '_')}" for line in lines if line.startswith("#")}
    return found


NAMES = {"interface": interface_names, "modules": module_names, "pages": headings}


@pytest.mark.parametrize("kind", NAMES)
def test_no_dropped_word_is_used(kind: str) -> None:
    found = {name: _dropped_words(name) for name in NAMES[kind]() - PENDING}
    advice = {
        name: {word: (DROPPED | DROPPED_PREFIXES)[word] for word in words} for name, words in found.items() if words
    }
    assert advice == {}


def test_no_dropped_flag_is_used() -> None:
    assert interface_names() & DROPPED_FLAGS.keys() - PENDING == set()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("picked_", ["picked"]),
        ("--safe-cells", ["safe_cells"]),
        ("SafeCells", ["safe_cells"]),
        ("MOST_NAMES", ["MOST_"]),
        ("timestamp", []),
        ("standard_deviations", []),
        ("lightning", []),
    ],
)
def test_words_are_found_in_any_spelling(name: str, words: list[str]) -> None:
    assert _dropped_words(name) == words
