"""Full and read-only disks, and folders of other users, in small file systems that only the writer sees."""

import contextlib
import ctypes
import io
import os
import sys
from functools import partial
from pathlib import Path
from typing import Any

from leapts.cli import run as command_line
from leapts.errors import LeapTSError
from leapts_qa.forks import in_fork
from leapts_qa.outcome import Outcome
from leapts_qa.samples import waves
from leapts_qa.writers import FEW, OPERATIONS, Operation

PLACES = ("full", "read-only", "not ours")
UNITS = tuple(f"{name} {place}" for place in PLACES for name in (*OPERATIONS, "commands"))

_NEW_NAMESPACE, _READ_ONLY, _REMOUNT, _PRIVATE, _RECURSIVE = 0x20000, 1, 32, 1 << 18, 1 << 14
_NOBODY = 65534
_ROOM = 2_000_000


def run(unit: str, folder: Path) -> Outcome:
    """Write where nothing can be written."""
    name, _, place = unit.partition(" ")
    outcome = Outcome()
    (folder / "disk").mkdir()
    waves().to_csv(folder / "waves.csv", index=False)
    folder.chmod(0o755)
    attempt = partial(_commands, folder, place) if name == "commands" else partial(_operation, name, folder, place)
    ended = in_fork(attempt, seconds=120)
    for what, problem in ended.value or [(unit, ended.error or "did not end")]:
        if problem:
            outcome.fail(f"{what}: {problem}")
        else:
            outcome.count("error in one line, old version kept")
    return outcome


def _operation(name: str, folder: Path, place: str) -> list[tuple[str, str]]:
    """Run one writer of the library in the fork."""
    disk = folder / "disk"
    operation = OPERATIONS[name](FEW)
    _mount(disk)
    (disk / "place").mkdir()
    operation.put(disk / "place", 0)
    before = operation.state(disk / "place")
    _spoil(disk, place)
    try:
        operation.put(disk / "place", 1)
        problem = "nothing was said"
    except (OSError, LeapTSError) as error:
        problem = "" if "\n" not in str(error) else f"more than one line: {error}"
    except Exception as error:
        problem = repr(error)
    return [(f"{name} on a disk that is {place}", problem or _changed(operation, disk / "place", before))]


def _changed(operation: Operation, place: Path, before: str) -> str:
    if operation.state(place) != before:
        return "the old version is not there any more"
    left = operation.leftovers(place)
    return f"left {left}" if left else ""


def _commands(folder: Path, place: str) -> list[tuple[str, str]]:
    """Run the commands that write in the fork."""
    disk, data = folder / "disk", str(folder / "waves.csv")
    _mount(disk)
    few = ["--horizon", "3", "--input-size", "6", "--max-steps", "2"]
    written = {"model": disk / "model", "forecast": disk / "forecast.csv", "report": disk / "report.html"}
    commands = {
        "fit": ["fit", data, *few, "--out", str(written["model"])],
        "predict": ["predict", str(written["model"]), "-o", str(written["forecast"])],
        "report": ["report", str(written["model"]), data, "--out", str(written["report"])],
    }
    for arguments in commands.values():
        code, _, told = said(arguments)
        if code:
            return [(" ".join(arguments[:1]), f"cannot be tried: {told}")]
    before = _contents(disk)
    _spoil(disk, place)
    found = []
    for name, arguments in commands.items():
        code, _, told = said(arguments)
        lines = [line for line in told.splitlines() if line.startswith("error")]
        problem = "" if code == 2 and len(lines) == 1 and "unexpected" not in told else f"code {code}, said {told!r}"
        if not problem and _contents(disk) != before:
            problem = "something else is there"
        found.append((f"{name} on a disk that is {place}", problem))
    return found


def said(arguments: list[str]) -> tuple[int, str, str]:
    """Run a command; return its exit code, standard output and standard error."""
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        code = command_line(arguments)
    sys.stdout.flush()
    return code, out.getvalue(), err.getvalue()


def _contents(disk: Path) -> dict[str, Any]:
    return {str(path): path.read_bytes() for path in disk.rglob("*") if path.is_file() and path.name != "filling"}


def _mount(disk: Path) -> None:
    """Mount a small file system that only this process can see."""
    _call("unshare", _NEW_NAMESPACE)
    _call("mount", b"none", b"/", None, _PRIVATE | _RECURSIVE, None)
    _call("mount", b"tmpfs", os.fsencode(disk), b"tmpfs", 0, f"size={_ROOM}".encode())


def _spoil(disk: Path, place: str) -> None:
    if place == "read-only":
        _call("mount", b"tmpfs", os.fsencode(disk), b"tmpfs", _REMOUNT | _READ_ONLY, None)
    elif place == "not ours":
        os.setegid(_NOBODY)
        os.seteuid(_NOBODY)
    else:
        with contextlib.suppress(OSError), (disk / "filling").open("wb", buffering=0) as file:
            while True:
                file.write(b"\0" * 4096)


def _call(name: str, *arguments: Any) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, name)(*arguments):
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
