"""A short share of crash consistency, disk errors, full disks and power loss."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from leapts import files
from leapts_qa import crash_consistency, full_disk, power_loss
from leapts_qa.writers import FEW, OPERATIONS

traced = pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace: apt-get install strace")
rooted = pytest.mark.skipif(os.getuid() != 0, reason="only root may mount a disk")


@traced
@pytest.mark.parametrize("name", ["save", "append", "fetch"])
def test_a_kill_at_any_system_call_leaves_the_old_or_the_new_version(name: str, tmp_path: Path) -> None:
    outcome = crash_consistency.run_kills(name, tmp_path, versions=FEW, stride=9 if name == "save" else 4)
    assert not outcome.failures
    assert outcome.cases >= 4


@traced
@pytest.mark.parametrize("unit", ["save EIO", "append ENOSPC", "fetch EDQUOT"])
def test_a_disk_error_is_reported_and_the_old_version_stays(unit: str, tmp_path: Path) -> None:
    outcome = crash_consistency.run_failures(unit, tmp_path, stride=4)
    assert not outcome.failures
    assert outcome.ends["old version kept, error reported"] >= 4


@traced
def test_a_line_left_after_an_error_is_detected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.ftruncate", lambda *_: None)
    assert crash_consistency.run_failures("append EIO", tmp_path, stride=2).failures


@traced
@pytest.mark.parametrize("name", OPERATIONS)
def test_a_power_loss_leaves_the_old_or_the_new_version(name: str, tmp_path: Path) -> None:
    outcome = power_loss.run(f"{name} seed 0", tmp_path, states=100)
    assert not outcome.failures
    assert outcome.figures["distinct disk states"] > 3


@pytest.mark.slow
@traced
@pytest.mark.parametrize(("name", "syncs"), [("save", 5), ("checkpoint", 2), ("append", 1)])
def test_every_sync_is_needed(name: str, syncs: int, tmp_path: Path) -> None:
    for number in range(1, syncs + 1):
        (tmp_path / str(number)).mkdir()
        outcome = power_loss.run(f"{name} seed 0", tmp_path / str(number), states=100, without=-number)
        assert outcome.failures, f"nothing was lost without the {number}. sync from the end"


@rooted
@pytest.mark.parametrize("unit", ["append full", "fetch read-only", "save not ours", "commands full"])
def test_the_old_version_stays_where_nothing_can_be_written(unit: str) -> None:
    # Not pytest's own folder: only its owner may enter that, and here somebody else has to.
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        folder.chmod(0o755)
        outcome = full_disk.run(unit, folder)
    assert not outcome.failures
    assert outcome.cases


def test_a_swap_that_fails_in_the_middle_is_undone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files.write_folder(tmp_path / "m", {"a": b"old"})
    monkeypatch.setattr(files, "_swap_atomically", lambda *_: False)
    rename = Path.rename

    def fail_once(path: Path, target: Path) -> Path:
        if target == tmp_path / "m" and (path / "a").read_bytes() == b"new":
            raise OSError(28, "No space left on device")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", fail_once)
    with pytest.raises(OSError, match=r"No space left on device: '.*/m'"):
        files.write_folder(tmp_path / "m", {"a": b"new"})
    assert (tmp_path / "m" / "a").read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["m"]
