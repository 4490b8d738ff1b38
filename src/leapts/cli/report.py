"""`leapts report`."""

from pathlib import Path
from typing import Annotated

import typer

from leapts.cli import options
from leapts.cli.options import shared_options
from leapts.cli.sources import PAGE, read_for, require_output
from leapts.cli.terminal import say_files, write_json

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
    require_output(out, PAGE, model=model)
    options.use_threads(threads)
    from leapts import LeapTS
    from leapts.report import write_report
    from leapts.report.collect import LEVELS

    forecaster = LeapTS.load(model)
    panel = read_for(forecaster, data)
    names = {str(name): name for name in panel.series}  # names may be numbers in the data
    write_report(
        forecaster,
        panel,
        out,
        title=title,
        cutoffs=cutoffs,
        step_size=step_size,
        series=None if series is None else [names.get(name, name) for name in series],
        max_series=max_series,
        level=options.parse_levels(level) or LEVELS,
    )
    if json:
        write_json({"model": str(model), "report": str(out), "bytes": out.stat().st_size})
    else:
        say_files(report=out)
