"""`leapts report`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leapts.cli import options
from leapts.cli.options import shared_options
from leapts.cli.sources import read_for, require_not_input
from leapts.cli.terminal import say, write_json

if TYPE_CHECKING:
    from leapts.data.panel import Panel

EXAMPLE = """\b
Examples:
  leapts report model/ sales.csv -o report.html
  leapts report model/ sales.csv -o report.html --cutoffs 20 --series store_1 --series store_2
"""

Page = Annotated[Path | None, typer.Option("--report", help="HTML file for a report of the forecasts.")]


@shared_options
def report(
    model: options.Model,
    data: options.Data,
    out: Annotated[Path, typer.Option("--out", "-o", help="HTML file to write.")] = Path("report.html"),
    cutoffs: Annotated[
        int | None,
        typer.Option(min=1, help="Number of cutoffs; the last one is the end of the data. [3 to 12, by the size]"),
    ] = None,
    step_size: Annotated[int | None, typer.Option(min=1, help="Steps between cutoffs. [the horizon]")] = None,
    series: Annotated[
        list[str] | None, typer.Option(help="Series to show; may be repeated. [all, up to --max-series]")
    ] = None,
    max_series: Annotated[int, typer.Option(min=1, help="Largest number of series to show.")] = 500,
    level: options.Levels = None,
    title: Annotated[str, typer.Option(help="Title of the page.")] = "LeapTS report",
    threads: options.Threads = 1,
    json: options.Json = False,
) -> None:
    """Write an HTML report: forecasts from several cutoffs, their leaps and their errors."""
    require_page(out)
    require_not_input(out, model=model)
    options.use_threads(threads)
    from leapts import LeapTS
    from leapts.report import write_report
    from leapts.report.collect import LEVELS

    forecaster = LeapTS.load(model)
    panel = read_for(forecaster, data)
    write_report(
        forecaster,
        panel,
        out,
        title=title,
        cutoffs=cutoffs,
        step_size=step_size,
        series=None if series is None else named(panel, series),
        max_series=max_series,
        level=options.parse_levels(level) or LEVELS,
    )
    if json:
        write_json({"model": str(model), "report": str(out), "bytes": out.stat().st_size})
    else:
        say(f"report    {out}")


def require_page(target: Path | None) -> None:
    """Refuse a path where no HTML file can be written; None is accepted."""
    from leapts.data.frames import require_writable

    if target is not None:
        require_writable(target, (".html", ".htm"))


def named(panel: "Panel", series: list[str]) -> list[str | int]:
    """Find series by the text of their names, which may be numbers in the data."""
    by_text = {str(name): name for name in panel.series}
    return [by_text.get(name, name) for name in series]
