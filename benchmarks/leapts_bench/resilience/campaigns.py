"""All campaigns, and doing the units of them that are not done."""

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from leapts.errors import ConfigError
from leapts_bench import results
from leapts_bench.resilience import (
    damage,
    dirty,
    extremes,
    faults,
    full_disk,
    hostile,
    injection,
    laws,
    listening,
    made_up,
    overload,
    repeats,
    replay,
    resume,
    runners,
    sharing,
    strangers,
    two_fits,
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
    "injection": Campaign(
        "What a series, a column, a file or a model is called stays a name: in the report and on the server's page no "
        "script runs and nothing loads from elsewhere, a terminal is commanded by none, every name comes back from "
        "CSV and none computes where cells are safe, and labels of metrics and lines of logs stay what they are.",
        injection.UNITS,
        injection.run,
        200,
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
    "laws": Campaign(
        "Rows shuffled, series reordered, renamed, added or left out, time shifted, another zone, values scaled and "
        "offset: the forecast changes as the data did, to 1e-5 of a look-back's mean deviation, and to the bit where "
        "nothing is computed anew. Exceptions: a fit on series in another order, or with further ones, learns in "
        "another order; a look-back that moves by less than a few thousandths of the deviation of the fit is taken "
        "for constant; without normalisation a model knows the levels it was fitted on.",
        laws.UNITS,
        laws.run,
        10_000,
    ),
    "exact resume": Campaign(
        "A fit killed at a random moment of a random step, some of them twice, and resumed ends with the weights, "
        "optimiser, random state, metrics, checkpoint and model folder of the fit that was left alone, to the bit.",
        resume.UNITS,
        resume.run,
        200,
    ),
    "runners": Campaign(
        "Eight benchmark runners on one results folder, killed at random and replaced: no result is lost, doubled or "
        "torn, and the table is byte for byte that of one runner alone. Each case is a kill.",
        runners.UNITS,
        runners.run,
        500,
    ),
    "threads": Campaign(
        "A forecast by one of 16 threads that share a model is, to the bit, that of a model asked by one.",
        sharing.THREAD_UNITS,
        sharing.run_threads,
        0,
    ),
    "memory": Campaign(
        "Ten thousand forecasts take no more memory than the first thousand, to 2 MB.",
        sharing.MEMORY_UNITS,
        sharing.run_memory,
        20_000,
    ),
    "two fits": Campaign(
        "Of two fits into one folder the first goes on as if alone; the second says why it does not, in one line.",
        two_fits.UNITS,
        two_fits.run,
        0,
    ),
    "repeated fits": Campaign(
        "The same fit gives the same bits, in the same process and in others, with one thread and with two.",
        repeats.REPEAT_UNITS,
        repeats.run_repeats,
        40,
    ),
    "threads and batches": Campaign(
        "Fitted and forecast with one thread or with two, and forecast alone or beside others: the same to 1e-5.",
        repeats.AGAINST_UNITS,
        repeats.run_against,
        0,
    ),
    "extreme values": Campaign(
        "Values of any size that a number can have, constants, spikes and steps, to fit on and to forecast from: "
        "numbers come out, or an error in one line.",
        extremes.VALUE_UNITS,
        extremes.run_values,
        800,
    ),
    "divergence": Campaign(
        "Training at a rate that it cannot bear recovers, or says so, keeps the last good weights, and forecasts.",
        extremes.DIVERGENCE_UNITS,
        extremes.run_divergence,
        200,
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
        "all is as before. A server with little to do refuses at most one in twenty. A stop signal amid load leaves no "
        "request unanswered that the server had read.",
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
        "By default no command listens but for this computer alone, as /proc/net/tcp and tcp6 have it: not alone, nor "
        "as processes that torchrun started here (its own meeting point is not ours), nor with a Ray of its own.",
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
        How many cases failed, and how many campaigns could not go on.

    Raises:
        ConfigError: When there is no campaign of a name.
    """
    unknown = [name for name in names if name not in CAMPAIGNS]
    if unknown:
        raise ConfigError(f"there is no campaign {unknown[0]!r}; there are {', '.join(CAMPAIGNS)}")
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
            try:
                failed += _unit(name, unit, folder / FILE, tell)
            except ConfigError as error:  # a tool is missing, which the other campaigns may not need
                tell(f"{name}: stopped before {unit}: {error}")
                failed += 1
                break
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
