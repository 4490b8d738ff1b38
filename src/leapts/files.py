"""Writing files and folders so that a crash leaves the old one or the new one, never something in between."""

import contextlib
import ctypes
import os
import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2


def write_file(target: Path, content: bytes) -> None:
    """Put the content in place: written beside the target, synced, and moved there in one step."""
    temporary = _beside(target)
    try:
        _write_synced(temporary, content)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


def write_folder(target: Path, files: Mapping[str, bytes]) -> None:
    """Put a whole folder in place, instead of the one that is there, if any; a link to a folder stays a link."""
    target = target.resolve()
    temporary = _beside(target)
    try:
        temporary.mkdir()
        for name, content in files.items():
            _write_synced(temporary / name, content)
        _sync_folder(temporary)
        if target.exists():
            _exchange(temporary, target)
        else:
            temporary.rename(target)
        _sync_folder(target.parent)
    finally:
        # What is left under the temporary name is the half-written new folder or the old one, no longer wanted.
        shutil.rmtree(temporary, ignore_errors=True)


def _beside(target: Path) -> Path:
    return target.with_name(f".{target.name}.{secrets.token_hex(8)}")


def _write_synced(path: Path, content: bytes) -> None:
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    """Make a rename last through a power cut; some systems cannot, and need not, sync folders."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _exchange(one: Path, other: Path) -> None:
    """Swap two folders: in one step where the system can (Linux), in three quick ones elsewhere."""
    if not _swap_in_one_step(one, other):
        aside = _beside(other)
        other.rename(aside)
        one.rename(other)
        aside.rename(one)


def _swap_in_one_step(one: Path, other: Path) -> bool:
    rename = getattr(ctypes.CDLL(None), "renameat2", None) if os.name == "posix" else None
    if rename is None:
        return False
    swapped: bool = rename(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE) == 0
    return swapped
