"""Files and folders are replaced whole or not at all, and nothing is left lying about."""

import errno
import os
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from leapts import files
from leapts.errors import FolderInUseError
from leapts.files import claimed, move_file, try_writing, write_file, write_folder


def _contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_file_is_replaced(tmp_path: Path) -> None:
    write_file(tmp_path / "a", b"old")
    write_file(tmp_path / "a", b"new")
    assert _contents(tmp_path) == {"a": b"new"}


def test_a_link_to_a_file_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "latest").symlink_to("a")
    for content in (b"first", b"second"):  # before and after there is something that it leads to
        write_file(tmp_path / "latest", content)
        assert (tmp_path / "latest").is_symlink()
        assert (tmp_path / "a").read_bytes() == content


@pytest.mark.skipif(os.name == "nt", reason="files there have no such modes")
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o755])
def test_who_may_read_a_file_may_read_the_new_one(mode: int, tmp_path: Path) -> None:
    write_file(tmp_path / "a", b"old")
    (tmp_path / "a").chmod(mode)
    write_file(tmp_path / "a", b"new")
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == mode


@pytest.fixture
def umask() -> Iterator[Callable[[int], None]]:
    before = os.umask(0o022)
    yield lambda mask: (os.umask(mask), None)[1]
    os.umask(before)


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
@pytest.mark.parametrize("swaps", [True, False])
def test_replacing_keeps_permissions_whatever_the_umask(
    swaps: bool, tmp_path: Path, umask: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    if not swaps:
        monkeypatch.setattr(files, "_swap_atomically", lambda *_: False)
    umask(0o077)
    write_folder(tmp_path / "m", {"a": b"1"})
    write_file(tmp_path / "f", b"1")
    umask(0o022)
    write_folder(tmp_path / "m", {"a": b"2", "b": b"2"})
    write_file(tmp_path / "f", b"2")
    modes = {name: _mode(tmp_path / name) for name in ("m", "m/a", "m/b", "f")}
    assert modes == {"m": 0o700, "m/a": 0o600, "m/b": 0o600, "f": 0o600}
    umask(0o077)
    (tmp_path / "m").chmod(0o750)
    (tmp_path / "m" / "a").chmod(0o640)
    write_folder(tmp_path / "m", {"a": b"3"})
    assert (_mode(tmp_path / "m"), _mode(tmp_path / "m" / "a")) == (0o750, 0o640)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
@pytest.mark.parametrize(("mask", "folder", "file"), [(0o022, 0o755, 0o644), (0o077, 0o700, 0o600)])
def test_new_files_and_folders_follow_the_umask(
    mask: int, folder: int, file: int, tmp_path: Path, umask: Callable[[int], None]
) -> None:
    umask(mask)
    write_folder(tmp_path / "m", {"a": b"1"})
    write_file(tmp_path / "f", b"1")
    assert [_mode(tmp_path / name) for name in ("m", "m/a", "f")] == [folder, file, file]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
def test_a_private_file_is_private_while_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_file(tmp_path / "f", b"1")
    (tmp_path / "f").chmod(0o600)
    seen = []
    monkeypatch.setattr(os, "fchmod", lambda descriptor, _: seen.append(stat.S_IMODE(os.fstat(descriptor).st_mode)))
    write_file(tmp_path / "f", b"2")
    assert seen == [0o600]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_a_pipe_is_written_into(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    try_writing(tmp_path / "pipe")
    write_file(tmp_path / "pipe", b"content")
    assert os.read(reader, 100) == b"content"
    os.close(reader)
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="pipes without a name have no path")
def test_a_pipe_without_a_name_is_written_into(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    (tmp_path / "out").symlink_to(f"/dev/fd/{writer}")
    for target in (Path(f"/dev/fd/{writer}"), tmp_path / "out"):
        try_writing(target)
        write_file(target, b"content")
        assert os.read(reader, 100) == b"content"
    os.close(reader)
    os.close(writer)


def test_links_in_a_circle_are_no_reason_to_fail(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    write_file(tmp_path / "a", b"content")
    assert (tmp_path / "a").read_bytes() == b"content"


def test_trying_leaves_nothing_and_names_what_was_asked_for(tmp_path: Path) -> None:
    try_writing(tmp_path / "a")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(OSError, match="nowhere") as caught:
        try_writing(tmp_path / "nowhere" / "a")
    assert caught.value.filename == str(tmp_path / "nowhere" / "a")


def test_a_folder_is_replaced_with_all_it_held(tmp_path: Path) -> None:
    write_folder(tmp_path / "m", {"a": b"1", "b": b"2"})
    write_folder(tmp_path / "m", {"a": b"3"})
    assert _contents(tmp_path) == {"m/a": b"3"}


def test_a_folder_is_replaced_where_the_system_cannot_swap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_swap_atomically", lambda *_: False)
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
        monkeypatch.setattr("builtins.open", fail)
    with pytest.raises(OSError, match="no space left"):
        write_file(tmp_path / "a", b"new")
    with pytest.raises(OSError, match="no space left"):
        write_folder(tmp_path / "m", {"a": b"new", "b": b"new"})
    monkeypatch.undo()
    assert _contents(tmp_path) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "m"]


def test_an_error_names_what_was_asked_for_not_the_temporary_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(FileNotFoundError) as missing:
        write_file(tmp_path / "no" / "a", b"new")
    assert (missing.value.filename, missing.value.filename2) == (str(tmp_path / "no" / "a"), None)

    def fail(path: Path, target: Path) -> None:
        raise OSError(errno.EXDEV, "cross-device link", str(path), None, str(target))

    monkeypatch.setattr(Path, "rename", fail)
    with pytest.raises(OSError, match="cross-device") as moved:
        write_folder(tmp_path / "m", {"a": b"new"})
    assert (moved.value.filename, moved.value.filename2) == (str(tmp_path / "m"), None)
    assert list(tmp_path.iterdir()) == []


def test_an_error_without_a_number_is_left_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError("refused")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match=r"^refused$") as caught:
        write_file(tmp_path / "a", b"new")
    assert caught.value.filename is None
    assert list(tmp_path.iterdir()) == []


def _synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of what is synced from now on, in order, with the content that files have at that time."""
    seen = []
    plain = os.fsync

    def fsync(descriptor: int) -> None:
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        plain(descriptor)
        seen.append(f"{path.name} {path.read_text()}" if path.is_file() else path.name)

    monkeypatch.setattr("os.fsync", fsync)
    return seen


def test_what_is_written_is_synced_before_it_is_moved_and_its_folder_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = _synced(monkeypatch)
    write_file(tmp_path / "a", b"new")
    assert [name.partition(" ")[2] for name in seen] == ["new", ""]
    assert seen[-1] == tmp_path.name
    seen.clear()
    write_folder(tmp_path / "m", {"a": b"1", "b": b"2"})
    assert seen[:2] == ["a 1", "b 2"]
    assert seen[2].startswith(".m.")
    assert seen[3:] == [tmp_path.name]
    seen.clear()
    move_file(tmp_path / "a", tmp_path / "b")
    assert seen == [tmp_path.name]
    assert (tmp_path / "b").read_bytes() == b"new"


def test_files_are_closed(tmp_path: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(3):
        write_folder(tmp_path / "m", {"a": b"1"})
    assert len(list(Path("/proc/self/fd").iterdir())) == before


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EBADF])
def test_systems_that_sync_no_folders_are_written_to_all_the_same(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = os.open

    def refuse(path: str | Path, *arguments: Any, **options: Any) -> int:
        if Path(path).is_dir():
            raise OSError(number, "no folders here")
        return plain(path, *arguments, **options)

    monkeypatch.setattr("os.open", refuse)
    write_folder(tmp_path / "m", {"a": b"1"})
    assert _contents(tmp_path) == {"m/a": b"1"}


@pytest.mark.parametrize("number", [errno.EIO, errno.EACCES, errno.EPERM])
def test_a_folder_that_cannot_be_synced_before_the_move_is_an_error_and_after_it_is_not(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = os.open

    def broken(path: str | Path, *arguments: Any, **options: Any) -> int:
        is_wanted = Path(path).name == wanted or (wanted == "." and Path(path).name.startswith("."))
        if is_wanted and "dir_fd" not in options:  # which is how folders are removed
            raise OSError(number, "broken")
        return plain(path, *arguments, **options)

    monkeypatch.setattr("os.open", broken)
    wanted = tmp_path.name
    write_folder(tmp_path / "m", {"a": b"1"})
    assert _contents(tmp_path) == {"m/a": b"1"}
    wanted = "."
    with pytest.raises(OSError, match="broken"):
        write_folder(tmp_path / "m", {"a": b"2"})
    assert _contents(tmp_path) == {"m/a": b"1"}


def test_a_link_to_a_folder_stays_a_link(tmp_path: Path) -> None:
    write_folder(tmp_path / "m", {"a": b"old"})
    (tmp_path / "link").symlink_to("m")
    write_folder(tmp_path / "link", {"a": b"new"})
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "m" / "a").read_bytes() == b"new"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux swaps in one step")
def test_linux_swaps_in_one_step_or_says_what_is_in_the_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("one", "other"):
        write_folder(tmp_path / name, {"name": name.encode()})
    assert files._swap_atomically(tmp_path / "one", tmp_path / "other")
    assert (tmp_path / "one" / "name").read_bytes() == b"other"
    with pytest.raises(FileNotFoundError, match="missing"):
        files._swap_atomically(tmp_path / "one", tmp_path / "missing")
    monkeypatch.setattr(files, "_RENAME_EXCHANGE", 1 << 20)  # an operation that no system knows
    assert not files._swap_atomically(tmp_path / "one", tmp_path / "other")
    monkeypatch.setattr("ctypes.CDLL", lambda *_, **__: object())
    assert not files._swap_atomically(tmp_path / "one", tmp_path / "other")


def test_an_exchange_that_fails_in_the_middle_is_undone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_folder(tmp_path / "m", {"a": b"old"})
    monkeypatch.setattr(files, "_swap_atomically", lambda *_: False)
    rename = Path.rename

    def fail(path: Path, target: Path) -> Path:
        if target == tmp_path / "m" and (path / "a").read_bytes() == b"new":
            raise OSError(errno.ENOSPC, "no space left")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", fail)
    with pytest.raises(OSError, match="no space left"):
        write_folder(tmp_path / "m", {"a": b"new"})
    assert _contents(tmp_path) == {"m/a": b"old"}


def test_a_claim_makes_the_folder_and_leaves_it_only_with_something_in_it(tmp_path: Path) -> None:
    folder = tmp_path / "not" / "there"
    with claimed(folder):
        assert folder.is_dir()
    assert not folder.exists()
    with claimed(folder):
        (folder / "a").touch()
    assert folder.is_dir()
    (folder / "a").unlink()
    with claimed(folder):
        pass
    assert folder.is_dir()


def test_what_is_claimed_is_refused_to_others_until_it_is_free(tmp_path: Path) -> None:
    pytest.importorskip("fcntl")
    with claimed(tmp_path):
        for _ in range(2):
            with pytest.raises(FolderInUseError, match="is in use by another fit; wait until that is done"):
                claimed(tmp_path).__enter__()
    with pytest.raises(ZeroDivisionError), claimed(tmp_path):
        raise ZeroDivisionError
    with claimed(tmp_path):
        pass


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_claim_leaves_nothing_open(tmp_path: Path) -> None:
    def is_open() -> int:
        return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - the folder changes while it is read

    before = is_open()
    with claimed(tmp_path):
        held = is_open()
        with pytest.raises(FolderInUseError):
            claimed(tmp_path).__enter__()
        assert is_open() == held == before + 1
    assert is_open() == before


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that every user may write to."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        yield Path(folder)


@pytest.fixture
def as_nobody() -> Iterator[Callable[[], None]]:
    """Continue as a user without privileges; tests that are run by such a user do so anyway."""
    before = os.geteuid()
    yield lambda: os.seteuid(65534) if before == 0 else None
    os.seteuid(before)


POSIX = pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
AS_ROOT = pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs files of two users")


@POSIX
def test_read_only_files_and_folders_are_not_replaced(shared: Path, as_nobody: Callable[[], None]) -> None:
    as_nobody()
    write_file(shared / "f", b"old")
    write_folder(shared / "m", {"a": b"old"})
    before = _contents(shared)
    (shared / "f").chmod(0o444)
    (shared / "m").chmod(0o555)
    for replace in (lambda target: write_file(target, b"new"), try_writing):
        with pytest.raises(PermissionError) as caught:
            replace(shared / "f")
        assert caught.value.filename == str(shared / "f")
    for replace in (lambda target: write_folder(target, {"a": b"new"}), try_writing):
        with pytest.raises(PermissionError) as caught:
            replace(shared / "m")
        assert caught.value.filename == str(shared / "m")
    assert _contents(shared) == before
    assert sorted(path.name for path in shared.iterdir()) == ["f", "m"]
    (shared / "m").chmod(0o755)


@AS_ROOT
def test_a_folder_of_another_user_is_not_replaced(shared: Path, as_nobody: Callable[[], None]) -> None:
    write_folder(shared / "m", {"a": b"old"})
    as_nobody()
    with pytest.raises(PermissionError) as caught:
        write_folder(shared / "m", {"a": b"new"})
    assert caught.value.filename == str(shared / "m")
    assert _contents(shared) == {"m/a": b"old"}
    assert [path.name for path in shared.iterdir()] == ["m"]


@POSIX
def test_a_folder_without_write_permission_is_not_written_to(shared: Path, as_nobody: Callable[[], None]) -> None:
    as_nobody()
    (shared / "locked").mkdir(mode=0o555)
    for write in (lambda target: write_file(target, b"new"), lambda target: write_folder(target, {}), try_writing):
        with pytest.raises(PermissionError) as caught:
            write(shared / "locked" / "a")
        assert caught.value.filename == str(shared / "locked" / "a")


@AS_ROOT
@pytest.mark.parametrize("leads_to", ["mine", "new"])
def test_a_link_that_another_user_left_in_a_shared_folder_is_not_followed(leads_to: str, tmp_path: Path) -> None:
    folder, own = tmp_path / "shared", tmp_path / "own"
    folder.mkdir()
    folder.chmod(0o1777)
    own.mkdir()
    (own / "mine").write_bytes(b"precious")
    (folder / "out.csv").symlink_to(own / leads_to)
    os.lchown(folder / "out.csv", 65534, 65534)
    for write in (lambda target: write_file(target, b"new"), lambda target: write_folder(target, {}), try_writing):
        with pytest.raises(PermissionError, match="link that another user left") as caught:
            write(folder / "out.csv")
        assert caught.value.filename == str(folder / "out.csv")
    assert _contents(own) == {"mine": b"precious"}
    os.lchown(folder / "out.csv", 0, 0)  # a link of one's own is followed
    write_file(folder / "out.csv", b"new")
    assert (own / leads_to).read_bytes() == b"new"


def test_a_link_that_appears_while_a_file_is_written_is_replaced_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "precious").write_bytes(b"precious")
    sync = os.fsync

    def swap(descriptor: int) -> None:
        if not (tmp_path / "out").is_symlink():
            (tmp_path / "out").symlink_to("precious")
        sync(descriptor)

    monkeypatch.setattr("os.fsync", swap)
    write_file(tmp_path / "out", b"new")
    assert _contents(tmp_path) == {"out": b"new", "precious": b"precious"}


def test_a_link_under_the_temporary_name_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "precious").write_bytes(b"precious")
    (tmp_path / ".out.guessed").symlink_to("precious")
    monkeypatch.setattr("secrets.token_hex", lambda _: "guessed")
    with pytest.raises(FileExistsError):
        write_file(tmp_path / "out", b"new")
    assert (tmp_path / "precious").read_bytes() == b"precious"
