"""`leapts predict`."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leapts.cli import options
from leapts.cli.options import shared_options
from leapts.cli.sources import read_for, require_output
from leapts.cli.terminal import is_terminal, note, say, say_files, show_table, write_bytes, write_json
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
MAX_SERIES, MAX_ROWS = 8, 5  # shown on a terminal


@shared_options
def predict(
    model: options.Model,
    data: Annotated[
        str | None,
        typer.Argument(metavar="DATA", help="History: a file, - for standard input, or a data set. [data of the fit]"),
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
        if threads > 1 or escape_formulas or trace is not None:
            raise ConfigError("--engine ray has no --trace, --threads or --escape-formulas; leave them out")
        _predict_on_cluster(model, data, out, tuple(levels), address, partitions, as_json=json)
        return
    if address is not None or partitions is not None:
        raise ConfigError("--address and --partitions need --engine ray")
    from leapts.data.frames import SUFFIXES, csv_bytes, write_frame
    from leapts.forecasting.estimator import LeapTS
    from leapts.report.encode import TRACE_SUFFIXES, write_trace

    target = None if out in (None, "-") else Path(str(out))
    for file, suffixes in ((target, SUFFIXES), (trace, TRACE_SUFFIXES)):
        if file is not None:
            require_output(file, suffixes, data=data, model=model)
    if target and trace and target.resolve() == trace.resolve():
        raise ConfigError(f"--out and --trace are both {trace}; choose two files")
    options.use_threads(threads)
    forecaster = LeapTS.load(model)
    forecast, leaps = _forecast(forecaster, data, levels, with_trace=trace is not None)
    outputs = (("forecast", write_frame, forecast, target), ("trace", write_trace, leaps, trace))
    written = {what: str(write(one, to, escape_formulas=escape_formulas)) for what, write, one, to in outputs if to}
    if json:
        summary: dict[str, Any] = {"model": str(model), "horizon": forecaster.h, "files": written}
        write_json(summary if target is not None else {**summary, "forecast": _records(forecast)})
    elif target is not None:
        say_files(**written)
    elif out == "-" or not is_terminal():
        write_bytes(csv_bytes(forecast, escape_formulas=escape_formulas))
    else:
        show_forecast(forecast)


def _forecast(model: "LeapTS", data: str | None, levels: list[int | float], *, with_trace: bool) -> tuple[Any, Any]:
    """Return the forecast and, on request, the trace."""
    panel = model.predictor_.tail if data is None else read_for(model, data)
    # Arrow keeps dates as dates; pandas has no type for them.
    arrow, level = panel.in_frames_of("pyarrow"), levels or None
    if with_trace:
        forecast, leaps = model.predict(arrow, level=level, return_trace=True)
        return forecast, leaps
    return model.predict(arrow, level=level), None


def _records(frame: Any) -> list[dict[str, Any]]:
    """Convert a frame to a list of rows, each a mapping of plain values."""
    import narwhals as nw

    rows: list[dict[str, Any]] = nw.from_native(frame, eager_only=True).to_arrow().to_pylist()
    return rows


def show_forecast(frame: Any) -> None:
    """Show the first rows of the first series; a note counts the others."""
    import narwhals as nw

    every = nw.from_native(frame, eager_only=True)
    columns = every.columns
    first = every[columns[0]].unique(maintain_order=True).head(MAX_SERIES)
    seen: Counter[Any] = Counter()
    shown = []
    for record in _records(every.filter(nw.col(columns[0]).is_in(first)).to_native()):
        name, timestamp, *values = record.values()
        seen[name] += 1
        if seen[name] <= MAX_ROWS:
            # Names and timestamps that are numbers have no thousands separator: 2025, not 2,025.
            shown.append([str(name), str(timestamp), *values])
    # Bounds are shown without the name of the forecast: `LeapTS`, `lo-80`, `hi-80`.
    show_table([name.removeprefix(f"{columns[2]}-") for name in columns], shown)
    if len(shown) < len(every):
        note(f"{len(shown):,} of {len(every):,} rows; -o FILE writes all of them")


def _predict_on_cluster(
    model: Path,
    data: str | None,
    out: str | None,
    level: tuple[int | float, ...],
    address: str | None,
    partitions: int | None,
    *,
    as_json: bool,
) -> None:
    """Forecast a folder of Parquet files into another with Ray, and print the number of rows."""
    if data is None or out is None or out == "-":
        raise ConfigError("--engine ray needs DATA and --out, both folders of Parquet files")
    from leapts.integrations.ray import PartitionForecaster
    from leapts.integrations.ray.forecast import forecast_dataset
    from leapts.integrations.ray.partitions import model_digest, require_independent

    forecaster = PartitionForecaster(str(model.absolute()), level)
    fitted = forecaster.model
    require_independent(fitted)
    columns, job = (fitted.id_col, fitted.time_col, fitted.target_col), (model_digest(model), level)
    done = forecast_dataset(
        Path(data), Path(out), forecaster, columns=columns, partitions=partitions, address=address, job=job
    )
    if not as_json:
        say(f"forecast  {out}: {counted(done.rows, 'row')} in {counted(done.partitions, 'file')}")
        return
    counts = {"partitions": done.partitions, "rows": done.rows, "exchanged": done.exchanged}
    write_json({"model": str(model), "horizon": fitted.h, "files": {"forecast": str(out)}, **counts})
