"""`leapts datasets` lists, fetches and simulates."""

import json
from pathlib import Path

import pytest

from leapts.datasets.catalogue import catalogue
from tests.cli.conftest import FEW_STEPS, Leapts


def test_list_has_the_whole_catalogue(leapts: Leapts) -> None:
    out = leapts("datasets", "list").out
    assert all(name in out for name in catalogue())
    assert [row["name"] for row in json.loads(leapts("datasets", "list", "--json").out)["datasets"]] == list(
        catalogue()
    )


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_simulated_scenario_can_be_fitted(leapts: Leapts, tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"scenario{suffix}"
    result = leapts("datasets", "make", "scenario2", "--out", file, "--steps", 80)
    assert (result.code, result.out, result.err) == (0, f"{file}\n", "")
    answer = json.loads(leapts("fit", file, "--horizon", 4, "--out", tmp_path / "m", *FEW_STEPS, "--json").out)
    assert answer["series"] == 3


def test_fetch_copies_files_from_a_folder(leapts: Leapts, tmp_path: Path) -> None:
    source, target = tmp_path / "from", tmp_path / "to"
    source.mkdir()
    unchecked = next(row for row in catalogue().values() if row.files and row.files[0].checksum is None)
    (source / unchecked.files[0].name).write_bytes(b"anything")
    result = leapts("datasets", "fetch", unchecked.name, "--from", source, "--to", target)
    assert (result.code, result.err) == (0, "")
    assert str(target / unchecked.files[0].name) in result.out
