"""Read files, and replace files and folders in one step: a crash leaves the old one or the new one."""

import contextlib
import ctypes
import errno
import functools
import gzip
import io
import operator
import os
import secrets
import shutil
import stat
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from leapts.errors import DataError, FolderInUseError
from leapts.messages import listed

GZIP_MAGIC = b"\x1f\x8b"
_DECOMPRESSED_CHUNK = 1 << 22  # bytes
_ALWAYS_DECOMPRESSED = 1 << 26  # bytes that are decompressed whatever the ratio
_MAX_RATIO = 100  # of the decompressed to the compressed size; tables of numbers reach ten or twenty

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2

# What a system answers that knows no such operation, or not for such a thing; Windows opens no folders at all.
_CANNOT = {errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EBADF}
_CANNOT |= {errno.EACCES, errno.EPERM} if os.name == "nt" else set()


def read_file(path: Path) -> bytes:
    """Read a whole file.

    Raises:
        DataError: When it cannot be read, with the reason.
    """
    if path.is_dir():
        inside = sorted(entry.name for entry in path.iterdir() if entry.is_file())
        hint = f"; it holds {listed(inside)}" if inside else ""
        raise DataError(f"{path} is a directory; pass one file{hint}")
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise DataError(f"{path} does not exist; check the path (the working directory is {Path.cwd()})") from None
    except PermissionError:
        raise DataError(f"{path} may not be read by this user; change its permissions") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror}); check the path") from error


def decompress(content: bytes, name: str) -> bytes:
    """Decompress gzip data; `name` is the file's name in messages.

    Raises:
        DataError: When the data are damaged, or expand more than any table would.
    """
    parts: list[bytes] = []
    size = 0
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as file:
            while part := file.read(_DECOMPRESSED_CHUNK):
                parts.append(part)
                size += len(part)
                if size > _ALWAYS_DECOMPRESSED and size > _MAX_RATIO * len(content):
                    raise DataError(
                        f"{name}: the gzip data expand to more than {_MAX_RATIO} times their size, as no table does; "
                        "decompress the file and inspect it"
                    )
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{name}: the gzip data are cut off or damaged ({error}); copy the file again") from error
    return b"".join(parts)


def write_file(target: Path, content: bytes) -> None:
    """Put the content in place: written beside the target, synced, and moved there in one step.

    A link stays a link, and who may read a file that is there may read the new one. Into a pipe, or what else is no
    ordinary file, the content is written as it is.

    Raises:
        OSError: Naming the target, which is then as it was.
    """
    with _blamed_on(target):
        if _is_special(target):
            target.write_bytes(content)
            return
        place = Path(os.path.realpath(target))  # which leaves links that lead in a circle to the system
        temporary = _beside(place)
        try:
            _write_synced(temporary, content, mode=_mode(place))
            temporary.replace(place)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    _sync_what_is_done(place.parent)


def try_writing(target: Path) -> None:
    """See whether a file could be put in place there, and leave none.

    Raises:
        OSError: Naming the target.
    """
    with _blamed_on(target):
        if not _is_special(target):
            temporary = _beside(Path(os.path.realpath(target)))
            temporary.touch(exist_ok=False)
            temporary.unlink()


def _is_special(target: Path) -> bool:
    """A pipe or a device. Asked before links are followed: where a pipe has no name, they lead nowhere."""
    return target.exists() and not target.is_file() and not target.is_dir()


def write_folder(target: Path, files: Mapping[str, bytes]) -> None:
    """Replace a whole folder, or create it; a link to a folder stays a link.

    A folder that is replaced keeps its permissions, and so do its files; new ones follow the umask. A file that the old
    folder did not have gets the permissions that all of its files had.

    Raises:
        OSError: Naming the target, which is then as it was.
    """
    target = target.resolve()
    temporary = _beside(target)
    with _blamed_on(target):
        try:
            mode = _mode(target)
            temporary.mkdir(mode=0o777 if mode is None else 0o700)
            modes = _modes_inside(target)
            common = functools.reduce(operator.and_, modes.values()) if modes else None
            for name, content in files.items():
                _write_synced(temporary / name, content, mode=modes.get(name, common))
            _sync_folder(temporary)
            if mode is None:
                temporary.rename(target)
            else:
                temporary.chmod(mode)
                _exchange(temporary, target)
            _sync_what_is_done(target.parent)
        finally:
            # What is left under the temporary name is the half-written new folder or the old one, no longer wanted.
            shutil.rmtree(temporary, ignore_errors=True)


def move_file(source: Path, target: Path) -> None:
    """Move a file that is written and synced to its place, for good."""
    source.replace(target)
    _sync_what_is_done(target.parent)


@contextlib.contextmanager
def claimed(folder: Path) -> Iterator[None]:
    """Keeps a folder for this process, as far as those go that ask too; made if missing, and removed if left empty.

    The claim is a lock on the folder itself: it ends with the process, however that ends, and leaves no file behind.

    Raises:
        FolderInUseError: When another process holds it.
        OSError: Naming the folder, when there is none and it cannot be made.
    """
    is_new = not folder.exists()
    if not is_new and not folder.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, "it is a file; name a folder, or one that is to be made", str(folder))
    with _blamed_on(folder):
        folder.mkdir(parents=True, exist_ok=True)
    descriptor = _locked(folder)
    try:
        yield
    finally:
        if is_new:
            with contextlib.suppress(OSError):
                folder.rmdir()
        if descriptor is not None:
            os.close(descriptor)


def _locked(folder: Path) -> int | None:
    """What holds the lock; none where the system has no such locks, or the folder cannot be opened to be locked."""
    try:
        import fcntl
    except ImportError:
        return None
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise FolderInUseError(
            f"{folder} is in use by another fit; wait until that is done, or choose another folder"
        ) from None
    except OSError:
        pass  # a file system without locks
    return descriptor


def _beside(target: Path) -> Path:
    return target.with_name(f".{target.name}.{secrets.token_hex(8)}")


@contextlib.contextmanager
def _blamed_on(target: Path) -> Iterator[None]:
    """Has an error name what the user asked for, not the temporary name that it befell."""
    try:
        yield
    except OSError as error:
        if error.errno is not None:
            error.filename, error.filename2 = str(target), None
        raise


def _mode(path: Path) -> int | None:
    """Read the permissions of a file or folder; None where there is none."""
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except OSError:
        return None


def _modes_inside(folder: Path) -> dict[str, int]:
    """Read the permissions of the files in a folder."""
    try:
        return {entry.name: stat.S_IMODE(entry.stat().st_mode) for entry in folder.iterdir() if entry.is_file()}
    except OSError:
        return {}


def _write_synced(path: Path, content: bytes, *, mode: int | None) -> None:
    """Write and sync a new file; with a mode, nobody else can read it before it has that mode."""
    path.touch(exist_ok=False, mode=0o666 if mode is None else 0o600)
    with path.open("wb") as file:
        file.write(content)
        if mode is not None:
            path.chmod(mode)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    """Make the names in a folder last through a power cut; some systems cannot, and need not, sync folders."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno not in _CANNOT:
            raise


def _sync_what_is_done(folder: Path) -> None:
    """Sync a folder the new is in already; should that fail, a power cut may bring the old back, which is as whole."""
    with contextlib.suppress(OSError):
        _sync_folder(folder)


def _exchange(one: Path, other: Path) -> None:
    """Swap two folders: in one step where the system can (Linux), in three quick ones elsewhere."""
    if _swap_in_one_step(one, other):
        return
    aside = _beside(other)
    other.rename(aside)
    try:
        one.rename(other)
    except BaseException:
        aside.rename(other)
        raise
    aside.rename(one)


def _swap_in_one_step(one: Path, other: Path) -> bool:
    """Whether it could be done; what stands in the way of any swap is raised."""
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None) if os.name == "posix" else None
    if rename is None:
        return False
    if rename(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE) == 0:
        return True
    if (number := ctypes.get_errno()) in _CANNOT:
        return False
    raise OSError(number, os.strerror(number), str(other))
