"""Results of mutation testing with mutmut, whose settings are in `pyproject.toml`; `make mutation` runs it."""

import json
import tomllib
from importlib.metadata import version
from pathlib import Path

from leapts_bench import results

FILE = "mutation.jsonl"
_TEXT = """\
## Mutation testing

Mutation testing changes the code in small ways and counts the changes that a test notices. `make mutation` runs
[mutmut](https://mutmut.readthedocs.io) on the modules and tests that `[tool.mutmut]` in `pyproject.toml` names.
`.venv/bin/mutmut run 'leapts.data.windows.*'` takes one module, and records nothing."""


def record(root: Path, folder: Path) -> results.Line:
    """Append the counts of the last `mutmut export-cicd-stats` to the results."""
    counts = json.loads((root / "mutants" / "mutmut-cicd-stats.json").read_text())
    settings = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["mutmut"]
    line = {"modules": settings["only_mutate"], "mutmut": version("mutmut"), **counts, **results.provenance()}
    results.append(folder / FILE, line)
    return line


def section(folder: Path) -> str:
    """Render the last result."""
    lines = results.read(folder / FILE)
    if not lines:
        return f"{_TEXT}\n\nNot run yet."
    last = lines[-1]
    modules = " and ".join(f"`{name}`" for name in last["modules"])
    return (
        f"{_TEXT}\n\nOf {last['total']:,} changes of {modules}, {last['killed'] + last['timeout']:,} were noticed "
        f"({(last['killed'] + last['timeout']) / last['total']:.1%}), {last['survived']:,} were not, and "
        f"{last['no_tests']:,} are in functions that these tests do not call. mutmut {last['mutmut']}, commit "
        f"{str(last['commit'])[:9]}."
    )
