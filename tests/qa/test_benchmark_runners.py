"""A short share of the killed benchmark runners."""

from pathlib import Path

import pytest

from leapts_bench import results
from leapts_qa import benchmark_runners


@pytest.mark.slow
def test_killed_runners_lose_duplicate_and_tear_no_result(tmp_path: Path) -> None:
    # Long enough that some are killed however fast the computer is.
    outcome = benchmark_runners.run("seed 0", tmp_path, kills=12, seeds=24)
    assert not outcome.failures
    assert outcome.cases >= 1


def test_torn_lost_and_different_results_are_detected(tmp_path: Path) -> None:
    runs, target = benchmark_runners.suite(2), tmp_path / "main.jsonl"
    for run in runs:
        results.append(target, benchmark_runners.stand_in(run))
    expected, whole = benchmark_runners.page(runs, tmp_path), target.read_bytes()
    assert benchmark_runners.judge(runs, target, expected) == ""
    assert benchmark_runners.judge(runs, target, f"{expected}.") == "another table than that of one runner alone"
    target.write_bytes(whole[:-9])
    assert benchmark_runners.judge(runs, target, expected) == "the last line is torn"
    target.write_bytes(whole.replace(b'{"key"', b'{"key', 1))
    assert benchmark_runners.judge(runs, target, expected).startswith("a line is torn")
    target.write_bytes(whole.partition(b"\n")[2])
    assert benchmark_runners.judge(runs, target, expected) == "1 results lost, 0 doubled"
    target.write_bytes(whole + whole.partition(b"\n")[0] + b"\n")
    assert benchmark_runners.judge(runs, target, expected) == "0 results lost, 1 doubled"


def test_runners_that_ignore_claims_are_detected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fcntl.flock", lambda *_: None)
    outcome = benchmark_runners.run("seed 0", tmp_path, kills=2, seeds=4)
    assert any("doubled" in failure or "torn" in failure for failure in outcome.failures)
