"""Power loss: replay the recorded calls of a writer with unsynced changes lost or reordered.

A kill keeps everything that was written to the kernel; a power loss does not. The calls of a real writer are recorded
with strace and replayed on a model of a disk with the guarantees of POSIX only: the bytes of a file persist once the
file is synced, a name once its folder is. Any part of the other changes may be lost.
"""

import random
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from leapts_qa.crash_consistency import prepared, strike
from leapts_qa.disk_model import Call, after_cut
from leapts_qa.outcome import Outcome
from leapts_qa.writers import FEW, OPERATIONS, Operation

STATES_A_UNIT = 500
UNITS = tuple(
    f"{name} seed {seed}" for seed in range(4) for name in ("save", "checkpoint", "append", "fetch", "report")
)

Contents = dict[str, bytes | None]  # by path; a folder has none

_RECORDED = "trace=openat,close,write,fsync,ftruncate,mkdir,rename,renameat2,unlink,unlinkat,rmdir"
_LINE = re.compile(r"^\d+ +(\w+)\((.*)\) += (-?\d+)")


def run(unit: str, folder: Path, *, states: int = STATES_A_UNIT, without: int | None = None) -> Outcome:
    """Cut the power at random calls with random losses, and read what is left.

    Args:
        unit: The writer and the seed.
        folder: A folder to work in.
        states: Number of power losses.
        without: The number of a sync to leave out, to test the test.
    """
    name, _, seed = unit.split()
    operation = OPERATIONS[name](FEW)
    place = prepared(operation, folder)
    before = {str(path): path.read_bytes() if path.is_file() else None for path in sorted(place.rglob("*"))}
    calls = record(operation, place, folder)
    if without is not None:
        syncs = [number for number, call in enumerate(calls) if call.kind == "fsync"]
        del calls[syncs[without]]
    (folder / "expected").mkdir()
    expected = operation.states(folder / "expected")[1:]
    outcome = Outcome()
    chance = random.Random(int(seed))
    seen: dict[object, str] = {}
    for _ in range(states):
        cut = chance.choice([chance.randrange(len(calls) + 1), len(calls)])
        left = after_cut(str(place), before, calls[:cut], chance)
        key = tuple(sorted(left.items(), key=lambda item: item[0]))
        if key not in seen:
            seen[key] = _read(operation, place, left)
        # When a writer has finished, its output is durable.
        allowed = expected if cut < len(calls) else expected[-1:]
        if seen[key] in allowed:
            outcome.count("old or new version")
        else:
            outcome.fail(f"{unit} cut after {cut} of {len(calls)} calls: {seen[key][:200]}")
    outcome.most("distinct disk states", len(seen))
    return outcome


def record(operation: Operation, place: Path, folder: Path) -> list[Call]:
    """Record the calls of a writer within a folder, in order."""
    log = folder / "write.log"
    strike(operation, place, _RECORDED, log, options=("-y", "-xx", "-s", "10000000"))
    return list(_parsed(log.read_text(), str(place)))


def _parsed(text: str, place: str) -> Iterator[Call]:
    for line in text.splitlines():
        found = _LINE.match(line)
        if not found or int(found[3]) < 0:
            continue
        kind, arguments, result = found[1], found[2], int(found[3])
        paths = tuple(path for path in _paths(kind, arguments) if path.startswith(place))
        if not paths or kind == "close":
            continue
        if kind == "write":
            content = bytes.fromhex(arguments.split('"')[1].replace("\\x", ""))
            yield Call(kind, paths, content[:result])
        elif kind == "ftruncate":
            yield Call(kind, paths, size=int(arguments.rpartition(",")[2]))
        elif kind == "openat":
            if "O_CREAT" in arguments:
                yield Call("create", paths, flags=arguments)
        elif kind in ("rename", "renameat2"):
            yield Call("exchange" if "RENAME_EXCHANGE" in arguments else "rename", paths)
        elif kind in ("unlink", "unlinkat", "rmdir"):
            yield Call("unlink", paths)
        else:
            yield Call(kind, paths)


def _paths(kind: str, arguments: str) -> list[str]:
    """Return the paths of a call, from its descriptors or its arguments as printed by strace."""
    if kind in ("write", "fsync", "ftruncate", "close"):
        return [_text(re.findall(r"\d+<(.*?)>", arguments)[0])]
    folders = [_text(name) for name in re.findall(r"(?:AT_FDCWD|\d+)<(.*?)>", arguments)]
    names = [_text(name) for name in re.findall(r'"((?:\\x..)*)"', arguments)]
    if not folders:
        return names
    folders *= 2
    return [str(Path(folder) / name) for folder, name in zip(folders, names, strict=False)]


def _text(name: str) -> str:
    return bytes.fromhex(name.replace("\\x", "")).decode() if name.startswith("\\x") else name


def _read(operation: Operation, place: Path, left: Contents) -> str:
    shutil.rmtree(place)
    place.mkdir()
    for path, content in sorted(left.items()):
        if content is None:
            Path(path).mkdir()
        else:
            Path(path).write_bytes(content)
    try:
        return operation.state(place)
    except Exception as error:
        return f"damaged: {error}"
