"""Search for options with an Optuna study that can be stopped and resumed.

Only options that are not given are searched. The first trial uses the auto config, so on the validation windows the
result is never worse than no search. Each proposal depends only on the seed and on the trials that ended before it:
with one trial at a time, a resumed search equals one that was never stopped.
"""

import hashlib
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import tomli_w

from leapts.data.panel import Panel
from leapts.errors import ConfigError, TrainingError
from leapts.forecasting import LeapTS
from leapts.integrations.tuning.engine import Candidate, Engine, LocalEngine, Outcome
from leapts.integrations.tuning.space import Space
from leapts.training.loop import Progress

_STUDY = "leapts"
_FINGERPRINT = "fingerprint"
_DIVERGED = "diverged"
# No trial is pruned before this many have finished, or before its second validation check.
_TRIALS_BEFORE_PRUNING, _CHECKS_BEFORE_PRUNING = 4, 1


@dataclass(frozen=True)
class Trial:
    """One set of options and its validation error."""

    number: int  # from 1
    options: dict[str, Any]
    validation: float | None  # mean absolute error on the validation windows; None if training diverged
    pruned: bool  # whether it was stopped early, because most others were better at that check


@dataclass(frozen=True)
class Tuned:
    """The result of a search."""

    best: LeapTS  # with the best options, not yet fitted
    validation: float  # its mean absolute error on the validation windows, in standard deviations of each series
    trials: tuple[Trial, ...]  # in the order in which they started

    def to_toml(self) -> str:
        """Return the best options as a file for `leapts fit --config`."""
        usual = LeapTS(self.best.h).get_params()
        params = self.best.plain_params()
        unnamed = ("alias", "pad_short")
        changed = {name: value for name, value in params.items() if value != usual[name] and name not in unnamed}
        tables: dict[str, dict[str, Any]] = {
            name: _without_none(changed.pop(name)) for name in ("model", "training") if name in changed
        }
        if "batch_size" in changed:  # the command line has no option for it
            tables["training"] = {**tables.get("training", {}), "batch_size": changed.pop("batch_size")}
        names = {"random_seed": "seed"}
        flat = {names.get(name, name).replace("_", "-"): value for name, value in changed.items()}
        return tomli_w.dumps({"horizon": params["h"], **flat, **tables})


def _without_none(table: dict[str, Any]) -> dict[str, Any]:
    """Leave out options that are None, which TOML cannot express."""
    kept = {name: value for name, value in table.items() if value is not None}
    return {name: _without_none(value) if isinstance(value, dict) else value for name, value in kept.items()}


def tune(
    model: LeapTS,
    df: Any,
    trials: int = 20,
    *,
    study: str | Path | None = None,
    progress: Progress | None = None,
    on_trial: Callable[[int], None] | None = None,
    engine: Engine | None = None,
) -> Tuned:
    """Search for the options with the lowest validation error.

    Args:
        model: The model to tune, which is not changed: its given options stay, the others are searched.
        df: The data, as for `fit`.
        trials: Number of trials, with those that the study already holds.
        study: A SQLite file that stores the trials, to resume from; by default nothing is stored.
        progress: Called after every training step in this process.
        on_trial: Called with the number of each trial before it starts, from 1.
        engine: Runs the trials, such as `leapts.integrations.ray.tuning.RayEngine`; by default this process does.

    Raises:
        ConfigError: When no steps can be held out for validation, or the study has other data or options.
    """
    try:
        import optuna
    except ImportError as error:
        raise ImportError("tuning needs: pip install 'leapts[tune]'") from error
    if trials < 1:
        raise ConfigError(f"trials={trials}: the number of trials must be at least 1")
    panel = model.read(df)
    space = Space.of(model, panel)
    with ExitStack() as stack:
        stack.callback(optuna.logging.set_verbosity, optuna.logging.get_verbosity())
        optuna.logging.set_verbosity(optuna.logging.ERROR)  # no message for every trial
        storage = stack.enter_context(_storage(optuna, study))
        search = _Search(optuna, storage, study, space)
        search.run(engine or LocalEngine(progress), panel, trials, on_trial)
        finished = search.finished()
        if not any(trial.state is search.states.COMPLETE for trial in finished):
            raise TrainingError("all trials diverged; check the data for extreme values, or allow more trials")
        return Tuned(
            best=space.forecaster(search.study.best_trial.params),
            validation=float(search.study.best_value),
            trials=tuple(_trial(optuna, number, trial) for number, trial in enumerate(finished, start=1)),
        )


class _Search:
    """A study, new or loaded from its file, and its unfinished trials."""

    def __init__(self, optuna: Any, storage: Any, path: str | Path | None, space: Space) -> None:
        self.optuna, self.states, self.space = optuna, optuna.trial.TrialState, space
        pruner = optuna.pruners.MedianPruner(_TRIALS_BEFORE_PRUNING, _CHECKS_BEFORE_PRUNING)
        self.study = optuna.create_study(study_name=_STUDY, storage=storage, pruner=pruner, load_if_exists=True)
        if self.study.user_attrs.get(_FINGERPRINT, space.fingerprint) != space.fingerprint:
            raise ConfigError(
                f"{path}: the study was made with other data or options; choose another file, or remove it"
            )
        self.study.set_user_attr(_FINGERPRINT, space.fingerprint)
        # Trials whose process was killed.
        self._fail(trial.number for trial in self.study.get_trials(deepcopy=False, states=[self.states.RUNNING]))
        self.running: dict[int, Any] = {}

    def run(self, engine: Engine, panel: Panel, trials: int, on_trial: Callable[[int], None] | None) -> None:
        """Run trials until `trials` are finished; an interruption marks unfinished ones as failed."""
        candidates = self._candidates(trials, on_trial or (lambda _: None))
        try:
            with closing(engine(panel, candidates)) as outcomes:
                for outcome in outcomes:
                    self._end(outcome)
        except BaseException:
            self._fail(self.running)
            raise

    def finished(self) -> list[Any]:
        """Return the complete and pruned trials."""
        return list(self.study.get_trials(deepcopy=False, states=[self.states.COMPLETE, self.states.PRUNED]))

    def _fail(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            self.study.tell(number, state=self.states.FAIL)

    def _candidates(self, trials: int, on_trial: Callable[[int], None]) -> Iterator[Candidate]:
        while (begun := len(self.finished()) + len(self.running)) < trials:
            on_trial(begun + 1)
            # Each trial has its own seed, so that proposals do not depend on interruptions.
            parts = repr((self.space.model.random_seed, begun)).encode()
            seed = int.from_bytes(hashlib.blake2b(parts, digest_size=4).digest(), "big")
            self.study.sampler = self.optuna.samplers.TPESampler(seed=seed, n_startup_trials=6)
            if begun == 0:
                self.study.enqueue_trial(self.space.defaults, skip_if_exists=False)
            trial = self.study.ask()
            self.running[trial.number] = trial
            options = self.space.proposal(trial)
            yield Candidate(trial.number, self.space.forecaster(options), partial(self._should_prune, trial))

    def _checks(self, trial: Any) -> int:
        """Count the validation checks that were reported for a trial."""
        return len(self.study.get_trials(deepcopy=False)[trial.number].intermediate_values)

    def _should_prune(self, trial: Any, error: float) -> bool:
        """Report the error of a validation check, and say whether most other trials were better at this check."""
        trial.report(error, self._checks(trial))
        return bool(trial.should_prune())

    def _end(self, outcome: Outcome) -> None:
        trial = self.running[outcome.number]
        for error in outcome.checks[self._checks(trial) :]:
            trial.report(error, self._checks(trial))
        if outcome.diverged:
            trial.set_user_attr(_DIVERGED, True)
        if outcome.validation is None:
            self.study.tell(outcome.number, state=self.states.PRUNED)
        else:
            self.study.tell(outcome.number, outcome.validation)
        del self.running[outcome.number]


@contextmanager
def _storage(optuna: Any, path: str | Path | None) -> Iterator[Any]:
    """Open the SQLite file of a study and close it afterwards; without a path, yield None.

    The file is opened by its path: in a database URL, a question mark in its name would start options.
    """
    if path is None:
        yield None
        return
    from sqlalchemy.exc import SQLAlchemyError  # a dependency of optuna

    file = Path(path)
    if not file.parent.is_dir():
        raise ConfigError(f"the folder {file.parent} does not exist; make it first")
    if file.exists() and not file.read_bytes()[:16].startswith(b"SQLite format 3"):
        raise ConfigError(f"{path} is not an SQLite file; choose another name for the study")
    connect = partial(sqlite3.connect, file, check_same_thread=False)
    try:
        storage = optuna.storages.RDBStorage("sqlite:///study", engine_kwargs={"creator": connect})
    except SQLAlchemyError as error:
        why = getattr(error, "orig", None) or error
        raise ConfigError(f"{path} cannot be used as a study ({why}); choose another file, or remove it") from error
    try:
        yield storage
    finally:
        storage.remove_session()
        storage.engine.dispose()


def _trial(optuna: Any, number: int, trial: Any) -> Trial:
    if trial.user_attrs.get(_DIVERGED):
        return Trial(number, dict(trial.params), None, pruned=False)
    pruned = trial.state is optuna.trial.TrialState.PRUNED
    best = min(trial.intermediate_values.values(), default=None) if pruned else float(trial.value)
    return Trial(number, dict(trial.params), best, pruned)
