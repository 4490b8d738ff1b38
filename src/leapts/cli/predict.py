"""`leapts predict`.

Examples:
  leapts predict model/ --level 80,95
  leapts predict model/ --quantile 0.1,0.9 --samples 200 -o forecast.csv
  leapts predict model/ newer.csv -o forecast.parquet --trace trace.csv
  leapts predict model/ | head
  leapts predict model/ history/ --engine ray -o forecasts/
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from leapts.cli import options
from leapts.cli.terminal import is_terminal, note, say, say_files, show_table, write_bytes, write_json
from leapts.errors import ConfigError
from leapts.messages import counted

if TYPE_CHECKING:
    from leapts.data.panel import Panel
    from leapts.forecasting.estimator import LeapTS

MAX_SERIES, MAX_ROWS = 8, 5  # shown on a terminal
_DATA = "History: a file, - for standard input, or a data set. [data of the fit]"
_TRACE = "CSV or Parquet file for the trace, one row per leap; or JSON, for Perfetto."
_ENGINE = "Forecast here, or on a Ray cluster, from one folder of Parquet files to another."
_PARTITIONS = "Number of partitions with --engine ray. [by files or rows]"
_SAMPLES = "Number of sample paths, each a column; sums over a path have honest intervals."
_LOCAL_ONLY = "--quantile, --samples, --trace, --threads or --escape-formulas"
_FUTURE_DATA = "CSV or Parquet file with the known-future covariates of the steps to forecast."
_OUT = "CSV or Parquet file to write; - for standard output."


@options.shared_options
def predict(
    model: options.Model,
    data: Annotated[str | None, typer.Argument(metavar="DATA", help=_DATA)] = None,
    out: Annotated[str | None, typer.Option("--out", "-o", help=_OUT)] = None,
    future_data: Annotated[Path | None, typer.Option(help=_FUTURE_DATA)] = None,
    level: options.Levels = None,
    quantile: options.Quantiles = None,
    samples: Annotated[int, typer.Option(min=0, help=_SAMPLES)] = 0,
    random_seed: Annotated[int, typer.Option(min=0, help="Seed of the sample paths.")] = 1,
    trace: Annotated[Path | None, typer.Option(help=_TRACE)] = None,
    engine: Annotated[options.Engine, typer.Option(help=_ENGINE)] = "local",
    address: options.Address = None,
    partitions: Annotated[int | None, typer.Option(min=1, help=_PARTITIONS)] = None,
    escape_formulas: options.EscapeFormulas = False,
    threads: options.Threads = 1,
    json: options.Json = False,
) -> None:
    """Forecast each series. Prints a table to a terminal, and CSV to a pipe."""
    if level and quantile:
        raise ConfigError("give --level or --quantile, not both")
    if engine == "ray":
        if future_data is not None:
            raise ConfigError("--engine ray is not supported yet with --future-data; put the rows into DATA")
        if threads > 1 or escape_formulas or trace is not None or quantile or samples:
            raise ConfigError(f"--engine ray has no {_LOCAL_ONLY}; leave them out")
        if data is None or out is None or out == "-":
            raise ConfigError("--engine ray needs DATA and --out, both folders of Parquet files")
        answer = _predict_on_cluster(model, Path(data), Path(out), tuple(level), address, partitions)
        if json:
            write_json(answer)
        else:
            say(f"forecast  {out}: {counted(answer['rows'], 'row')} in {counted(answer['partitions'], 'file')}")
        return
    if address is not None or partitions is not None:
        raise ConfigError("--address and --partitions need --engine ray")
    target = None if out in (None, "-") else Path(str(out))
    require_files(target, trace, data, model)
    forecaster, panel = options.load(model, data, threads)
    asked: dict[str, Any] = {"level": level or None, "quantiles": quantile or None}
    asked |= {"n_samples": samples, "random_seed": random_seed, "futr_df": future_data}
    found = forecast_files(forecaster, panel, asked, target, trace, escape_formulas=escape_formulas)
    show_answer(found, {"model": model}, out, json=json, escape_formulas=escape_formulas)


class Answer(NamedTuple):
    """A forecast as an Arrow table, its horizon, and the files that were written."""

    forecast: Any
    h: int
    files: dict[str, Path]


def require_files(target: Path | None, trace: Path | None, data: str | None, model: Path | None = None) -> None:
    """Refuse output files that cannot be written, or that are the same."""
    from leapts.report.encode import TRACE_SUFFIXES

    options.require_output(target, data=data, model=model)
    if trace is not None:
        options.require_output(trace, TRACE_SUFFIXES, data=data, model=model)
        if target and target.resolve() == trace.resolve():
            raise ConfigError(f"--out and --trace are both {trace}; choose two files")


def forecast_files(
    model: "LeapTS",
    panel: "Panel",
    asked: dict[str, Any],
    target: Path | None,
    trace: Path | None,
    *,
    escape_formulas: bool,
) -> Answer:
    """Forecast, and write the forecast and its trace to files if asked for."""
    from leapts.data.frames import write_frame
    from leapts.report.encode import write_trace

    # Arrow keeps dates as dates; pandas has no type for them.
    arrow, leaps, files = panel.in_frames_of("pyarrow"), None, dict[str, Path]()
    if trace is None:
        forecast = model.predict(arrow, **asked)
    else:
        forecast, leaps = model.predict(arrow, **asked, return_trace=True)
    if target is not None:
        files["forecast"] = write_frame(forecast, target, escape_formulas=escape_formulas)
    if trace is not None:
        files["trace"] = write_trace(leaps, trace, escape_formulas=escape_formulas)
    return Answer(forecast, model.h, files)


def show_answer(answer: Answer, about: dict[str, Any], out: str | None, *, json: bool, escape_formulas: bool) -> None:
    """Print JSON, the names of files, CSV for a pipe, or a table for a terminal."""
    from leapts.data.frames import csv_bytes

    is_written = "forecast" in answer.files
    if json:
        rows = {} if is_written else {"forecast": answer.forecast.to_pylist()}
        write_json({**about, "horizon": answer.h, "files": answer.files, **rows})
    elif is_written:
        say_files(**answer.files)
    elif out == "-" or not is_terminal():
        write_bytes(csv_bytes(answer.forecast, escape_formulas=escape_formulas))
    else:
        show_forecast(answer.forecast, answer.h)


def show_forecast(frame: Any, h: int) -> None:
    """Show the first rows of the first series; a note counts the others.

    Args:
        frame: Arrow table with `h` rows for each series.
        h: The horizon.
    """
    shown = []
    for start in range(0, min(len(frame), MAX_SERIES * h), h):
        for record in frame.slice(start, min(h, MAX_ROWS)).to_pylist():
            name, timestamp, *values = record.values()
            # Names and timestamps that are numbers have no thousands separator: 2025, not 2,025.
            shown.append([str(name), str(timestamp), *values])
    # Bounds are shown without the name of the forecast: `LeapTS`, `lo-80`, `hi-80`.
    columns = frame.column_names
    show_table([name.removeprefix(f"{columns[2]}-") for name in columns], shown)
    if len(shown) < len(frame):
        note(f"{len(shown):,} of {len(frame):,} rows; -o FILE writes all of them")


def _predict_on_cluster(
    model: Path, data: Path, out: Path, level: tuple[int | float, ...], address: str | None, partitions: int | None
) -> dict[str, Any]:
    """Forecast a folder of Parquet files into another with Ray; return the answer for JSON."""
    from leapts.integrations.ray import PartitionForecaster
    from leapts.integrations.ray.forecast import forecast_dataset
    from leapts.integrations.ray.partitions import model_digest, require_independent

    forecaster = PartitionForecaster(str(model.absolute()), level)
    fitted = forecaster.model
    require_independent(fitted)
    columns, job = (fitted.id_col, fitted.time_col, fitted.target_col), (model_digest(model), level)
    done = forecast_dataset(data, out, forecaster, columns=columns, partitions=partitions, address=address, job=job)
    counts = {"partitions": done.partitions, "rows": done.rows, "exchanged": done.exchanged}
    return {"model": model, "horizon": fitted.h, "files": {"forecast": out}, **counts}
