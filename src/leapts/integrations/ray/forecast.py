"""Forecast a folder of Parquet files on a Ray cluster.

Files that hold whole series are partitions. If series are split between files, rows are first sent to partitions by a
hash of the name of their series. Actors load the model once, forecast one partition at a time, and write each to its
own file. A partition whose file exists is not forecast again, whether Ray repeats the work of a lost machine or the
whole job is restarted.
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
from leapts.integrations.ray.parquet import Destination, count_rows, hold_whole_series, parquet_files

try:
    import ray as ray  # imported from here by tuning.py, so that the error below is in one place
    import ray.data
except ImportError as error:
    raise ImportError("--engine ray needs: pip install 'leapts[ray]'") from error

Forecast = Callable[[pa.Table], pa.Table]
Columns = tuple[str, str, str]

_ROWS_PER_PARTITION = 1_000_000  # a partition has to fit in memory
_MAX_ROWS_OF_A_FILE = 2_000_000  # larger files are split into partitions
_PARTITION, _FILE = "__partition__", "__file__"
_CPUS_PER_ACTOR = 0.01


@dataclass(frozen=True)
class Done:
    """The result of a job."""

    partitions: int  # that are not empty
    rows: int  # of the forecasts
    exchanged: bool  # whether rows were moved between partitions, because series were split between files


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
    """Forecast all series in a folder of Parquet files, and write another such folder.

    Args:
        data: The folder to read; every machine must see it under this path.
        out: The folder to write; likewise.
        forecast: The function that forecasts a partition, such as a `PartitionForecaster`.
        columns: Names of the columns of series, timestamps and values.
        partitions: Number of partitions. By default each file is one, if no file is too large and no series is in
            two of them; otherwise one for every million rows, and at least two for each processor.
        address: The address of the cluster; by default the current one, or a new one on this machine.
        job: Everything else the result depends on; an interrupted job is resumed only if it is the same.

    Raises:
        DataError: When the data cannot be used.
    """
    files = parquet_files(data.absolute())
    rows = count_rows(files)
    with connected(address):
        present = processors()
        by_file = partitions is None and hold_whole_series(files, columns[0], _MAX_ROWS_OF_A_FILE)
        if partitions is None:
            enough = max(math.ceil(rows / _ROWS_PER_PARTITION), min(2 * present, rows))
            partitions = len(files) if by_file else enough
        described = [(str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in files]
        destination = Destination.of(out, [described, partitions, *job])
        destination.parts.mkdir(exist_ok=True)
        actor = _Actor(forecast, destination, columns)
        written = _written(files, by_file, partitions, actor, min(present, partitions))
        parts = written.iter_batches(batch_format="pyarrow", batch_size=None)
        done = pa.concat_tables(_without_problems(iter(parts)))
    destination.finish()
    return Done(len(set(done["partition"].to_pylist())), int(np.sum(done["rows"].to_numpy())), exchanged=not by_file)


def processors() -> int:
    """Count the processors of all machines in the cluster."""
    return max(1, int(ray.cluster_resources().get("CPU", 1)))


@contextmanager
def connected(address: str | None = None) -> Iterator[None]:
    """Connect to a Ray cluster: the current one, the one at the address, or a new one on this machine."""
    if ray.is_initialized():
        yield
        return
    ray.data.DataContext.get_current().enable_progress_bars = False
    for name in ("ray.data", "ray"):
        logging.getLogger(name).setLevel(logging.ERROR)
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # no usage statistics unless the user turns them on
    alone: dict[str, Any] = {} if address else {"include_dashboard": False, "num_cpus": max(2, os.cpu_count() or 1)}
    with nullcontext() if address else _bind_to_loopback():
        try:
            ray.init(address=address or "local", log_to_driver=False, logging_level=logging.ERROR, **alone)
        except (ConnectionError, ValueError) as error:
            raise DataError(f"no Ray cluster at {address} ({error}); check the address") from error
        try:
            yield
        finally:
            ray.shutdown()


@contextmanager
def _bind_to_loopback() -> Iterator[None]:
    """Make Ray listen on the loopback interface only.

    On Linux, Ray listens on all interfaces even for a cluster on one machine, and anyone who can connect can run code.
    No public option changes that; where Ray does not support clusters of several machines, it uses loopback.
    """
    from ray._private import ray_constants

    before = ray_constants.ENABLE_RAY_CLUSTER
    ray_constants.ENABLE_RAY_CLUSTER = False
    try:
        yield
    finally:
        ray_constants.ENABLE_RAY_CLUSTER = before


@dataclass(frozen=True)
class _Actor:
    """Forecast partitions and write them, unless their files exist."""

    forecast: Forecast
    destination: Destination
    columns: Columns

    def __call__(self, table: pa.Table) -> pa.Table:
        """Return a summary; errors are part of it, because Ray would wrap an exception in its own."""
        number: int = table[_PARTITION][0].as_py()
        file, kind, problem = self.destination.part(number), "", ""
        try:
            if not file.exists():
                if _FILE in table.column_names:
                    content = pa.parquet.ParquetFile(table[_FILE][0].as_py()).read(columns=list(self.columns))
                else:
                    content = table.drop_columns([_PARTITION])
                self.destination.write(number, self.forecast(content))
            rows = pa.parquet.read_metadata(file).num_rows
        except LeapTSError as error:
            rows, kind, problem = 0, type(error).__name__, str(error)
        return pa.table({"partition": [number], "rows": [rows], "kind": [kind], "problem": [problem]})


def _written(files: Sequence[Path], by_file: bool, partitions: int, actor: _Actor, number: int) -> "ray.data.Dataset":
    """Forecast file by file, or group the rows of each series in one partition first."""
    # Actors reserve almost no processor: otherwise, after the loss of a machine, none would be left to read the data.
    options: dict[str, Any] = {"concurrency": number, "num_cpus": _CPUS_PER_ACTOR, "scheduling_strategy": "SPREAD"}
    options |= {"fn_constructor_args": (actor.forecast, actor.destination, actor.columns), "batch_format": "pyarrow"}
    if by_file:
        rows = [{_PARTITION: index, _FILE: str(path)} for index, path in enumerate(files)]
        table = ray.data.from_items(rows, override_num_blocks=partitions)
        return table.map_batches(_Actor, batch_size=1, **options)
    table = ray.data.read_parquet([str(path) for path in files], columns=list(actor.columns))
    numbered = table.map_batches(
        _numbered, fn_args=(actor.columns[0], partitions), batch_format="pyarrow", batch_size=None
    )
    return numbered.groupby(_PARTITION, num_partitions=partitions).map_groups(_Actor, **options)


def _numbered(table: pa.Table, id_col: str, partitions: int) -> pa.Table:
    """Add the partition of each row, from a hash of its series."""
    names = table[id_col].to_pandas().to_numpy()
    return table.append_column(_PARTITION, pa.array(pd.util.hash_array(names) % partitions, pa.int64()))


def _without_problems(parts: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """Yield the summaries of actors; raise the first error as it would be raised without Ray."""
    for part in parts:
        for kind, problem in zip(part["kind"].to_pylist(), part["problem"].to_pylist(), strict=True):
            if kind:
                raise getattr(errors, kind)(problem)
        yield part
