"""Read files, and replace files and folders atomically: a crash leaves the old one or the new one."""

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

_MAX_LINKS = 40  # as in Linux
_AT_FDCWD = -100
_RENAME_EXCHANGE = 2

# Errors that mean that a system does not support an operation; Windows cannot open folders.
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
    """Write a file atomically: to a temporary file in the same folder, synced, then renamed.

    An existing file keeps its permissions, and a symbolic link stays a link. Pipes and devices are written directly.

    Raises:
        OSError: With the name of the target, which is unchanged.
    """
    with _errors_name(target):
        place = _replaceable(target)
        if _is_special(target):
            target.write_bytes(content)
            return
        temporary = _beside(place)
        try:
            _write_synced(temporary, content, mode=_mode(place))
            temporary.replace(place)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    _try_to_sync_folder(place.parent)


def try_writing(target: Path) -> None:
    """Check that a file or folder could be written or replaced, and leave none.

    Raises:
        OSError: With the name of the target.
    """
    with _errors_name(target):
        place = _replaceable(target)
        if not _is_special(target):
            temporary = _beside(place)
            temporary.touch(exist_ok=False)
            temporary.unlink()


def _replaceable(target: Path) -> Path:
    """Follow links at the end of a path, and check that the file or folder there may be replaced.

    A link that another user left in a shared folder such as /tmp is refused, as it may lead anywhere. So are files and
    folders that are read-only for this user: a rename alone would replace them.
    """
    place = target
    for _ in range(_MAX_LINKS):
        if not place.is_symlink():
            break
        link, folder = place.lstat(), place.parent.stat()
        is_shared = folder.st_mode & stat.S_ISVTX and folder.st_mode & stat.S_IWOTH
        if is_shared and link.st_uid not in (os.geteuid(), folder.st_uid):
            raise PermissionError(errno.EACCES, "it is a link that another user left in a shared folder", str(target))
        place = place.parent / place.readlink()
    needed = os.W_OK | os.X_OK if place.is_dir() else os.W_OK
    if place.exists() and not os.access(place, needed, effective_ids=os.access in os.supports_effective_ids):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(target))
    return place


def _is_special(target: Path) -> bool:
    """Whether the target is a pipe or a device; links to unnamed pipes cannot be resolved."""
    return target.exists() and not target.is_file() and not target.is_dir()


def write_folder(target: Path, files: Mapping[str, bytes]) -> None:
    """Create or replace a folder atomically; a symbolic link to a folder stays a link.

    A replaced folder and its files keep their permissions; a file that it did not have gets the permissions common to
    all of its files. New folders follow the umask.

    Raises:
        OSError: With the name of the target, which is unchanged.
    """
    with _errors_name(target):
        target = _replaceable(target)
        temporary = _beside(target)
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
            _try_to_sync_folder(target.parent)
        finally:
            # The temporary folder is now the old one, or an incomplete new one.
            shutil.rmtree(temporary, ignore_errors=True)


def move_file(source: Path, target: Path) -> None:
    """Rename a synced file, and sync its folder."""
    source.replace(target)
    _try_to_sync_folder(target.parent)


@contextlib.contextmanager
def claimed(folder: Path) -> Iterator[None]:
    """Lock a folder for this process; it is created if missing, and removed if it stays empty.

    The lock is on the folder itself: it ends with the process and leaves no file behind.

    Raises:
        FolderInUseError: When another process holds the lock.
        OSError: With the name of the folder, when it cannot be created.
    """
    is_new = not folder.exists()
    if not is_new and not folder.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, "it is a file; choose a folder or a new name", str(folder))
    with _errors_name(folder):
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
    """Lock a folder and return its descriptor; None if the system has no locks or the folder cannot be opened."""
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
def _errors_name(target: Path) -> Iterator[None]:
    """Replace the temporary name in errors by the target's."""
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
    private = 0o666 if mode is None else 0o600
    # Exclusive creation follows no link; all else uses the descriptor, so that the name may change meanwhile.
    with open(path, "xb", opener=lambda name, flags: os.open(name, flags, private)) as file:
        file.write(content)
        if mode is not None and hasattr(os, "fchmod"):
            os.fchmod(file.fileno(), mode)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    """Make the names in a folder survive a power failure; ignored on systems that cannot sync folders."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno not in _CANNOT:
            raise


def _try_to_sync_folder(folder: Path) -> None:
    """Sync a folder after a rename; if that fails, a power failure may restore the old version, which is complete."""
    with contextlib.suppress(OSError):
        _sync_folder(folder)


def _exchange(one: Path, other: Path) -> None:
    """Swap two folders: atomically on Linux, by three renames elsewhere."""
    if _swap_atomically(one, other):
        return
    aside = _beside(other)
    other.rename(aside)
    try:
        one.rename(other)
    except BaseException:
        aside.rename(other)
        raise
    aside.rename(one)


def _swap_atomically(one: Path, other: Path) -> bool:
    """Swap two folders if the system can; returns whether it did."""
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None) if os.name == "posix" else None
    if rename is None:
        return False
    if rename(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE) == 0:
        return True
    if (number := ctypes.get_errno()) in _CANNOT:
        return False
    raise OSError(number, os.strerror(number), str(other))
