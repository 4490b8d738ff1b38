"""Rendering of `docs/reliability.md` from the results of the stress suites."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from leapts.files import write_file
from leapts_bench import results
from leapts_bench.tables.markdown import table
from leapts_qa import mutation
from leapts_qa.suites import SUITES, StressSuite, latest, read

_INTRODUCTION = """\
# Reliability

Stress suites try to break LeapTS with bad data, killed processes, full disks, forged files and adversarial clients.
`make stress` runs the units that are not done and renders this page from `qa/results/stress.jsonl`, which has one line
for each unit with its commit and versions. `make test` runs a short seeded share of every suite (`tests/qa/`); API
fuzzing needs Schemathesis, and the Ray cases need Ray. A failed unit runs again after the repair: the failure stays in
the file, and the table counts it as found and repaired."""


def write_page(folder: Path, target: Path) -> None:
    """Render the page from the results in a folder."""
    write_file(target, f"{page(read(folder))}\n\n{mutation.section(folder)}\n".encode())


def page(lines: Sequence[results.Line]) -> str:
    """Render the stress suites from result lines."""
    parts = [_INTRODUCTION, _overview(lines)]
    for name, suite in SUITES.items():
        parts.append(_section(name, suite, [line for line in lines if line["suite"] == name]))
    return "\n\n".join(parts)


def _overview(lines: Sequence[results.Line]) -> str:
    rows = []
    for name, suite in SUITES.items():
        own = [line for line in lines if line["suite"] == name]
        last = latest(own).values()
        repaired = sum(line["failed"] for line in own) - sum(line["failed"] for line in last)
        rows.append(
            [
                f"[{name}](#{name.lower().replace(' ', '-')})",
                f"{len(last)} of {len(suite.units)}",
                f"{sum(line['cases'] for line in last):,}" + (f" of {suite.goal:,}" if suite.goal else ""),
                f"{sum(line['failed'] for line in last):,}",
                f"{repaired:,}",
            ]
        )
    return table(["suite", "units run", "test cases, of the goal", "failed", "found and repaired"], rows)


def _section(name: str, suite: StressSuite, lines: Sequence[results.Line]) -> str:
    last = list(latest(lines).values())
    parts = [f"## {name[0].upper()}{name[1:]}", suite.property]
    if not last:
        return "\n\n".join([*parts, "Not run yet."])
    ends: Counter[str] = Counter()
    figures: dict[str, float] = {}
    for line in last:
        ends.update(line["ends"])
        for figure, value in line["figures"].items():
            figures[figure] = max(value, figures.get(figure, value))
    rows = [[end, f"{count:,}"] for end, count in ends.most_common()]
    parts.append(table(["result", "cases"], rows))
    if figures:
        parts.append("Maximum: " + ", ".join(f"{value:.3g} {figure}" for figure, value in figures.items()) + ".")
    failures = [message for line in last for message in line["failures"]]
    if failures:
        parts.append("Failed:\n\n" + "\n".join(f"- `{_one_line(message)}`" for message in failures))
    commits = sorted({str(line["commit"])[:9] + (" with changes" if line["changed"] else "") for line in last})
    parts.append(f"Commits {', '.join(commits)}; {sum(line['seconds'] for line in last):,.0f} s in total.")
    return "\n\n".join(parts)


def _one_line(message: str) -> str:
    return " ".join(message.replace("`", "'").split())
