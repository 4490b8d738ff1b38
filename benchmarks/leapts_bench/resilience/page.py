"""`docs/reliability.md` from the results file."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from leapts.files import write_file
from leapts_bench import results
from leapts_bench.markdown import table
from leapts_bench.mutation import summary as mutation
from leapts_bench.resilience.campaigns import CAMPAIGNS, FILE, Campaign, latest

_INTRODUCTION = """\
# Reliability

What was done to LeapTS to break it, and how it ended. Every figure comes from `benchmarks/results/resilience.jsonl`,
which has a line for each unit with its commit and versions. `make resilience` does what is not done yet and renders
this page; a short seeded share of every campaign runs with `make test` (`tests/resilience/`), of made-up requests
where Schemathesis is installed and of listening engines where Ray is. A unit that failed is done again once the fault
is repaired: what had failed stays in the file, and is counted below as found and repaired."""


def write_page(folder: Path, target: Path) -> None:
    """Render the page."""
    lines, faults = (results.read(folder / file) for file in (FILE, mutation.FILE))
    write_file(target, page(lines, faults).encode())


def page(lines: Sequence[results.Line], faults: Sequence[results.Line]) -> str:
    """The page for these lines of the campaigns, and these of the faults put into the code."""
    parts = [_INTRODUCTION, _overview(lines)]
    for name, campaign in CAMPAIGNS.items():
        parts.append(_section(name, campaign, [line for line in lines if line["campaign"] == name]))
    return "\n\n".join([*parts, mutation.section(faults)]) + "\n"


def _overview(lines: Sequence[results.Line]) -> str:
    rows = []
    for name, campaign in CAMPAIGNS.items():
        own = [line for line in lines if line["campaign"] == name]
        last = latest(own).values()
        repaired = sum(line["failed"] for line in own) - sum(line["failed"] for line in last)
        rows.append(
            [
                f"[{name}](#{name.replace(' ', '-')})",
                f"{len(last)} of {len(campaign.units)}",
                f"{sum(line['cases'] for line in last):,}" + (f" of {campaign.goal:,}" if campaign.goal else ""),
                f"{sum(line['failed'] for line in last):,}",
                f"{repaired:,}",
            ]
        )
    return table(["campaign", "units run", "cases tried, of those meant", "failed", "found and repaired"], rows)


def _section(name: str, campaign: Campaign, lines: Sequence[results.Line]) -> str:
    last = list(latest(lines).values())
    parts = [f"## {name.capitalize()}", campaign.law]
    if not last:
        return "\n\n".join([*parts, "Not run yet."])
    ends: Counter[str] = Counter()
    figures: dict[str, float] = {}
    for line in last:
        ends.update(line["ends"])
        for figure, value in line["figures"].items():
            figures[figure] = max(value, figures.get(figure, value))
    rows = [[end, f"{count:,}"] for end, count in ends.most_common()]
    parts.append(table(["how the cases ended", "cases"], rows))
    if figures:
        parts.append("At the most: " + ", ".join(f"{value:.3g} {figure}" for figure, value in figures.items()) + ".")
    failures = [message for line in last for message in line["failures"]]
    if failures:
        parts.append("Failed:\n\n" + "\n".join(f"- `{_one_line(message)}`" for message in failures))
    commits = sorted({str(line["commit"])[:9] + (" with changes" if line["changed"] else "") for line in last})
    parts.append(f"At {', '.join(commits)}, in {sum(line['seconds'] for line in last):,.0f} s.")
    return "\n\n".join(parts)


def _one_line(message: str) -> str:
    return " ".join(message.replace("`", "'").split())
