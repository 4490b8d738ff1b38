"""Forecasts of a Parquet folder by the machines of a Ray cluster.

Where every file holds whole series, a file is a partition. Where files cut through series, rows are sent to partitions
by a hash of their series' name, so that whole series come together. Actors that have read the model once forecast a
partition each and write it to a file of its own. A partition whose file is there is not forecast again: neither when
Ray repeats what a lost machine held, nor when the whole job is started anew.
"""

import logging
import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet

from leapts import errors
from leapts.errors import DataError, LeapTSError
from leapts.scaleout.datasets import Destination, count_rows, hold_whole_series, parquet_files

try:
    import ray as ray  # the trials of a search use it from here, so that one place says what is missing
    import ray.data
except ImportError as error:
    raise ImportError("a Ray cluster needs: pip install 'leapts[ray]'") from error

Forecast = Callable[[pa.Table], pa.Table]
Columns = tuple[str, str, str]

# A partition is forecast in one go: enough to be worth the trip, little enough for any machine's memory.
_ROWS_A_PARTITION = 1_000_000
_MOST_ROWS_OF_A_FILE = 2_000_000  # above, a file is no partition
_PARTITION = "__partition__"
_SHARE_OF_AN_ACTOR = 0.01  # of a processor


@dataclass(frozen=True)
class Done:
    """What a job did."""

    partitions: int  # with series in them
    rows: int  # of forecasts
    exchanged: bool  # whether rows had to change places first, because files cut through series


def forecast_dataset(
    data: Path,
    out: Path,
    forecast: Forecast,
    *,
    columns: Columns = ("unique_id", "ds", "y"),
    partitions: int | None = None,
    address: str | None = None,
    job: tuple[object, ...] = (),
) -> Done:
    """Forecast all series of a folder of Parquet files into another such folder.

    Args:
        data: The folder to read; every machine sees it under this name.
        out: The folder to write, likewise.
        forecast: What to do with a partition, such as a `PartitionForecaster`.
        columns: Of series names, stamps and values.
        partitions: How many parts to do the work in. By default each file is one, if none is too large and no series
            is in two of them; otherwise there is one for every million rows, and two for each processor.
        address: The Ray cluster's; by default the one Ray is in already, or a new one on this machine.
        job: What else the result depends on: a job that was cut off goes on only if all of it is the same.

    Raises:
        DataError: When the data cannot be used.
    """
    files = parquet_files(data.absolute())
    rows = count_rows(files)
    with connected(address):
        present = processors()
        by_file = partitions is None and hold_whole_series(files, columns[0], _MOST_ROWS_OF_A_FILE)
        if partitions is None:
            enough = max(math.ceil(rows / _ROWS_A_PARTITION), min(2 * present, rows))
            partitions = len(files) if by_file else enough
        described = [(str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in files]
        destination = Destination.of(out, [described, partitions, *job])
        destination.parts.mkdir(exist_ok=True)
        work = _by_file if by_file else _by_exchange
        written = work(files, columns, partitions, _Writer(forecast, destination), _actors(min(present, partitions)))
        parts = written.iter_batches(batch_format="pyarrow", batch_size=None)
        done = pa.concat_tables(_without_problems(iter(parts)))
    destination.finish()
    return Done(len(set(done["partition"].to_pylist())), int(np.sum(done["rows"].to_numpy())), exchanged=not by_file)


def _actors(number: int) -> dict[str, Any]:
    """So many actors, on all machines.

    Actors that hold whole processors would, on fewer machines than they were begun on, leave none for reading and
    spreading, without which no actor has anything to do.
    """
    return {"concurrency": number, "num_cpus": _SHARE_OF_AN_ACTOR, "scheduling_strategy": "SPREAD"}


def processors() -> int:
    """Of all machines that are in the cluster now."""
    return max(1, int(ray.cluster_resources().get("CPU", 1)))


@contextmanager
def connected(address: str | None = None) -> Iterator[None]:
    """In a Ray cluster: the one this process is in, the one at the address, or a quiet one of this machine alone."""
    if ray.is_initialized():
        yield
        return
    _quieten()
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is sent anywhere unless the user wants it
    alone: dict[str, Any] = {} if address else {"include_dashboard": False, "num_cpus": max(2, os.cpu_count() or 1)}
    with nullcontext() if address else _at_home():
        try:
            ray.init(address=address or "local", log_to_driver=False, logging_level=logging.ERROR, **alone)
        except (ConnectionError, ValueError) as error:
            raise DataError(f"there is no Ray cluster at {address} ({error}); check the address") from error
        try:
            yield
        finally:
            ray.shutdown()


@contextmanager
def _at_home() -> Iterator[None]:
    """Nobody else can reach what Ray starts meanwhile.

    On Linux it listens at every address, even for a cluster of this machine alone, and whoever can call may have it run
    anything. Where it holds clusters of several machines for impossible it keeps to this one; no option says so.
    """
    from ray._private import ray_constants

    before = ray_constants.ENABLE_RAY_CLUSTER
    ray_constants.ENABLE_RAY_CLUSTER = False
    try:
        yield
    finally:
        ray_constants.ENABLE_RAY_CLUSTER = before


def _by_file(
    files: Sequence[Path], columns: Columns, partitions: int, writer: "_Writer", actors: dict[str, Any]
) -> "ray.data.Dataset":
    """Have every file forecast by the actor that reads it."""
    rows = [{_PARTITION: number, "file": str(path)} for number, path in enumerate(files)]
    table = ray.data.from_items(rows, override_num_blocks=partitions)
    return table.map_batches(
        _FileActor, fn_constructor_args=(writer, columns), batch_format="pyarrow", batch_size=1, **actors
    )


def _by_exchange(
    files: Sequence[Path], columns: Columns, partitions: int, writer: "_Writer", actors: dict[str, Any]
) -> "ray.data.Dataset":
    """Bring whole series together first."""
    table = ray.data.read_parquet([str(path) for path in files], columns=list(columns))
    spread = table.map_batches(
        _numbered, fn_args=(columns[0], partitions), batch_format="pyarrow", batch_size=None
    ).groupby(_PARTITION, num_partitions=partitions)
    return spread.map_groups(_PartitionActor, fn_constructor_args=(writer,), batch_format="pyarrow", **actors)


@dataclass(frozen=True)
class _Writer:
    """Forecasts a partition into its place, unless that was done."""

    forecast: Forecast
    destination: Destination

    def __call__(self, number: int, content: Callable[[], pa.Table]) -> pa.Table:
        """What was done; an error is a part of it, because Ray would wrap it in its own."""
        file, kind, problem = self.destination.part(number), "", ""
        try:
            if not file.exists():
                self.destination.write(number, self.forecast(content()))
            rows = pa.parquet.read_metadata(file).num_rows
        except LeapTSError as error:
            rows, kind, problem = 0, type(error).__name__, str(error)
        return pa.table({"partition": [number], "rows": [rows], "kind": [kind], "problem": [problem]})


class _PartitionActor:
    """Forecasts the partitions it is given."""

    def __init__(self, writer: _Writer) -> None:
        self.writer = writer

    def __call__(self, table: pa.Table) -> pa.Table:
        return self.writer(table[_PARTITION][0].as_py(), lambda: table.drop_columns([_PARTITION]))


class _FileActor:
    """Forecasts the files it is told of."""

    def __init__(self, writer: _Writer, columns: Columns) -> None:
        self.writer, self.columns = writer, columns

    def __call__(self, one: pa.Table) -> pa.Table:
        path = Path(one["file"][0].as_py())
        return self.writer(
            one[_PARTITION][0].as_py(), lambda: pa.parquet.ParquetFile(path).read(columns=list(self.columns))
        )


def _numbered(table: pa.Table, id_col: str, partitions: int) -> pa.Table:
    """Give every row the partition of its series."""
    names = table[id_col].to_pandas().to_numpy()
    return table.append_column(_PARTITION, pa.array(pd.util.hash_array(names) % partitions, pa.int64()))


def _without_problems(parts: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """What the actors did, until one of them found something wrong, which is then raised as it would be without Ray."""
    for part in parts:
        for kind, problem in zip(part["kind"].to_pylist(), part["problem"].to_pylist(), strict=True):
            if kind:
                raise getattr(errors, kind)(problem)
        yield part


def _quieten() -> None:
    """Libraries do not log unless asked."""
    ray.data.DataContext.get_current().enable_progress_bars = False
    for name in ("ray.data", "ray"):
        logging.getLogger(name).setLevel(logging.ERROR)
