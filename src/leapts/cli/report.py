"""`leapts report`.

Examples:
  leapts report model/ sales.csv -o report.html
  leapts report model/ sales.csv -o report.html --cutoffs 20 --series store_1 --series store_2
"""

from pathlib import Path
from typing import Annotated, Any

import typer

from leapts.cli import options
from leapts.cli.terminal import say_files, write_json

_CUTOFFS = "Number of cutoffs; the last one is the end of the data. [3 to 12, by the size]"
_SERIES = "Series to show; may be repeated. [all, up to --max-series]"


@options.shared_options
def report(
    model: options.Model,
    data: options.Data,
    out: Annotated[Path, typer.Option("--out", "-o", help="HTML file to write.")] = Path("report.html"),
    cutoffs: Annotated[int | None, typer.Option(min=1, help=_CUTOFFS)] = None,
    step_size: options.StepSize = None,
    series: Annotated[list[str] | None, typer.Option(help=_SERIES)] = None,
    max_series: Annotated[int, typer.Option(min=1, help="Largest number of series to show.")] = 500,
    level: options.Levels = None,
    title: Annotated[str, typer.Option(help="Title of the page.")] = "LeapTS report",
    threads: options.Threads = 1,
    json: options.Json = False,
) -> None:
    """Write an HTML report: forecasts from several cutoffs, their leaps and their errors."""
    options.require_output(out, options.PAGE_SUFFIXES, model=model)
    forecaster, panel = options.load(model, data, threads)
    from leapts.report import write_report
    from leapts.report.collect import LEVELS

    names = {str(name): name for name in panel.series}  # names may be numbers in the data
    shown = None if series is None else [names.get(name, name) for name in series]
    chosen: dict[str, Any] = {"title": title, "cutoffs": cutoffs, "step_size": step_size, "max_series": max_series}
    write_report(forecaster, panel, out, series=shown, level=level or LEVELS, **chosen)
    if json:
        write_json({"model": model, "report": out, "bytes": out.stat().st_size})
    else:
        say_files(report=out)
