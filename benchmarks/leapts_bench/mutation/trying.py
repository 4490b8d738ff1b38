"""Trying faults: in copies of a process in which the tests are already collected, so that none costs a start.

A fault in a function is put in by giving the function other code. One that takes effect while its module is read is
put in before that, and the tests are collected on top of it.
"""

import ast
import importlib
import os
import resource
import signal
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import coverage
import pytest

from leapts_bench.mutation.mutants import Mutant, changed
from leapts_bench.mutation.placing import functions_of, new_code, read_instead
from leapts_bench.mutation.targets import Target
from leapts_bench.resilience.forks import Ended, in_fork

Found = Callable[[Mutant, str], None]

SURVIVED, NOT_RUN = "survived", "not run by any test"
_LONGEST = 2.5  # seconds of processor time a test may take to be used here: those that start programs take more
_SETUP = "setup"


def try_all(target: Target, mutants: Sequence[Mutant], found: Found) -> None:
    """Try changes to a module, and tell of each what noticed it.

    Raises:
        RuntimeError: When the tests fail without any change, so that they would notice everything.
    """
    _value(target, in_fork(partial(_try_all, target, mutants, found), seconds=36_000))


def _try_all(target: Target, mutants: Sequence[Mutant], found: Found) -> None:
    """In a copy that has read what the module is built on, which none of its faults can change."""
    os.chdir(target.root)
    for name in target.below:
        importlib.import_module(name)
    source = target.source.read_text()
    early = [mutant for mutant in mutants if not mutant.in_function]
    late = [mutant for mutant in mutants if mutant.in_function]
    with tempfile.TemporaryDirectory(prefix="leapts-") as folder:
        if late:
            plugin = _Late(target, source, late, found)
            ended = in_fork(partial(_session, target, plugin, Path(folder), target.tests), seconds=36_000)
            left = _value(target, ended)
            early += [mutant for mutant in late if mutant.number in left]
        if early:
            plain = ast.unparse(ast.parse(source))
            _value(target, in_fork(partial(_from_the_start, target, plain, Path(folder)), seconds=3600))
        for mutant in early:
            text = ast.unparse(changed(source, mutant.number))
            trial = partial(_from_the_start, target, text, Path(folder))
            found(mutant, _verdict(in_fork(trial, seconds=600)))


def _value(target: Target, ended: Ended) -> list[int]:
    """What a copy gave back that must not go wrong."""
    if ended.error or ended.signal or ended.hung or isinstance(ended.value, str):
        raise RuntimeError(f"{target.module}, without a fault: {ended.error or ended}")
    return ended.value or []


def _session(target: Target, plugin: "_Early", folder: Path, tests: Sequence[str]) -> Any:
    """Collect the tests and let the plugin have them."""
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    os.chdir(target.root)
    files = dict.fromkeys(str(target.root / "tests" / test) for test in tests)
    warm = "ignore:Module already imported:pytest.PytestAssertRewriteWarning"
    options = ["-p", "no:cacheprovider", "-W", warm, f"--basetemp={folder / 'tests'}", f"--rootdir={target.root}"]
    code = pytest.main([*options, *files], plugins=[plugin])
    return plugin.outcome if code in (0, 1) else f"pytest ended with {int(code)}"


class _Early:
    """Runs the tests until one fails, which is the outcome."""

    def __init__(self) -> None:
        self.failed: str | None = None
        self.outcome: Any = None

    @pytest.hookimpl(trylast=True)
    def pytest_sessionstart(self) -> None:
        """What fails need not be made small."""
        from hypothesis import Phase, settings

        settings.register_profile("mutation", settings.get_profile("leapts"), phases=(Phase.explicit, Phase.generate))
        settings.load_profile("mutation")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and self.failed is None:
            self.failed = report.nodeid

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self.outcome = self.first_failure(session.items)
        return True

    def first_failure(self, items: Sequence[pytest.Item]) -> str | None:
        """The test that noticed."""
        for item, following in zip(items, [*items[1:], None], strict=True):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if self.failed is not None:
                break
        return self.failed


class _Late(_Early):
    """Changes functions in one copy of this process after the other, and runs the tests that reach the change.

    The outcome is the numbers of those that could not be put in this way.
    """

    def __init__(self, target: Target, source: str, mutants: Sequence[Mutant], found: Found) -> None:
        super().__init__()
        self.target, self.source, self.mutants, self.found = target, source, mutants, found
        self.coverage: coverage.Coverage | None = None

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items}
        if self.target.first is not None:
            first = next(item for item in session.items if item.name.partition("[")[0] == self.target.first)
            # As if anything of the session followed, so that what is made for all of it is kept, and nothing else.
            first.config.hook.pytest_runtest_protocol(item=first, nextitem=session)
        ended = in_fork(partial(self._plain_run, session.items), seconds=3600)
        if ended.value is None or ended.value["failed"]:
            self.outcome = ended.error or f"{ended.value['failed'] if ended.value else ended} fails"
            return True
        seconds: dict[str, float] = ended.value["seconds"]
        waits: dict[str, float] = ended.value["waits"]
        reached: dict[str, list[str]] = ended.value["reached"]
        functions = functions_of(self.target.source)
        files = {path: number for number, path in enumerate(dict.fromkeys(item.path for item in session.items))}
        self.outcome = []
        for mutant in self.mutants:
            names = {name for line in mutant.statement for name in reached.get(str(line), [])}
            if _SETUP in names:
                names = set(seconds)
            tests = [items[name] for name in items if name in names and seconds[name] <= _LONGEST]
            tests.sort(key=lambda test: (files[test.path], seconds[test.nodeid]))  # the quick ones of a file first
            if not tests:
                self.found(mutant, NOT_RUN)
                continue
            parts = new_code(mutant, changed(self.source, mutant.number), functions)
            if not parts:
                self.outcome.append(mutant.number)
                continue
            trial = partial(self._trial, parts, tests, 10 + 3 * sum(seconds[test.nodeid] for test in tests))
            by_the_clock = 20 + 5 * sum(waits[test.nodeid] for test in tests)
            self.found(mutant, _verdict(in_fork(trial, seconds=by_the_clock)))
        return True

    def _plain_run(self, items: Sequence[pytest.Item]) -> dict[str, Any]:
        """In a copy: what each test takes, of the processor and by the clock, and which lines it reaches, unchanged."""
        self.coverage = coverage.Coverage(
            data_file=None, include=[str(self.target.source)], config_file=False, messages=False
        )
        self.coverage.start()
        seconds, waits = {}, {}
        for item, following in zip(items, [*items[1:], None], strict=True):
            started, began = _processor_time(), time.monotonic()
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            seconds[item.nodeid], waits[item.nodeid] = _processor_time() - started, time.monotonic() - began
        self.coverage.stop()
        reached = self.coverage.get_data().contexts_by_lineno(str(self.target.source))
        lines = {str(line): reached[line] for line in reached}
        return {"failed": self.failed, "seconds": seconds, "waits": waits, "reached": lines}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self) -> None:
        # What a fixture runs is reached by every test that shares the fixture, whichever of them came first.
        if self.coverage is not None:
            self.coverage.switch_context(_SETUP)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> None:
        if self.coverage is not None:
            self.coverage.switch_context(item.nodeid)

    def _trial(
        self, parts: Sequence[tuple[FunctionType, CodeType]], tests: Sequence[pytest.Item], seconds: float
    ) -> str | None:
        _at_most(seconds)
        for function, code in parts:
            function.__code__ = code
        return self.first_failure(tests)


def _from_the_start(target: Target, source: str, folder: Path) -> str | None:
    """In a copy that has not read the module: the test that notices this source in place of the module's own.

    Only the nearest tests are asked, as all has to be made ready for them again.
    """
    _at_most(300)
    read_instead(target.source, source.encode())
    outcome: str | None = _session(target, _Early(), folder, target.tests[:1])
    return outcome


def _verdict(ended: Ended) -> str:
    if ended.hung or ended.signal in (signal.SIGXCPU, signal.SIGKILL):
        return "took too long"
    if ended.signal:
        return f"ended by signal {ended.signal}"
    if ended.error:
        return ended.error.strip().splitlines()[-1]
    return ended.value or SURVIVED


def _processor_time() -> float:
    """Of this process and the programs it waited for, so that a busy machine makes no test look slow."""
    return sum(os.times()[:4])


def _at_most(seconds: float) -> None:
    """Of processor time, from now on."""
    limit = int(time.process_time() + seconds)
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))
