"""A Ray cluster forecasts the same as one process, also after the loss of a machine."""

import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from leapts import LeapTS
from leapts.cli import run
from leapts.errors import DataError
from leapts.integrations.ray import PartitionForecaster
from leapts_qa import open_ports
from tests.integrations.ray.folders import Folders, assert_same_forecasts

ray = pytest.importorskip("ray")
pytestmark = pytest.mark.filterwarnings("ignore")  # Ray's own

from leapts.integrations.ray.forecast import forecast_dataset  # noqa: E402


@dataclass(frozen=True)
class _Noted:
    """Forecast slowly, and record the machine of each partition."""

    forecaster: PartitionForecaster
    notes: Path

    def __call__(self, table: pa.Table) -> pa.Table:
        series = min(table["unique_id"].to_pylist())
        note = self.notes / f"{series}-{os.getpid()}-{time.time_ns()}"
        note.write_text(ray.get_runtime_context().get_node_id())
        time.sleep(1)
        return self.forecaster(table)


@pytest.mark.usefixtures("cluster")
def test_a_cluster_forecasts_the_same_as_one_process(
    table: pa.Table, folders: Folders, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "forecast"
    arguments = ["predict", folders.model, folders.data, "-o", out, "--engine", "ray", "--partitions", 3, "--level", 80]
    assert run([str(argument) for argument in [*arguments, "--json"]]) == 0
    done = json.loads(capfd.readouterr().out)
    written = pa.parquet.read_table(out)
    assert done["exchanged"]
    assert done["rows"] == written.num_rows == 40 * 6
    assert 1 < done["partitions"] == len(list(out.iterdir())) <= 3
    assert_same_forecasts(written, LeapTS.load(folders.model).predict(table, level=[80]))
    assert [path.name for path in tmp_path.iterdir()] == ["forecast"]


@pytest.mark.usefixtures("cluster")
def test_files_of_whole_series_are_forecast_without_an_exchange(
    table: pa.Table, folders: Folders, tmp_path: Path
) -> None:
    data, out = tmp_path / "data", tmp_path / "out"
    data.mkdir()
    ordered = table.sort_by("unique_id")
    border = ordered["unique_id"].to_pylist().index("s3")
    pa.parquet.write_table(ordered.slice(0, border), data / "a.parquet")
    pa.parquet.write_table(ordered.slice(border), data / "b.parquet")
    done = forecast_dataset(data, out, PartitionForecaster(str(folders.model)))
    assert (done.partitions, done.exchanged, len(list(out.iterdir()))) == (2, False, 2)
    assert_same_forecasts(pa.parquet.read_table(out), LeapTS.load(folders.model).predict(table))


@pytest.mark.usefixtures("cluster")
def test_errors_in_the_data_are_raised_as_without_a_cluster(table: pa.Table, folders: Folders, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    pa.parquet.write_table(pa.concat_tables([table, table.slice(7, 1)]), data / "twice.parquet")
    with pytest.raises(DataError, match=r"1 row repeats an earlier one|1 rows? repeat"):
        forecast_dataset(data, tmp_path / "out", PartitionForecaster(str(folders.model)))
    assert not (tmp_path / "out").exists()


def test_after_the_loss_of_a_machine_only_unfinished_partitions_are_repeated(
    cluster: Any, machine: Any, table: pa.Table, folders: Folders, tmp_path: Path
) -> None:
    notes, out = tmp_path / "notes", tmp_path / "forecast"
    notes.mkdir()
    forecaster = _Noted(PartitionForecaster(str(folders.model)), notes)
    with ThreadPoolExecutor(1) as pool:
        job = pool.submit(forecast_dataset, folders.data, out, forecaster, partitions=8)
        finished: dict[str, int] = {}
        there: set[str] = set()
        while not job.done() and not (finished and there):
            time.sleep(0.02)
            finished = {path.name: path.stat().st_mtime_ns for path in tmp_path.glob(".forecast.*/part-*")}
            there = {note.name.split("-")[1] for note in notes.iterdir() if note.read_text() == machine.node_id}
        cluster.remove_node(machine, allow_graceful=False)
        done = job.result(300)
    assert 0 < len(finished) < done.partitions, "the machine was lost too late to matter"
    assert_same_forecasts(pa.parquet.read_table(out), LeapTS.load(folders.model).predict(table))
    after = {path.name: path.stat().st_mtime_ns for path in out.iterdir()}
    assert {name: after[name] for name in finished} == finished
    repeats = len(list(notes.iterdir())) - done.partitions
    assert 0 <= repeats <= 3, "no more than each of the actors, which may all be there, had in hand"


def test_a_local_cluster_listens_on_loopback_only(tmp_path: Path) -> None:
    outcome = open_ports.run("predict on Ray", tmp_path)
    assert not outcome.failures
    assert outcome.ends["listens for this computer alone"] == 1
