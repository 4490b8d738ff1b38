"""Forecasts do not depend on the partitions of the series."""

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from leapts import LeapTS
from leapts.errors import DataError, ModelFileError
from leapts.integrations.ray import PartitionForecaster, predict_partition
from leapts.integrations.ray.partitions import forecast_schema
from tests.integrations.ray.folders import Folders, assert_same_forecasts


def _split(table: pa.Table, parts: int) -> list[pa.Table]:
    """Split a table into partitions of whole series."""
    names = sorted(set(table["unique_id"].to_pylist()))
    return [table.filter(pc.is_in(table["unique_id"], pa.array(names[part::parts]))) for part in range(parts)]


@pytest.mark.parametrize("parts", [1, 3, 40])
def test_forecasts_do_not_depend_on_the_partitions(table: pa.Table, folders: Folders, parts: int) -> None:
    forecaster = PartitionForecaster(str(folders.model), (80,))
    spread = pa.concat_tables([forecaster(part) for part in _split(table, parts)])
    assert_same_forecasts(spread, LeapTS.load(folders.model).predict(table, level=[80]))


def test_a_replaced_model_is_loaded_again(table: pa.Table, tmp_path: Path) -> None:
    forecaster = PartitionForecaster(str(tmp_path / "model"))
    with pytest.raises(ModelFileError, match="does not exist"):
        forecaster(table)
    for seed in (1, 2):
        model = LeapTS(6, 12, max_steps=1, random_seed=seed, model={"mixing": {"kind": "none"}}).fit(table)
        model.save(tmp_path / "model")
        assert_same_forecasts(forecaster(table), model.predict(table))
        assert forecaster.model is forecaster.model


def test_a_partition_may_come_in_batches_or_be_empty(table: pa.Table, folders: Folders) -> None:
    forecaster = PartitionForecaster(str(folders.model))
    batches = pa.Table.from_batches(forecaster.batches(table.to_batches(max_chunksize=100)))
    assert_same_forecasts(batches, forecaster(table))
    assert list(forecaster.batches([])) == []
    empty = forecaster(table.slice(0, 0))
    assert (empty.num_rows, empty.schema) == (0, forecaster(table).schema)


def test_the_schema_is_known_before_the_forecast(table: pa.Table, folders: Folders) -> None:
    model = LeapTS.load(folders.model)
    assert forecast_schema(table.schema, model, level=[80]) == predict_partition(table, model, level=[80]).schema


def test_timestamps_as_text_are_forecast_as_timestamps(table: pa.Table, folders: Folders) -> None:
    model = LeapTS.load(folders.model)
    spelled = table.set_column(table.column_names.index("ds"), "ds", pc.strftime(table["ds"], "%Y-%m-%d"))
    for timestamps in (spelled["ds"], spelled["ds"].dictionary_encode()):
        kept = spelled.set_column(spelled.column_names.index("ds"), "ds", timestamps)
        assert forecast_schema(kept.schema, model) == predict_partition(kept, model).schema


def test_other_columns_are_ignored(table: pa.Table, folders: Folders) -> None:
    model = LeapTS.load(folders.model)
    wider = table.append_column("note", pa.array(["x"] * table.num_rows))
    assert predict_partition(wider, model).equals(predict_partition(table, model))


def test_a_multivariate_model_is_refused(table: pa.Table) -> None:
    together = table.filter(pc.less(table["ds"], pa.scalar("2024-02-25").cast(pa.timestamp("us"))))
    model = LeapTS(6, 12, max_steps=1, model={"mixing": {"kind": "mlp"}}).fit(together)
    with pytest.raises(DataError, match=r"multivariate.*mixing"):
        predict_partition(together, model)


def test_a_missing_column_is_named(table: pa.Table, folders: Folders) -> None:
    with pytest.raises(DataError, match="no column 'unique_id'"):
        predict_partition(table.drop_columns(["unique_id"]), LeapTS.load(folders.model))
