"""Files and folders are replaced whole or not at all, and nothing is left lying about."""

from pathlib import Path

import pytest

from leapts import files
from leapts.files import write_file, write_folder


def _contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_file_is_replaced(tmp_path: Path) -> None:
    write_file(tmp_path / "a", b"old")
    write_file(tmp_path / "a", b"new")
    assert _contents(tmp_path) == {"a": b"new"}


def test_a_folder_is_replaced_with_all_it_held(tmp_path: Path) -> None:
    write_folder(tmp_path / "m", {"a": b"1", "b": b"2"})
    write_folder(tmp_path / "m", {"a": b"3"})
    assert _contents(tmp_path) == {"m/a": b"3"}


def test_a_folder_is_replaced_where_the_system_cannot_swap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_swap_in_one_step", lambda *_: False)
    write_folder(tmp_path / "m", {"a": b"1", "b": b"2"})
    write_folder(tmp_path / "m", {"a": b"3"})
    assert _contents(tmp_path) == {"m/a": b"3"}


@pytest.mark.parametrize("call", ["fsync", "open"])
def test_a_failure_leaves_the_old_state_and_nothing_else(
    tmp_path: Path, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_file(tmp_path / "a", b"old")
    write_folder(tmp_path / "m", {"a": b"old"})
    before = _contents(tmp_path)

    def fail(*_: object, **__: object) -> None:
        raise OSError("no space left")

    if call == "fsync":
        monkeypatch.setattr("os.fsync", fail)
    else:
        monkeypatch.setattr(Path, "open", fail)
    with pytest.raises(OSError, match="no space left"):
        write_file(tmp_path / "a", b"new")
    with pytest.raises(OSError, match="no space left"):
        write_folder(tmp_path / "m", {"a": b"new", "b": b"new"})
    monkeypatch.undo()
    assert _contents(tmp_path) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "m"]
