"""`leapts evaluate`.

Examples:
  leapts evaluate model/ sales.csv
  leapts evaluate model/ sales.csv --windows 10 --level 80 -o forecasts.csv
"""

from pathlib import Path
from typing import Annotated

import typer

from leapts.cli import options
from leapts.cli.terminal import say, say_files, show_table, write_json

_WINDOWS = "Windows of each series, counted back from the end. [all after the data of the fit]"


@options.shared_options
def evaluate(
    model: options.Model,
    data: options.Data,
    windows: Annotated[int | None, typer.Option(min=1, help=_WINDOWS)] = None,
    step_size: options.StepSize = None,
    level: options.Levels = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="CSV or Parquet file for all forecasts.")] = None,
    escape_formulas: options.EscapeFormulas = False,
    threads: options.Threads = 1,
    json: options.Json = False,
) -> None:
    """Judge a model by newer data: errors, coverage, drift, and whether to calibrate or fit again."""
    from leapts.data.frames import write_frame

    options.require_output(out, data=data, model=model)
    forecaster, panel = options.load(model, data, threads)
    levels = level or [80, 95]
    found = forecaster.evaluate(panel.in_frames_of("pyarrow"), windows, step_size=step_size, level=levels)
    if out is not None:
        write_frame(found.frame, out, escape_formulas=escape_formulas)
    if json:
        write_json({"model": model, **found.to_dict(), "file": out})
        return
    columns = ["model", "MAE", "MASE", "pinball", *(f"inside {level} %" for level in found.coverage)]
    inside = [f"{share:.1%}" for share in found.coverage.values()]
    rows = [[name, errors["mae"], errors["mase"], errors["pinball"]] for name, errors in found.errors.items()]
    show_table(columns, [[*rows[0], *inside], [*rows[1], *(None for _ in inside)]])
    for name, text in found.rows()[-1:]:
        say(f"{name:<9} {text}")
    say_files(forecasts=out)
    say(f"{found.verdict}: {found.reason}")
