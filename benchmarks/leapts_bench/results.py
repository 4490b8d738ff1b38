"""Results as JSON lines: appended atomically by any number of processes, and read by key.

A line that a crash cut short has no line end; it is ignored by reads and removed before the next write.
"""

import contextlib
import fcntl
import json
import math
import os
import platform
import subprocess
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from leapts.errors import ConfigError
from leapts_bench.runs import Run, parse_run

Line = dict[str, Any]

_CODE = Path(__file__).parents[2]
_PACKAGES = ("torch", "numpy", "neuralforecast", "flaircast", "statsforecast")


def append(path: Path, line: Line) -> None:
    """Append one line and sync it to disk; several processes may do so at once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(line, ensure_ascii=False) + "\n"
    with path.open("a+b", buffering=0) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        size = _cut_off_torn_line(file.fileno())
        try:
            _write_all(file.fileno(), text.encode())
            os.fsync(file.fileno())
        except BaseException:
            # After an error the caller tries again, and the line must not be there twice.
            os.ftruncate(file.fileno(), size)
            raise


def read(path: Path) -> list[Line]:
    """Read all complete lines of a file, in order; none without a file."""
    if not path.exists():
        return []
    whole, _, _ = path.read_bytes().rpartition(b"\n")
    return [json.loads(line) for line in whole.splitlines() if line]


def finished(folder: Path) -> dict[str, Line]:
    """Read every finished run of every suite in a folder, by key.

    A run that was not stopped early is the same without early stopping, and is also found by that key.
    """
    done: dict[str, Line] = {}
    for line in _tested(folder):
        keys = [line["key"]] if is_cut_short(line) else [line["key"], _key_without_patience(line)]
        for key in keys:
            if not _agree(done.setdefault(key, line)["test"], line["test"]):
                raise ConfigError(f"{folder}: two results of one run, {key}, differ; find out which is right")
    return done


def _agree(one: Line, other: Line) -> bool:
    """Check that errors are equal up to rounding, since the order of summation may differ."""
    if one.keys() != other.keys():
        return False
    return all(
        math.isclose(one[name], other[name], rel_tol=1e-9) if isinstance(one[name], float) else one[name] == other[name]
        for name in one
    )


def cut_short(folder: Path) -> dict[str, Line]:
    """Return the runs that were stopped early, by the keys of the runs that replace them."""
    return {_key_without_patience(line): line for line in _tested(folder) if is_cut_short(line)}


def is_cut_short(line: Line) -> bool:
    """Check whether early stopping ended a run before its last validation check."""
    training = line.get("training", {})
    looks = line.get("run", {}).get("training", {}).get("looks", math.inf)
    return bool(training.get("stopped_early")) and len(training.get("validations", ())) < looks


def _tested(folder: Path) -> list[Line]:
    lines = [line for path in sorted(folder.glob("*.jsonl")) for line in read(path)]
    return [line for line in lines if "key" in line and "test" in line]


def _key_without_patience(line: Line) -> str:
    if not line.get("run", {}).get("training", {}).get("patience"):
        return str(line["key"])
    run = parse_run(json.dumps(line["run"]))
    assert isinstance(run, Run), "only runs with training options have patience"
    return run.model_copy(update={"training": run.training.model_copy(update={"patience": 0})}).key


@contextlib.contextmanager
def claimed(folder: Path, key: str) -> Iterator[bool]:
    """Try to lock the run with this key, so that one process at a time works on it.

    The lock ends with the process, so a crash leaves nothing to clean up.
    """
    claims = folder / ".claims"
    claims.mkdir(parents=True, exist_ok=True)
    with (claims / key).open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True


def provenance() -> Line:
    """Return the commit, whether the code differs from it, and the versions of the packages."""
    # Recipes are data: a result holds its recipe in full.
    code = ("src", "benchmarks/leapts_bench", ":!benchmarks/leapts_bench/recipes.toml")
    changed = _git("status", "--porcelain", "--", *code)
    return {
        "commit": _git("rev-parse", "HEAD"),
        "changed": bool(changed),
        "versions": {"python": platform.python_version(), **{name: _version(name) for name in _PACKAGES}},
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:  # needed by some baselines only
        return None


def _git(*arguments: str) -> str | None:
    """Return the output of a git command; empty outside of a repository."""
    answer = subprocess.run(["git", *arguments], cwd=_CODE, capture_output=True, text=True, check=False)
    return answer.stdout.strip() if answer.returncode == 0 else None


def _write_all(descriptor: int, content: bytes) -> None:
    while content:
        content = content[os.write(descriptor, content) :]


def _cut_off_torn_line(descriptor: int) -> int:
    """Remove an incomplete last line, and return the length of the file."""
    size = os.fstat(descriptor).st_size
    if size == 0 or os.pread(descriptor, 1, size - 1) == b"\n":
        return size
    whole, newline, _ = os.pread(descriptor, size, 0).rpartition(b"\n")
    os.ftruncate(descriptor, len(whole) + len(newline))
    return len(whole) + len(newline)
