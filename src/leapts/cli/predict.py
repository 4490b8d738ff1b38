"""`leapts predict`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leapts.cli import options
from leapts.cli.frames import records, show_frame
from leapts.cli.options import shared_options
from leapts.cli.sources import read_for, require_not_input
from leapts.cli.terminal import is_terminal, say, write_bytes, write_json
from leapts.errors import ConfigError
from leapts.messages import counted

if TYPE_CHECKING:
    from leapts import LeapTS

EXAMPLE = """\b
Examples:
  leapts predict model/ --level 80,95
  leapts predict model/ newer.csv -o forecast.parquet --trace trace.csv
  leapts predict model/ | head
  leapts predict model/ history/ --engine ray -o forecasts/
"""


@shared_options
def predict(
    model: options.Model,
    data: Annotated[
        str | None,
        typer.Argument(
            metavar="DATA",
            help="History to forecast from: a file, - for standard input, or a data set. [the data of the fit]",
        ),
    ] = None,
    out: Annotated[
        str | None, typer.Option("--out", "-o", help="CSV or Parquet file to write; - for standard output.")
    ] = None,
    level: options.Levels = None,
    trace: Annotated[
        Path | None,
        typer.Option(help="CSV or Parquet file for the trace, one row per leap; or JSON, for Perfetto."),
    ] = None,
    engine: Annotated[
        options.Engine,
        typer.Option(help="Forecast here, or on a Ray cluster, from one folder of Parquet files to another."),
    ] = "local",
    address: options.Address = None,
    partitions: Annotated[
        int | None, typer.Option(min=1, help="Number of partitions with --engine ray. [by files or rows]")
    ] = None,
    escape_formulas: options.EscapeFormulas = False,
    threads: options.Threads = 1,
    json: options.Json = False,
) -> None:
    """Forecast each series. Prints a table to a terminal, and CSV to a pipe."""
    levels = options.parse_levels(level)
    if engine == "ray":
        if data is None or out in (None, "-") or trace is not None:
            raise ConfigError("--engine ray needs DATA and --out, both folders of Parquet files, and no --trace")
        if threads > 1 or escape_formulas:
            raise ConfigError("--engine ray has one core per partition and no CSV; no --threads, --escape-formulas")
        _predict_on_cluster(model, Path(data), Path(str(out)), tuple(levels), address, partitions, as_json=json)
        return
    if address is not None or partitions is not None:
        raise ConfigError("--address and --partitions need --engine ray")
    target = None if out in (None, "-") else Path(str(out))
    _require_files(target, trace, data, model)
    from leapts import LeapTS

    options.use_threads(threads)
    forecaster = LeapTS.load(model)
    forecast, written = _forecast(forecaster, data, target, trace, levels, escape_formulas=escape_formulas)
    if json:
        summary: dict[str, Any] = {"model": str(model), "horizon": forecaster.h, "files": written}
        write_json(summary if target is not None else {**summary, "forecast": records(forecast)})
    elif target is not None:
        for what, path in written.items():
            say(f"{what:<9} {path}")
    elif out == "-" or not is_terminal():
        from leapts.data.frames import csv_bytes

        write_bytes(csv_bytes(forecast, escape_formulas=escape_formulas))
    else:
        show_frame(forecast, rows=5, hint="-o FILE writes all of them")


def _require_files(target: Path | None, trace: Path | None, data: str | None, model: Path) -> None:
    """Refuse output files that cannot be written or would overwrite something."""
    from leapts.data.frames import SUFFIXES, require_writable
    from leapts.report.encode import TRACE_SUFFIXES

    for path, suffixes in ((target, SUFFIXES), (trace, TRACE_SUFFIXES)):
        if path is not None:
            require_writable(path, suffixes)
            require_not_input(path, data=data, model=model)
    if target is not None and trace is not None and target.resolve() == trace.resolve():
        raise ConfigError(f"--out and --trace are both {trace}; choose two files")


def _forecast(
    model: "LeapTS",
    data: str | None,
    target: Path | None,
    trace: Path | None,
    levels: list[int | float],
    *,
    escape_formulas: bool,
) -> tuple[Any, dict[str, str]]:
    """Forecast, write the files that were asked for, and return the forecast and the paths."""
    from leapts.data.frames import write_frame
    from leapts.report.encode import write_trace

    panel = model.fitted_.tail if data is None else read_for(model, data)
    # Arrow keeps dates as dates; pandas has no type for them.
    arrow, level = panel.in_frames_of("pyarrow"), levels or None
    written: dict[str, str] = {}
    if trace is None:
        forecast = model.predict(arrow, level=level)
    else:
        forecast, leaps = model.predict(arrow, level=level, return_trace=True)
    if target is not None:
        written["forecast"] = str(write_frame(forecast, target, escape_formulas=escape_formulas))
    if trace is not None:
        written["trace"] = str(write_trace(leaps, trace, escape_formulas=escape_formulas))
    return forecast, written


def _predict_on_cluster(
    model: Path,
    data: Path,
    out: Path,
    level: tuple[int | float, ...],
    address: str | None,
    partitions: int | None,
    *,
    as_json: bool,
) -> None:
    """Forecast a folder of Parquet files into another with Ray, and show what was done."""
    from leapts.integrations.ray import PartitionForecaster
    from leapts.integrations.ray.forecast import forecast_dataset
    from leapts.integrations.ray.partitions import model_digest, require_independent

    forecaster = PartitionForecaster(str(model.absolute()), level)
    fitted = forecaster.model
    require_independent(fitted)
    done = forecast_dataset(
        data,
        out,
        forecaster,
        columns=(fitted.id_col, fitted.time_col, fitted.target_col),
        partitions=partitions,
        address=address,
        job=(model_digest(model), level),
    )
    if not as_json:
        say(f"forecast  {out}: {counted(done.rows, 'row')} in {counted(done.partitions, 'file')}")
        return
    write_json(
        {
            "model": str(model),
            "horizon": fitted.h,
            "files": {"forecast": str(out)},
            "partitions": done.partitions,
            "rows": done.rows,
            "exchanged": done.exchanged,
        }
    )
