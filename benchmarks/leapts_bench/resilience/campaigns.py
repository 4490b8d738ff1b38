"""All campaigns, and doing the units of them that are not done."""

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from leapts_bench import results
from leapts_bench.resilience import (
    damage,
    dirty,
    faults,
    full_disk,
    hostile,
    listening,
    made_up,
    overload,
    replay,
    strangers,
)
from leapts_bench.resilience.outcome import Outcome

FILE = "resilience.jsonl"
Tell = Callable[[str], None]


@dataclass(frozen=True)
class Campaign:
    """One law, and the units that try to break it.

    Attributes:
        law: What has to hold for every case.
        units: What names each unit; enough of them to reach the goal.
        run: Does a unit in a folder of its own.
        goal: How many cases are meant to be tried in all.
    """

    law: str
    units: Sequence[str]
    run: Callable[[str, Path], Outcome]
    goal: int


CAMPAIGNS = {
    "dirty data": Campaign(
        "Whatever is wrong with the data, through every door: the forecast of the clean data (numbers, where the data "
        "are others), or an error in one line that names the place and the cure; no silent NaN, no traceback, no hang.",
        dirty.UNITS,
        dirty.run,
        10_000,
    ),
    "hostile folders": Campaign(
        "A forged model folder is refused or harmless: nothing is imported, run, written or connected to, "
        "within a second of processor time and 200 MB.",
        hostile.UNITS,
        hostile.run,
        500,
    ),
    "damaged folders": Campaign(
        "Any bit of a model's configuration or weights turned, or either file cut anywhere, is caught.",
        damage.UNITS,
        damage.run,
        0,
    ),
    "kills": Campaign(
        "A writer killed at any system call leaves the old or the new version, and the next one can be written.",
        faults.KILL_UNITS,
        faults.run_kills,
        2000,
    ),
    "failing disks": Campaign(
        "A writer told that the disk is full, over quota or broken, at any call, once or for good, says so plainly, "
        "keeps the old version, and leaves no temporary file.",
        faults.FAIL_UNITS,
        faults.run_failures,
        0,
    ),
    "full disks": Campaign(
        "On a disk that is really full, on a read-only one and in a folder of somebody else, each writer and each "
        "command says so in one line, keeps the old version, and leaves no temporary file.",
        full_disk.UNITS,
        full_disk.run,
        0,
    ),
    "power cuts": Campaign(
        "Whatever a power cut loses of what was not synced, what is read is the old or the new version, never a "
        "mixture; what was finished stays.",
        replay.UNITS,
        replay.run,
        10_000,
    ),
    "strangers at the server": Campaign(
        "Bodies without end, 500 slow sockets, a million nested brackets, gzip bombs, NaN tokens, forms and junk: the "
        "server answers for its health throughout, grows by less than 100 MB, gives numbers or a refusal that tells "
        "nothing of its inside, and no 5xx but 503.",
        strangers.UNITS,
        strangers.run,
        0,
    ),
    "overload": Campaign(
        "Asked, by callers who do not wait for answers, for 2 and 10 times what it can do: whoever is accepted is "
        "answered within twice the unloaded time (99th percentile), the others get 503 as quickly, and a second later "
        "all is as before. A stop signal amid load leaves no request unanswered that the server had read.",
        overload.UNITS,
        overload.run,
        0,
    ),
    "made-up requests": Campaign(
        "Requests made up from the OpenAPI description, valid ones and others, are answered as it says: no 500, and no "
        "path or class name in an error.",
        made_up.UNITS,
        made_up.run,
        100_000,
    ),
    "listening": Campaign(
        "By default no command listens but for this computer alone, as /proc/net/tcp and tcp6 have it.",
        listening.UNITS,
        listening.run,
        0,
    ),
}


def latest(lines: Sequence[results.Line]) -> dict[tuple[str, str], results.Line]:
    """The last line of every unit."""
    return {(line["campaign"], line["unit"]): line for line in lines}


def work(names: Sequence[str], folder: Path, *, seconds: float, tell: Tell) -> int:
    """Do the units that are not done, or failed last time, until they are or the time is over.

    Returns:
        How many cases failed.
    """
    end = time.monotonic() + seconds
    failed = 0
    for name in names or CAMPAIGNS:
        done = latest(results.read(folder / FILE))
        for unit in CAMPAIGNS[name].units:
            before = done.get((name, unit))
            if before is not None and not before["failed"]:
                continue
            if time.monotonic() > end:
                tell(f"{name}: stopped before {unit}; the same command goes on from there")
                break
            failed += _unit(name, unit, folder / FILE, tell)
    return failed


def _unit(name: str, unit: str, target: Path, tell: Tell) -> int:
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="leapts-") as place:
        outcome = CAMPAIGNS[name].run(unit, Path(place))
    seconds = round(time.monotonic() - started, 1)
    line = {"campaign": name, "unit": unit, **outcome.to_line(), "seconds": seconds, **results.provenance()}
    results.append(target, line)
    tell(f"{name}, {unit}: {outcome.cases:,} cases, {len(outcome.failures)} failed, {seconds} s")
    for message in outcome.failures[:5]:
        tell(f"  {message}")
    return len(outcome.failures)
