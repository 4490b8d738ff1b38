"""Fixtures: a folder of Parquet files that split its series, a model, and one cluster for all tests."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from leapts import LeapTS
from tests.integrations.ray.folders import Folders


@pytest.fixture(scope="session")
def table() -> pa.Table:
    """Forty daily series of 60 to 99 steps, shuffled: no file holds a whole series."""
    luck = np.random.default_rng(1)
    rows = [
        (f"s{number}", day, np.sin(day / 7 + number) + number) for number in range(40) for day in range(60 + number)
    ]
    luck.shuffle(rows)
    names, days, values = zip(*rows, strict=True)
    timestamps = np.datetime64("2024-01-01", "us") + np.array(days) * np.timedelta64(1, "D")
    return pa.table({"unique_id": names, "ds": timestamps, "y": values})


@pytest.fixture(scope="session")
def folders(table: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> Folders:
    root = tmp_path_factory.mktemp("scaleout")
    data, model = root / "data", root / "model"
    data.mkdir()
    size = -(-table.num_rows // 4)
    for number in range(4):
        pa.parquet.write_table(table.slice(number * size, size), data / f"{number}.parquet")
    LeapTS(6, 12, max_steps=4).fit(table).save(model)
    return Folders(data, model)


SMALL = {"num_cpus": 2, "object_store_memory": 100_000_000}


@pytest.fixture(scope="session")
def cluster() -> Iterator[Any]:
    """A cluster of one simulated machine with two processors."""
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("PYTHONPATH", os.pathsep.join([str(Path(__file__).parents[2]), *filter(None, sys.path)]))
        cluster = Cluster(initialize_head=True, head_node_args={**SMALL, "include_dashboard": False})
        ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
        yield cluster
        ray.shutdown()
        cluster.shutdown()


@pytest.fixture
def machine(cluster: Any) -> Iterator[Any]:
    """A second simulated machine, with one processor, which a test may remove."""
    node = cluster.add_node(**{**SMALL, "num_cpus": 1})
    cluster.wait_for_nodes()
    yield node
    if node in cluster.worker_nodes:
        cluster.remove_node(node, allow_graceful=False)
