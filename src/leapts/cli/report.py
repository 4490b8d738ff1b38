"""`leapts report`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leapts.cli import options
from leapts.cli.sources import read_for, require_outside
from leapts.cli.terminal import say, write_json

if TYPE_CHECKING:
    from leapts.data.panel import Panel

EXAMPLE = """\b
Examples:
  leapts report model/ sales.csv -o report.html
  leapts report model/ sales.csv -o report.html --cutoffs 20 --series store_1 --series store_2
"""

Page = Annotated[
    Path | None, typer.Option("--report", help="An HTML file for a report of the forecasts and how they were made.")
]


def report(
    model: options.Model,
    data: options.Data,
    output: Annotated[Path, typer.Option("--output", "-o", help="The HTML file to write.")] = Path("report.html"),
    cutoffs: Annotated[
        int | None,
        typer.Option(min=1, help="How many cutoffs; the last is the end of the data. [3 to 12, as the page has room]"),
    ] = None,
    step_size: Annotated[
        int | None, typer.Option(min=1, help="Steps from one cutoff to the next. [the horizon]")
    ] = None,
    series: Annotated[
        list[str] | None, typer.Option(help="A series to show; may be repeated. [all, up to --most-series]")
    ] = None,
    most_series: Annotated[int, typer.Option(min=1, help="How many series to show at most.")] = 500,
    level: options.Levels = None,
    title: Annotated[str, typer.Option(help="The page's title.")] = "LeapTS report",
    threads: options.Threads = 1,
    config: options.Config = None,  # noqa: ARG001 - read before the others
    json: options.Json = False,
    debug: options.Debug = False,  # noqa: ARG001 - looked at where errors are caught
) -> None:
    """Write a page that shows forecasts from several cutoffs, every leap they were made in, and how good they are."""
    require_page(output)
    require_outside(output, model)
    options.use_threads(threads)
    from leapts import LeapTS
    from leapts.report import write_report
    from leapts.report.contents import LEVELS

    forecaster = LeapTS.load(model)
    panel = read_for(forecaster, data)
    write_report(
        forecaster,
        panel,
        output,
        title=title,
        cutoffs=cutoffs,
        step_size=step_size,
        series=None if series is None else named(panel, series),
        most_series=most_series,
        level=options.whole_levels(level) or LEVELS,
    )
    if json:
        write_json({"model": str(model), "report": str(output), "bytes": output.stat().st_size})
    else:
        say(f"report    {output}")


def require_page(target: Path | None) -> None:
    """Refuses a name no page can be written under; no name is fine."""
    from leapts.data.writing import require_writable

    if target is not None:
        require_writable(target, (".html", ".htm"))


def named(panel: "Panel", series: list[str]) -> list[str | int]:
    """Series as the data call them: the shell knows text alone, but a name may be a number."""
    by_text = {str(name): name for name in panel.series}
    return [by_text.get(name, name) for name in series]
