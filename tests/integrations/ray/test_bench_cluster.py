"""After the loss of a machine, a suite on a cluster completes all runs and repeats no recorded one."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from leapts_bench import results
from leapts_bench.cluster import work_on_cluster
from leapts_bench.runs import BaselineDesign
from tests.bench.conftest import tiny_run

pytest.importorskip("ray")
pytestmark = pytest.mark.filterwarnings("ignore")  # Ray's own


def test_a_suite_completes_after_the_loss_of_a_machine(cluster: Any, machine: Any, tmp_path: Path) -> None:
    target = tmp_path / "results" / "main.jsonl"
    runs = [tiny_run(seed=seed) for seed in range(3)]
    broken = runs[0].model_copy(update={"model": BaselineDesign(name="nobody")})
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
