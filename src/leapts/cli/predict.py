"""`leapts predict`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from leapts.cli import options
from leapts.cli.frames import records, show_frame
from leapts.cli.sources import read_for, require_apart, require_outside
from leapts.cli.terminal import is_terminal, say, write_bytes, write_json
from leapts.errors import ConfigError
from leapts.wording import counted

EXAMPLE = """\b
Examples:
  leapts predict model/ --level 80 --level 95
  leapts predict model/ newer.csv -o forecast.parquet --trace trace.csv
  leapts predict model/ | head
  leapts predict model/ history/ --engine ray -o forecasts/
"""


def predict(
    model: options.Model,
    data: Annotated[
        str | None,
        typer.Argument(
            metavar="DATA",
            help="History to forecast from: a file, - for standard input, or a data set. [the data of the fit]",
        ),
    ] = None,
    output: Annotated[
        str | None, typer.Option("--output", "-o", help="A CSV or Parquet file to write; - for standard output.")
    ] = None,
    level: options.Levels = None,
    trace: Annotated[
        Path | None,
        typer.Option(help="A CSV or Parquet file for the trace, one row for each leap; or JSON, for Perfetto."),
    ] = None,
    engine: Annotated[
        options.Engine,
        typer.Option(help="Where to work: here, or on a Ray cluster, from a folder of Parquet files to another."),
    ] = "local",
    address: options.Address = None,
    partitions: Annotated[
        int | None, typer.Option(min=1, help="How many parts an engine works in. [the files, or by the rows]")
    ] = None,
    safe_cells: options.SafeCells = False,
    threads: options.Threads = 1,
    config: options.Config = None,  # noqa: ARG001 - read before the others
    json: options.Json = False,
    debug: options.Debug = False,  # noqa: ARG001 - looked at where errors are caught
) -> None:
    """Forecast what follows each series. Prints a table to a terminal, and CSV to a pipe."""
    if engine == "ray":
        if data is None or output in (None, "-") or trace is not None:
            raise ConfigError(
                "--engine ray forecasts a folder of Parquet files into another: give DATA and -o FOLDER, and no --trace"
            )
        if threads > 1 or safe_cells:
            raise ConfigError(
                "with --engine ray each part has one processor and writes Parquet; leave out --threads, --safe-cells"
            )
        levels = tuple(options.whole_levels(level))
        done = predict_folder(model, Path(data), Path(str(output)), levels, address=address, partitions=partitions)
        if json:
            write_json(done)
        else:
            say(f"forecast  {output}: {done['rows']:,} rows in {counted(done['partitions'], 'file')}")
        return
    if address is not None or partitions is not None:
        raise ConfigError("--address and --partitions go with --engine ray; leave them out, or add it")
    from leapts import LeapTS
    from leapts.data.writing import csv_bytes, require_writable, write_frame
    from leapts.report.exports import TRACE_SUFFIXES, write_trace

    target = None if output in (None, "-") else Path(str(output))
    if target is not None:
        require_writable(target)
        require_apart(target, data)
        require_outside(target, model)
    if trace is not None:
        require_writable(trace, TRACE_SUFFIXES)
        require_apart(trace, data)
        require_outside(trace, model)
        if target is not None and target.resolve() == trace.resolve():
            raise ConfigError(f"--output and --trace are both {trace}; give each a file of its own")
    options.use_threads(threads)
    forecaster = LeapTS.load(model)
    panel = forecaster.fitted_.tail if data is None else read_for(forecaster, data)
    # Arrow has dates, and pandas has none; files and pages are to have them where the data had.
    result = forecaster.predict(
        panel.in_frames_of("pyarrow"), level=options.whole_levels(level) or None, return_trace=trace is not None
    )
    forecast, leaps = result if trace is not None else (result, None)

    written: dict[str, str] = {}
    if target is not None:
        written["forecast"] = str(write_frame(forecast, target, safe_cells=safe_cells))
    if trace is not None:
        written["trace"] = str(write_trace(leaps, trace, safe_cells=safe_cells))
    if json:
        summary: dict[str, Any] = {"model": str(model), "horizon": forecaster.h, "files": written}
        write_json(summary if target is not None else {**summary, "forecast": records(forecast)})
    elif target is not None:
        for what, path in written.items():
            say(f"{what:<9} {path}")
    elif output == "-" or not is_terminal():
        write_bytes(csv_bytes(forecast, safe_cells=safe_cells))
    else:
        show_frame(forecast, rows=5, hint="-o FILE writes them all")


def predict_folder(
    model: Path,
    data: Path,
    out: Path,
    level: tuple[int | float, ...],
    *,
    address: str | None,
    partitions: int | None,
) -> dict[str, Any]:
    """Forecast a folder of Parquet files into another with Ray, and sum up what was done."""
    from leapts.scaleout import PartitionForecaster
    from leapts.scaleout.partitions import model_digest, require_independent
    from leapts.scaleout.with_ray import forecast_dataset

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
    return {
        "model": str(model),
        "horizon": fitted.h,
        "files": {"forecast": str(out)},
        "partitions": done.partitions,
        "rows": done.rows,
        "exchanged": done.exchanged,
    }
