import json
import multiprocessing
from pathlib import Path

import pytest

from leapts.errors import ConfigError
from leapts_bench import results
from leapts_bench.runs import Run
from tests.bench.conftest import tiny_run


def _append_many(path: Path, writer: int, count: int) -> None:
    for number in range(count):
        results.append(path, {"writer": writer, "number": number, "padding": "x" * 5000})


@pytest.mark.slow
def test_concurrent_writes_are_complete(tmp_path: Path) -> None:
    path = tmp_path / "suite.jsonl"
    fork = multiprocessing.get_context("spawn")
    writers = [fork.Process(target=_append_many, args=(path, writer, 40)) for writer in range(3)]
    for process in writers:
        process.start()
    for process in writers:
        process.join()
    lines = results.read(path)
    assert len(path.read_text().splitlines()) == len(lines) == 120
    for writer in range(3):
        assert [line["number"] for line in lines if line["writer"] == writer] == list(range(40))


def test_a_truncated_line_is_ignored_and_removed(tmp_path: Path) -> None:
    path = tmp_path / "suite.jsonl"
    results.append(path, {"key": "a"})
    with path.open("a") as file:
        file.write('{"key": "b", "tes')
    assert results.read(path) == [{"key": "a"}]
    results.append(path, {"key": "c"})
    assert [json.loads(line)["key"] for line in path.read_text().splitlines()] == ["a", "c"]


def test_a_missing_file_has_no_lines(tmp_path: Path) -> None:
    assert results.read(tmp_path / "none.jsonl") == []
    assert results.finished(tmp_path) == {}


def test_trials_of_a_search_are_not_finished_runs(tmp_path: Path) -> None:
    results.append(tmp_path / "search.jsonl", {"key": "a", "validation": {}})
    results.append(tmp_path / "main.jsonl", {"key": "b", "test": {}})
    assert set(results.finished(tmp_path)) == {"b"}


def _line(run: Run, *, stopped_early: bool) -> results.Line:
    test = {"mse": 1.0 + stopped_early}
    return {
        "key": run.key,
        "run": run.model_dump(mode="json"),
        "test": test,
        "training": {"stopped_early": stopped_early},
    }


def _with_patience(run: Run, patience: int) -> Run:
    return run.model_copy(update={"training": run.training.model_copy(update={"patience": patience})})


def test_a_run_that_was_not_stopped_early_replaces_one_without_patience(tmp_path: Path) -> None:
    patient, plain = (_with_patience(tiny_run(), patience) for patience in (3, 0))
    line = _line(patient, stopped_early=False)
    results.append(tmp_path / "baselines.jsonl", line)
    assert results.finished(tmp_path) == {patient.key: line, plain.key: line}
    assert results.cut_short(tmp_path) == {}


def test_a_run_that_was_stopped_early_is_repeated(tmp_path: Path) -> None:
    patient, plain = (_with_patience(tiny_run(), patience) for patience in (3, 0))
    line = _line(patient, stopped_early=True)
    results.append(tmp_path / "baselines.jsonl", line)
    assert results.finished(tmp_path) == {patient.key: line}
    assert results.cut_short(tmp_path) == {plain.key: line}


def test_patience_that_ends_at_the_last_check_is_no_early_stop(tmp_path: Path) -> None:
    patient, plain = (_with_patience(tiny_run(), patience) for patience in (3, 0))
    line = _line(patient, stopped_early=True)
    looks = patient.training.looks
    whole = {**line, "training": {**line["training"], "validations": [[step, 1.0] for step in range(looks)]}}
    results.append(tmp_path / "baselines.jsonl", whole)
    assert set(results.finished(tmp_path)) == {patient.key, plain.key}
    assert not results.cut_short(tmp_path)


def test_two_results_of_one_run_must_agree(tmp_path: Path) -> None:
    results.append(tmp_path / "a.jsonl", {"key": "a", "test": {"mse": 1.0, "leaps": None}})
    results.append(tmp_path / "b.jsonl", {"key": "a", "test": {"mse": 1.0 + 1e-15, "leaps": None}})
    assert set(results.finished(tmp_path)) == {"a"}
    results.append(tmp_path / "c.jsonl", {"key": "a", "test": {"mse": 0.9, "leaps": None}})
    with pytest.raises(ConfigError, match="two results of one run, a, differ"):
        results.finished(tmp_path)


def test_one_process_at_a_time_holds_a_claim(tmp_path: Path) -> None:
    with results.claimed(tmp_path, "a") as first:
        assert first
        with results.claimed(tmp_path, "a") as second, results.claimed(tmp_path, "b") as other:
            assert not second
            assert other
    with results.claimed(tmp_path, "a") as again:
        assert again


def test_a_result_has_its_commit() -> None:
    made_by = results.provenance()
    assert set(made_by) == {"commit", "changed", "versions"}
    assert "torch" in made_by["versions"]
