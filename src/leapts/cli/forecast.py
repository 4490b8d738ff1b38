"""`leapts forecast`.

Examples:
  leapts forecast sales.csv --horizon 28
  leapts forecast sales.csv --horizon 28 --level 80,95 -o forecast.csv --trace leaps.csv
  leapts forecast sales.csv --horizon 28 -o forecast.csv --report report.html
"""

from pathlib import Path
from typing import Annotated

import typer

from leapts.cli import options
from leapts.cli.predict import forecast_files, require_files, show_answer

_HORIZON = "Steps to forecast, from 1 to 1,000."
_OUT = "CSV or Parquet file to write; - for standard output."
_TRACE = "CSV or Parquet file for the trace, one row per leap; or JSON, for Perfetto."


@options.shared_options
def forecast(
    data: options.Data,
    horizon: Annotated[int, typer.Option(min=1, max=1000, help=_HORIZON)],
    pretrained: options.Pretrained,
    out: Annotated[str | None, typer.Option("--out", "-o", help=_OUT)] = None,
    level: options.Levels = None,
    quantile: options.Quantiles = None,
    trace: Annotated[Path | None, typer.Option(help=_TRACE)] = None,
    page: options.Page = None,
    escape_formulas: options.EscapeFormulas = False,
    json: options.Json = False,
) -> None:
    """Forecast each series at once with the pretrained model; nothing is trained."""
    target = None if out in (None, "-") else Path(str(out))
    require_files(target, trace, data)
    options.require_output(page, options.PAGE_SUFFIXES, data=data)
    model, panel = pretrained(data, horizon)
    asked = {"level": level or None, "quantiles": quantile or None}
    answer = forecast_files(model, panel, asked, target, trace, escape_formulas=escape_formulas)
    if page is not None:
        from leapts.report import write_report
        from leapts.report.collect import LEVELS

        answer.files["report"] = write_report(model, panel, page, level=level or LEVELS)
    show_answer(answer, {"model": "pretrained"}, out, json=json, escape_formulas=escape_formulas)
