"""`leapts detect`.

Examples:
  leapts detect model/ sales.csv
  leapts detect pretrained sales.csv --horizon 24 --alert-rate 0.001 -o scores.csv
"""

from pathlib import Path
from typing import Annotated

import typer

from leapts.cli import options
from leapts.cli.terminal import note, say, say_files, show_table, write_json
from leapts.errors import ConfigError
from leapts.messages import counted

MAX_ROWS = 20  # shown on a terminal
_MODEL = "Model folder written by leapts fit, or the word pretrained."
_HORIZON = "Steps of a window of the pretrained model, from 1 to 1,000."
_RATE = "Share of normal observations that may be marked."
_FDR = "Rate of false discoveries among all that are marked, instead of --alert-rate."
_OUT = "CSV or Parquet file for the p-values of all observations."


@options.shared_options
def detect(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help=_MODEL)],
    data: options.Data,
    alert_rate: Annotated[float, typer.Option(help=_RATE)] = 0.01,
    fdr: Annotated[float | None, typer.Option(help=_FDR)] = None,
    horizon: Annotated[int | None, typer.Option(min=1, max=1000, help=_HORIZON)] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help=_OUT)] = None,
    escape_formulas: options.EscapeFormulas = False,
    threads: options.Threads = 1,
    json: options.Json = False,
) -> None:
    """Find anomalies: observations after the fit, and leaps, that forecasts made improbable."""
    from leapts.data.frames import write_frame

    if (model == Path("pretrained")) != (horizon is not None):
        raise ConfigError("the pretrained model needs --horizon, and only that: leapts detect pretrained --horizon 24")
    options.require_output(out, data=data, model=model)
    forecaster, panel = options.load(model, data, threads, horizon)
    found = forecaster.detect(panel.in_frames_of("pyarrow"), alert_rate=alert_rate, fdr=fdr)
    if out is not None:
        write_frame(found, out, escape_formulas=escape_formulas)
    rows = found.filter(found["anomaly"]).select([*found.column_names[:4], "p_value"]).to_pylist()
    leaps = len({row["leap"] for row in found.filter(found["leap_anomaly"]).to_pylist()})
    if json:
        write_json({"model": model, "observations": len(found), "leaps": leaps, "anomalies": rows, "file": out})
        return
    if rows:
        shown = [list(row.values()) for row in rows[:MAX_ROWS]]
        show_table(list(rows[0]), [[str(name), str(timestamp), *values] for name, timestamp, *values in shown])
    if len(rows) > MAX_ROWS:
        note(f"{MAX_ROWS} of {len(rows):,} anomalies; -o FILE writes the p-values of all observations")
    say_files(scores=out)
    say(f"anomalies: {len(rows):,} of {counted(len(found), 'observation')}, and {counted(leaps, 'leap')}")
