"""A suite spread over a cluster loses no run with a machine, and repeats none that was recorded."""

import json
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from leapts_bench import results
from leapts_bench.cluster import work_on_cluster
from leapts_bench.runs import PeerDesign
from tests.bench.conftest import tiny_run

ray = pytest.importorskip("ray")
pytestmark = pytest.mark.filterwarnings("ignore")  # Ray's own

from ray.cluster_utils import Cluster  # noqa: E402

SMALL = {"num_cpus": 1, "object_store_memory": 100_000_000}


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """Two machines with a processor each, both of them processes here."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parents[2]), *filter(None, sys.path)])
    cluster = Cluster(initialize_head=True, head_node_args={**SMALL, "include_dashboard": False})
    ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
    yield cluster
    ray.shutdown()
    cluster.shutdown()


def test_a_machine_lost_in_the_middle_of_a_suite_costs_no_result(cluster: Cluster, tmp_path: Path) -> None:
    target = tmp_path / "results" / "main.jsonl"
    runs = [tiny_run(seed=seed) for seed in range(5)]
    broken = runs[0].model_copy(update={"model": PeerDesign(name="nobody")})
    machine = cluster.add_node(**SMALL)
    cluster.wait_for_nodes()
    heard: list[str] = []
    with ThreadPoolExecutor(1) as pool:
        job = pool.submit(work_on_cluster, [broken, *runs], target, tell=heard.append)
        while not results.read(target) and not job.done():
            time.sleep(0.02)
        before = results.read(target)
        cluster.remove_node(machine, allow_graceful=False)
        assert job.result(300) == 1
    assert len(before) < len(runs), "the machine was lost too late to matter"
    after = results.read(target)
    assert after[: len(before)] == before
    assert sorted(line["key"] for line in after) == sorted(run.key for run in runs), json.dumps(heard)
    assert any("there is no peer 'nobody'" in message for message in heard)
