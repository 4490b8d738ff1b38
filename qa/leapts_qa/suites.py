"""All stress suites, and a runner of their pending units."""

import subprocess
import tempfile
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from leapts.errors import ConfigError
from leapts_bench import results
from leapts_qa import (
    adversarial_clients,
    api_fuzzing,
    benchmark_runners,
    concurrency,
    concurrent_fits,
    corruption,
    crash_consistency,
    dirty_data,
    exact_resume,
    extreme_values,
    full_disk,
    injection,
    malicious_models,
    metamorphic,
    open_ports,
    overload,
    power_loss,
    reproducibility,
)
from leapts_qa.history import as_now
from leapts_qa.outcome import Outcome

FILE = "stress.jsonl"
Tell = Callable[[str], None]


@dataclass(frozen=True)
class StressSuite:
    """A property of LeapTS, and the test units that try to break it.

    Attributes:
        property: What must hold in every test case.
        units: The names of the test units; enough of them to reach the goal.
        run: Runs one unit in a folder of its own.
        goal: How many test cases to reach in all; 0 where there is no such number.
    """

    property: str
    units: Sequence[str]
    run: Callable[[str, Path], Outcome]
    goal: int


SUITES = {
    "dirty data": StressSuite(
        "Dirty data (gaps, wrong types, mixed separators, broken files) give the forecast of the clean data "
        "or, where the values themselves differ, a finite forecast. Otherwise a one-line error names the "
        "place and what to do. There is no silent NaN, no traceback and no hang. Tested from files, from "
        "frames, in `fit`, on the command line and over HTTP.",
        dirty_data.UNITS,
        dirty_data.run,
        10_000,
    ),
    "malicious model folders": StressSuite(
        "A forged model folder is refused or harmless: loading it imports, runs, writes and connects to "
        "nothing, within one second of processor time and 200 MB.",
        malicious_models.UNITS,
        malicious_models.run,
        500,
    ),
    "corrupted model folders": StressSuite(
        "Every flipped bit and every truncation of a model's configuration or weights is detected.",
        corruption.UNITS,
        corruption.run,
        0,
    ),
    "injection": StressSuite(
        "Names of series, columns, files and models are only ever shown as text. No script runs and nothing "
        "is loaded from elsewhere in the report and on the server's page; no escape sequence reaches a "
        "terminal; every name survives a round trip through CSV, and none is a formula with "
        "`escape_formulas`; metric labels and log lines cannot be forged.",
        injection.UNITS,
        injection.run,
        200,
    ),
    "crash consistency": StressSuite(
        "A process killed at any system call of a write leaves the old or the new version of the file, and "
        "the next version can be written.",
        crash_consistency.KILL_UNITS,
        crash_consistency.run_kills,
        2_000,
    ),
    "disk errors": StressSuite(
        "When any system call of a write fails with a full disk, an exceeded quota or an I/O error, once or "
        "permanently, the error is reported, the old version stays, and no temporary file remains.",
        crash_consistency.FAIL_UNITS,
        crash_consistency.run_failures,
        0,
    ),
    "full disks": StressSuite(
        "On a full disk, on a read-only disk and in a folder without write permission, every writer and every"
        " command reports a one-line error, keeps the old version, and leaves no temporary file.",
        full_disk.UNITS,
        full_disk.run,
        0,
    ),
    "power loss": StressSuite(
        "After a power loss that drops any part of the unsynced data, a reader finds the old or the new "
        "version, never a mixture. A finished write stays.",
        power_loss.UNITS,
        power_loss.run,
        10_000,
    ),
    "metamorphic tests": StressSuite(
        "When rows are shuffled, series reordered, renamed, added or removed, timestamps shifted or moved to "
        "another timezone, or values scaled and offset, the forecast changes in the same way: within 1e-5 of "
        "the look-back's mean absolute deviation, and bit for bit where no arithmetic changes. Known "
        "exceptions: a fit with reordered or added series sees its windows in another order; a look-back that"
        " varies by less than a few thousandths of the training standard deviation counts as constant; "
        "without normalization a model depends on the level of its training data.",
        metamorphic.UNITS,
        metamorphic.run,
        10_000,
    ),
    "exact resume": StressSuite(
        "A fit that is killed at a random moment, in some cases twice, and then resumed ends with the same "
        "weights, optimizer state, random state, metrics, checkpoint and model folder as an uninterrupted "
        "fit, bit for bit.",
        exact_resume.UNITS,
        exact_resume.run,
        200,
    ),
    "benchmark runners": StressSuite(
        "Eight benchmark runners share one results folder and are killed and replaced at random. No result is"
        " lost, duplicated or torn, and the table equals that of a single runner byte for byte. Each case is "
        "one killed runner.",
        benchmark_runners.UNITS,
        benchmark_runners.run,
        500,
    ),
    "thread safety": StressSuite(
        "Forecasts from 16 threads that share one model equal those from a single thread, bit for bit.",
        concurrency.THREAD_UNITS,
        concurrency.run_threads,
        0,
    ),
    "memory leaks": StressSuite(
        "Ten thousand forecasts use at most 2 MB more memory than the first thousand.",
        concurrency.MEMORY_UNITS,
        concurrency.run_memory,
        20_000,
    ),
    "concurrent fits": StressSuite(
        "When two fits use the same folder, the first is unaffected; the second is refused with a one-line error.",
        concurrent_fits.UNITS,
        concurrent_fits.run,
        0,
    ),
    "reproducibility": StressSuite(
        "The same fit gives the same bits in the same process and in others, with one thread and with two.",
        reproducibility.REPEAT_UNITS,
        reproducibility.run_repeats,
        40,
    ),
    "thread and batch invariance": StressSuite(
        "Forecasts with one thread equal those with two, and a series forecast alone equals the same series "
        "in a batch, within 1e-5.",
        reproducibility.AGAINST_UNITS,
        reproducibility.run_against,
        0,
    ),
    "extreme values": StressSuite(
        "Fitting on and forecasting from values of any magnitude, constants, spikes and steps gives a finite "
        "forecast or a one-line error.",
        extreme_values.VALUE_UNITS,
        extreme_values.run_values,
        800,
    ),
    "training divergence": StressSuite(
        "With a learning rate that is far too large, training recovers, or reports the divergence, keeps the "
        "last good weights, and can still forecast.",
        extreme_values.DIVERGENCE_UNITS,
        extreme_values.run_divergence,
        200,
    ),
    "adversarial clients": StressSuite(
        "Under endless request bodies, 500 slow sockets, a million nested brackets, gzip bombs, NaN tokens, "
        "forms and random bytes, the server answers its health check throughout and grows by less than 100 "
        "MB. It answers with a forecast or a refusal that discloses no internals; the only 5xx status is 503.",
        adversarial_clients.UNITS,
        adversarial_clients.run,
        0,
    ),
    "overload": StressSuite(
        "Under open-loop load of 2 and 10 times the server's capacity, the 99th percentile of accepted "
        "requests stays within twice the unloaded latency, the others get 503 as quickly, and one second "
        "later latency is back to normal. A lightly loaded server refuses at most one request in twenty. "
        "After a stop signal under load, every request that was read is answered.",
        overload.UNITS,
        overload.run,
        0,
    ),
    "API fuzzing": StressSuite(
        "Requests generated from the OpenAPI description, valid and invalid, are answered as described: no "
        "status 500, and no path or class name in an error.",
        api_fuzzing.UNITS,
        api_fuzzing.run,
        100_000,
    ),
    "open ports": StressSuite(
        "By default no command listens on anything but the loopback interface, according to /proc/net/tcp and"
        " tcp6: neither alone, nor as processes started by torchrun (whose own rendezvous port is not "
        "counted), nor with a local Ray.",
        open_ports.UNITS,
        open_ports.run,
        0,
    ),
}


def read(folder: Path) -> list[results.Line]:
    """Read the results of all suites, earlier names translated to those of today."""
    return [as_now(line) for line in results.read(folder / FILE)]


def latest(lines: Sequence[results.Line]) -> dict[tuple[str, str], results.Line]:
    """Keep the last result of every unit."""
    return {(line["suite"], line["unit"]): line for line in lines}


def commits_since(commit: str) -> frozenset[str]:
    """List a commit and all that were made on top of it.

    Raises:
        ConfigError: When there is no such commit.
    """
    answers = [
        subprocess.run(["git", *arguments], cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
        for arguments in (("rev-parse", "--verify", f"{commit}^{{commit}}"), ("rev-list", f"{commit}..HEAD"))
    ]
    if any(answer.returncode for answer in answers):
        raise ConfigError(f"{commit!r} is not a commit of this repository; choose one that git log shows")
    return frozenset(hash_ for answer in answers for hash_ in answer.stdout.split())


def run_pending(
    names: Sequence[str], folder: Path, *, seconds: float, tell: Tell, current: Collection[str] | None = None
) -> int:
    """Run the units that are not done or failed last time, within a time limit.

    Args:
        names: The suites; by default all.
        folder: The results folder.
        seconds: The time limit.
        tell: Called with each message.
        current: Commits whose results count as done; by default those of all.

    Returns:
        The number of failed cases, plus the number of suites that could not continue.

    Raises:
        ConfigError: When a suite name is unknown.
    """
    unknown = [name for name in names if name not in SUITES]
    if unknown:
        raise ConfigError(f"unknown stress suite {unknown[0]!r}; choose from {', '.join(SUITES)}")
    end = time.monotonic() + seconds
    failed = 0
    for name in names or SUITES:
        done = latest(read(folder))
        for unit in SUITES[name].units:
            before = done.get((name, unit))
            if before is not None and not before["failed"] and (current is None or before["commit"] in current):
                continue
            if time.monotonic() > end:
                tell(f"{name}: time limit reached before {unit}; run the same command to continue")
                break
            try:
                failed += _run_unit(name, unit, folder / FILE, tell)
            except ConfigError as error:  # a missing tool, which the other suites may not need
                tell(f"{name}: stopped before {unit}: {error}")
                failed += 1
                break
    return failed


def _run_unit(name: str, unit: str, target: Path, tell: Tell) -> int:
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="leapts-") as place:
        outcome = SUITES[name].run(unit, Path(place))
    seconds = round(time.monotonic() - started, 1)
    line = {"suite": name, "unit": unit, **outcome.to_line(), "seconds": seconds, **results.provenance()}
    results.append(target, line)
    tell(f"{name}, {unit}: {outcome.cases:,} cases, {len(outcome.failures)} failed, {seconds} s")
    for message in outcome.failures[:5]:
        tell(f"  {message}")
    return len(outcome.failures)
