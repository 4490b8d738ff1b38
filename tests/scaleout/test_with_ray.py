"""A Ray cluster forecasts what one process does, also when it loses a machine on the way."""

import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from leapts import LeapTS
from leapts.errors import DataError
from leapts.scaleout import PartitionForecaster
from tests.scaleout.folders import Folders, assert_same_forecasts

ray = pytest.importorskip("ray")
pytestmark = pytest.mark.filterwarnings("ignore")  # Ray's own

from ray.cluster_utils import Cluster  # noqa: E402

from leapts.scaleout.with_ray import forecast_dataset  # noqa: E402

SMALL = {"num_cpus": 2, "object_store_memory": 100_000_000}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A head that computes and a machine beside it, both of them processes here."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    cluster = Cluster(initialize_head=True, head_node_args={**SMALL, "include_dashboard": False})
    ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
    ray.data.DataContext.get_current().enable_progress_bars = False
    yield cluster
    ray.shutdown()
    cluster.shutdown()


@dataclass(frozen=True)
class _Noted:
    """Forecasts slowly, and leaves a note of every partition it does."""

    forecaster: PartitionForecaster
    notes: Path

    def __call__(self, table: pa.Table) -> pa.Table:
        time.sleep(1)
        forecast = self.forecaster(table)
        series = min(table["unique_id"].to_pylist())
        with (self.notes / f"{series}-{os.getpid()}-{time.time_ns()}").open("w") as note:
            note.write(ray.get_runtime_context().get_node_id())
        return forecast


def test_the_cluster_forecasts_what_one_process_does(
    cluster: Cluster, table: pa.Table, folders: Folders, tmp_path: Path
) -> None:
    out = tmp_path / "forecast"
    done = forecast_dataset(folders.data, out, PartitionForecaster(str(folders.model), (80,)), partitions=3)
    written = pa.parquet.read_table(out)
    assert done.rows == written.num_rows == 40 * 6
    assert 1 < done.partitions == len(list(out.iterdir())) <= 3
    assert_same_forecasts(written, LeapTS.load(folders.model).predict(table, level=[80]))
    assert [path.name for path in tmp_path.iterdir()] == ["forecast"]


def test_what_is_wrong_with_the_data_is_said_as_without_a_cluster(
    cluster: Cluster, table: pa.Table, folders: Folders, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    pa.parquet.write_table(pa.concat_tables([table, table.slice(7, 1)]), data / "twice.parquet")
    with pytest.raises(DataError, match=r"1 row repeats an earlier one|1 rows? repeat"):
        forecast_dataset(data, tmp_path / "out", PartitionForecaster(str(folders.model)), partitions=2)
    assert not (tmp_path / "out").exists()


def test_a_lost_machine_loses_nothing_and_repeats_only_what_it_had_not_finished(
    cluster: Cluster, table: pa.Table, folders: Folders, tmp_path: Path
) -> None:
    notes, out = tmp_path / "notes", tmp_path / "forecast"
    notes.mkdir()
    machine = cluster.add_node(**SMALL)
    cluster.wait_for_nodes()
    forecaster = _Noted(PartitionForecaster(str(folders.model)), notes)
    result: list[Any] = []
    job = threading.Thread(target=lambda: result.append(forecast_dataset(folders.data, out, forecaster, partitions=12)))
    job.start()
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and not any(note.read_text() == machine.node_id for note in notes.iterdir()):
        time.sleep(0.02)
    finished = {path.name: path.stat().st_mtime_ns for path in tmp_path.glob(".forecast.*/part-*")}
    cluster.remove_node(machine, allow_graceful=False)
    job.join(180)

    assert result, "the job did not end"
    assert len(finished) < result[0].partitions, "the machine was lost too late to matter"
    assert_same_forecasts(pa.parquet.read_table(out), LeapTS.load(folders.model).predict(table))
    after = {path.name: path.stat().st_mtime_ns for path in out.iterdir()}
    assert {name: after[name] for name in finished} == finished
    repeats = len(list(notes.iterdir())) - result[0].partitions
    assert 0 <= repeats <= 2, "no more than each of the lost machine's processors had in hand"
