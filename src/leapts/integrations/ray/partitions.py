"""Forecast one partition: an Arrow table of whole series in, an Arrow table of their forecasts out.

Ray and Spark group the rows of each series in one partition, and call this.
"""

import functools
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import torch

from leapts.errors import DataError
from leapts.forecasting import LeapTS
from leapts.forecasting.intervals import Level, interval_bounds
from leapts.messages import listed
from leapts.persistence.save import CONFIG


def predict_partition(table: pa.Table, model: LeapTS, *, level: Sequence[Level] = ()) -> pa.Table:
    """Forecast the series of one partition, independently of other partitions.

    Args:
        table: A long table with all rows of every series in it. Other columns are ignored.
        model: A fitted univariate model.
        level: Levels of the intervals, in percent.

    Raises:
        DataError: When the data cannot be used, or the model is multivariate.
    """
    require_independent(model)
    columns = [model.id_col, model.time_col, model.target_col]
    if missing := [name for name in columns if name not in table.column_names]:
        raise DataError(
            f"the table has no column {listed(missing)}: a partition is a long table with the columns "
            f"{listed(columns)}, this one has {listed(table.column_names)}; rename its columns"
        )
    if not table.num_rows:
        return forecast_schema(table.schema, model, level=level).empty_table()
    forecast: pa.Table = model.predict(table.select(columns), level=level or None)
    return forecast


def require_independent(model: LeapTS) -> None:
    """Refuse a multivariate model, which needs all of its series in one partition.

    Raises:
        DataError: When the model is multivariate.
    """
    if model.predictor_.is_multivariate:
        raise DataError(
            "the model is multivariate, so its series cannot be spread over partitions; forecast without --engine, "
            "or fit with model={'mixing': 'none'}"
        )


def forecast_schema(schema: pa.Schema, model: LeapTS, *, level: Sequence[Level] = ()) -> pa.Schema:
    """Return the schema of the forecasts of a partition."""
    names, time = schema.field(model.id_col).type, schema.field(model.time_col).type
    time = time.value_type if pa.types.is_dictionary(time) else time
    if pa.types.is_string(time) or pa.types.is_large_string(time):  # text is parsed as timestamps
        time = pa.timestamp("us", tz="UTC" if model.predictor_.tail.timezone else None)
    columns = [model.alias, *(bound.column for bound in interval_bounds(level, model.alias))]
    return pa.schema(
        [
            (model.id_col, pa.int64() if pa.types.is_integer(names) else pa.string()),
            (model.time_col, time),
            *((column, pa.float64()) for column in columns),
        ]
    )


@dataclass(frozen=True)
class PartitionForecaster:
    """Forecast partitions with the model of a folder; small to send, loads the model once per process."""

    folder: str  # the model folder; every machine must see it under this path
    level: tuple[Level, ...] = ()  # of the intervals, in percent

    @property
    def model(self) -> LeapTS:
        """Load the model on first use in a process, and again when the folder has changed."""
        folder = Path(self.folder)
        if not (folder / CONFIG).is_file():
            return LeapTS.load(folder)  # raises the error
        return _loaded(self.folder, model_digest(folder))

    def __call__(self, table: pa.Table) -> pa.Table:
        """Forecast a partition."""
        return predict_partition(table, self.model, level=self.level)

    def batches(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Forecast a partition given as record batches, for `mapInArrow` of Spark."""
        parts = [batch for batch in batches if batch.num_rows]
        if parts:
            yield from self(pa.Table.from_batches(parts)).combine_chunks().to_batches()


@functools.lru_cache(maxsize=4)
def _loaded(folder: str, digest: str) -> LeapTS:  # noqa: ARG001
    """Load a model once per process and digest, and use one thread, as other workers share the machine."""
    torch.set_num_threads(1)
    return LeapTS.load(Path(folder))


def model_digest(folder: Path) -> str:
    """Return a digest of a model: of its configuration, which holds the digest of its weights."""
    return hashlib.sha256((folder / CONFIG).read_bytes()).hexdigest()
