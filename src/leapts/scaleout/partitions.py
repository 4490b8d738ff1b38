"""Forecasts of one partition: an Arrow table of whole series in, an Arrow table of their forecasts out.

Every engine, Ray as well as Spark, does no more than bring whole series together and call this.
"""

import functools
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import torch

from leapts.errors import DataError
from leapts.forecaster import LeapTS
from leapts.forecaster.folder import CONFIG
from leapts.intervals import Level, interval_bounds
from leapts.wording import listed


def predict_partition(table: pa.Table, model: LeapTS, *, level: Sequence[Level] = ()) -> pa.Table:
    """Forecast the series of one partition; the same table gives the same forecasts, whatever else is forecast.

    Args:
        table: Long: a row for each series and step, every series with all its rows. Further columns are left out.
        model: A fitted model that forecasts each series for itself.
        level: Intervals to give, in percent.

    Raises:
        DataError: When the data cannot be used, or the model needs all its series at once.
    """
    require_independent(model)
    columns = [model.id_col, model.time_col, model.target_col]
    if missing := [name for name in columns if name not in table.column_names]:
        raise DataError(
            f"a partition is long, with the columns {listed(columns)}; this one lacks {listed(missing)} "
            f"and has {listed(table.column_names)}; rename them, or fit with id_col=, time_col=, target_col="
        )
    if not table.num_rows:
        return forecast_schema(table.schema, model, level=level).empty_table()
    forecast: pa.Table = model.predict(table.select(columns), level=level or None)
    return forecast


def require_independent(model: LeapTS) -> None:
    """Refuse a model that forecasts its series together: whichever way they are spread, one partition lacks some.

    Raises:
        DataError: With the cure.
    """
    if model.fitted_.is_joint:
        raise DataError(
            "the model forecasts its series together, so they cannot be spread over partitions; "
            "forecast without an engine, or fit with model={'mixing': 'none'}"
        )


def forecast_schema(schema: pa.Schema, model: LeapTS, *, level: Sequence[Level] = ()) -> pa.Schema:
    """What the forecasts of a partition with this schema look like."""
    names, time = schema.field(model.id_col).type, schema.field(model.time_col).type
    time = time.value_type if pa.types.is_dictionary(time) else time
    if pa.types.is_string(time) or pa.types.is_large_string(time):  # read as what the text spells
        time = pa.timestamp("us", tz="UTC" if model.fitted_.tail.zone else None)
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
    """`predict_partition` bound to a model folder: small to send to another machine, which reads the model once.

    Attributes:
        folder: The model, where every machine finds it.
        level: Intervals to give, in percent.
    """

    folder: str
    level: tuple[Level, ...] = ()

    @property
    def model(self) -> LeapTS:
        """The model, read when first asked for in each process, and again once another has taken its place."""
        folder = Path(self.folder)
        if not (folder / CONFIG).is_file():
            return LeapTS.load(folder)  # which says what is wrong
        return _loaded(self.folder, model_digest(folder))

    def __call__(self, table: pa.Table) -> pa.Table:
        """The forecasts of a partition."""
        return predict_partition(table, self.model, level=self.level)

    def batches(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The same for a partition that comes batch by batch, as Spark's `mapInArrow` hands it over."""
        parts = [batch for batch in batches if batch.num_rows]
        if parts:
            yield from self(pa.Table.from_batches(parts)).combine_chunks().to_batches()


@functools.lru_cache(maxsize=4)
def _loaded(folder: str, digest: str) -> LeapTS:  # noqa: ARG001
    """The model of a folder, read once in each process, which computes with one thread: its neighbours do too.

    Args:
        folder: The folder.
        digest: Of the model that is in it now.
    """
    torch.set_num_threads(1)
    return LeapTS.load(Path(folder))


def model_digest(folder: Path) -> str:
    """Tells a model from any other: its configuration holds a digest of its weights."""
    return hashlib.sha256((folder / CONFIG).read_bytes()).hexdigest()
