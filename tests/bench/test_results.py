import json
import multiprocessing
from pathlib import Path

from leapts_bench import results


def _append_many(path: Path, writer: int, count: int) -> None:
    for number in range(count):
        results.append(path, {"writer": writer, "number": number, "padding": "x" * 5000})


def test_processes_that_write_at_once_lose_and_tear_nothing(tmp_path: Path) -> None:
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


def test_a_line_cut_short_by_a_crash_is_neither_read_nor_kept(tmp_path: Path) -> None:
    path = tmp_path / "suite.jsonl"
    results.append(path, {"key": "a"})
    with path.open("a") as file:
        file.write('{"key": "b", "tes')
    assert results.read(path) == [{"key": "a"}]
    results.append(path, {"key": "c"})
    assert [json.loads(line)["key"] for line in path.read_text().splitlines()] == ["a", "c"]


def test_a_file_that_is_not_there_has_no_lines(tmp_path: Path) -> None:
    assert results.read(tmp_path / "none.jsonl") == []
    assert results.finished(tmp_path) == {}


def test_trials_of_a_search_are_not_finished_runs(tmp_path: Path) -> None:
    results.append(tmp_path / "search.jsonl", {"key": "a", "validation": {}})
    results.append(tmp_path / "main.jsonl", {"key": "b", "test": {}})
    assert set(results.finished(tmp_path)) == {"b"}


def test_a_claim_is_held_by_one_at_a_time_and_ends_with_its_block(tmp_path: Path) -> None:
    with results.claimed(tmp_path, "a") as first:
        assert first
        with results.claimed(tmp_path, "a") as second, results.claimed(tmp_path, "b") as other:
            assert not second
            assert other
    with results.claimed(tmp_path, "a") as again:
        assert again


def test_a_result_says_by_which_code_it_was_made() -> None:
    made_by = results.provenance()
    assert set(made_by) == {"commit", "changed", "versions"}
    assert "torch" in made_by["versions"]
