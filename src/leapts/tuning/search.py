"""The search itself: a study that proposes, is told of every outcome as it ends, and can be gone on with.

Only what the forecaster leaves open is searched. The first trial is what would have been picked anyway, so the result
is never worse than no search on the windows it is judged by. Every trial's proposal follows from the seed and the
trials that ended before it, so with one trial at a time a search that was stopped and resumed is the search that was
not.
"""

import hashlib
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import tomli_w

from leapts.data.panel import Panel
from leapts.errors import ConfigError, TrainingError
from leapts.forecaster import LeapTS
from leapts.training import Progress
from leapts.tuning.fits import Candidate, Engine, FitHere, Outcome
from leapts.tuning.space import Space

_STUDY = "leapts"
_FINGERPRINT = "fingerprint"
_DIVERGED = "diverged"
# So many trials run to their end before any is cut short, and no trial before its second look.
_TRIALS_TO_COMPARE_WITH, _LOOKS_TO_WAIT = 4, 1


@dataclass(frozen=True)
class Trial:
    """One set of options, and how well it did.

    Attributes:
        number: Counted from 1.
        options: What was tried.
        validation: Mean absolute error on the validation windows; none where training diverged.
        pruned: Whether it was cut short, because most others were better by then.
    """

    number: int
    options: dict[str, Any]
    validation: float | None
    pruned: bool


@dataclass(frozen=True)
class Tuned:
    """What a search found.

    Attributes:
        best: A forecaster with the best options, not fitted yet.
        validation: The best trial's mean absolute error on the validation windows, in deviations of each series.
        trials: Every trial, in the order of their start.
    """

    best: LeapTS
    validation: float
    trials: tuple[Trial, ...]

    def to_toml(self) -> str:
        """The best options in the form that `leapts fit --config` reads; those it has no name for are left out."""
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
    """What TOML can hold of a table: it has no word for nothing, which is what an option that is left out has."""
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
    """Search for the options that do best on the validation windows.

    Args:
        model: What is fixed: options that were given stay, the others are searched. It is not changed.
        df: The data, as for `fit`.
        trials: How many sets of options to try, counting those that the study holds already.
        study: A SQLite file to keep the trials in, to go on from later; by default nothing is kept.
        progress: Called after every step of training that is done here.
        on_trial: Told the number of each trial before it starts, from 1.
        engine: What fits the trials, such as `leapts.scaleout.trials.FitOnCluster`; by default this process does.

    Raises:
        ConfigError: When no steps can be held out to judge by, or the study is of other data or options.
    """
    optuna = _optuna()
    if trials < 1:
        raise ConfigError(f"trials={trials} tries nothing; try at least 1")
    panel = model.read(df)
    space = Space.of(model.checked(), panel)
    with _quiet(optuna), _storage(optuna, study) as storage:
        search = _Search(optuna, _opened(optuna, storage, study, space), space)
        search.run(engine or FitHere(progress), panel, trials, on_trial)
        finished = search.finished()
        if not any(trial.state is optuna.trial.TrialState.COMPLETE for trial in finished):
            raise TrainingError("every trial diverged; look at the data, or allow more trials")
        return Tuned(
            best=space.forecaster(search.study.best_trial.params),
            validation=float(search.study.best_value),
            trials=tuple(_trial(optuna, number, trial) for number, trial in enumerate(finished, start=1)),
        )


class _Running:
    """A trial that is being fitted."""

    def __init__(self, trial: Any) -> None:
        self.trial = trial
        self.looks = 0

    def look(self, error: float) -> None:
        """Put down the error at the next look at the validation windows."""
        self.trial.report(error, self.looks)
        self.looks += 1

    def is_hopeless(self, error: float) -> bool:
        """Put it down, and say whether most others were better by then."""
        self.look(error)
        return bool(self.trial.should_prune())


class _Search:
    """A study, and those of its trials that are being fitted."""

    def __init__(self, optuna: Any, study: Any, space: Space) -> None:
        self.optuna, self.study, self.space = optuna, study, space
        self.running: dict[int, _Running] = {}

    def run(self, engine: Engine, panel: Panel, trials: int, on_trial: Callable[[int], None] | None) -> None:
        """Have so many trials done, counting those that are; what was being fitted when it breaks off has failed."""
        candidates = self._candidates(trials, on_trial or (lambda _: None))
        try:
            with closing(engine(panel, candidates)) as outcomes:
                for outcome in outcomes:
                    self._end(outcome)
        except BaseException:
            for number in self.running:
                self.study.tell(number, state=self.optuna.trial.TrialState.FAIL)
            raise

    def finished(self) -> list[Any]:
        """The trials that count."""
        states = self.optuna.trial.TrialState
        finished: list[Any] = self.study.get_trials(deepcopy=False, states=[states.COMPLETE, states.PRUNED])
        return finished

    def _candidates(self, trials: int, on_trial: Callable[[int], None]) -> Iterator[Candidate]:
        while (begun := len(self.finished()) + len(self.running)) < trials:
            on_trial(begun + 1)
            # Seeded anew for every trial, so that it does not matter where a search was interrupted.
            seed = _seed(self.space.model.random_seed, begun)
            self.study.sampler = self.optuna.samplers.TPESampler(seed=seed, n_startup_trials=6)
            if begun == 0:
                self.study.enqueue_trial(self.space.usual, skip_if_exists=False)
            trial = self.study.ask()
            running = self.running[trial.number] = _Running(trial)
            yield Candidate(trial.number, self.space.forecaster(self.space.proposal(trial)), running.is_hopeless)

    def _end(self, outcome: Outcome) -> None:
        running = self.running[outcome.number]
        for error in outcome.looks[running.looks :]:
            running.look(error)
        if outcome.diverged:
            running.trial.set_user_attr(_DIVERGED, True)
        if outcome.validation is None:
            self.study.tell(outcome.number, state=self.optuna.trial.TrialState.PRUNED)
        else:
            self.study.tell(outcome.number, outcome.validation)
        del self.running[outcome.number]


def _seed(seed: int, trial: int) -> int:
    return int.from_bytes(hashlib.blake2b(repr((seed, trial)).encode(), digest_size=4).digest(), "big")


def _optuna() -> Any:
    try:
        import optuna
    except ImportError as error:
        raise ImportError("tuning needs: pip install 'leapts[tune]'") from error
    return optuna


@contextmanager
def _quiet(optuna: Any) -> Iterator[None]:
    """Optuna tells of every trial on standard error unless told not to."""
    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(level)


@contextmanager
def _storage(optuna: Any, path: str | Path | None) -> Iterator[Any]:
    """Where a study is kept: in its file, which is closed in the end, or nowhere.

    The file is opened by its path: within an address, a question mark in its name would begin options.
    """
    if path is not None and not Path(path).parent.is_dir():
        raise ConfigError(f"the folder {Path(path).parent} does not exist; make it first")
    if path is not None and Path(path).exists() and not Path(path).read_bytes()[:16].startswith(b"SQLite format 3"):
        raise ConfigError(f"{path} is not a study: it is no SQLite file; choose another name")
    if path is None:
        yield None
        return
    from sqlalchemy.exc import SQLAlchemyError  # which optuna brings along

    opened = partial(sqlite3.connect, Path(path), check_same_thread=False)
    try:
        storage = optuna.storages.RDBStorage("sqlite:///study", engine_kwargs={"creator": opened})
    except SQLAlchemyError as error:
        why = getattr(error, "orig", None) or error
        raise ConfigError(f"{path} cannot be used as a study ({why}); choose another file, or remove it") from error
    try:
        yield storage
    finally:
        storage.remove_session()
        storage.engine.dispose()


def _opened(optuna: Any, storage: Any, path: str | Path | None, space: Space) -> Any:
    """A new study, or the one the file holds."""
    search = optuna.create_study(
        study_name=_STUDY,
        storage=storage,
        pruner=optuna.pruners.MedianPruner(_TRIALS_TO_COMPARE_WITH, _LOOKS_TO_WAIT),
        direction="minimize",
        load_if_exists=True,
    )
    known = search.user_attrs.get(_FINGERPRINT, space.fingerprint)
    if known != space.fingerprint:
        raise ConfigError(f"the study in {path} is of other data or options; choose another file, or remove it")
    search.set_user_attr(_FINGERPRINT, space.fingerprint)
    for trial in search.get_trials(deepcopy=False, states=[optuna.trial.TrialState.RUNNING]):
        # Its process was ended before it could be told.
        search.tell(trial.number, state=optuna.trial.TrialState.FAIL)
    return search


def _trial(optuna: Any, number: int, trial: Any) -> Trial:
    if trial.user_attrs.get(_DIVERGED):
        return Trial(number, dict(trial.params), None, pruned=False)
    pruned = trial.state is optuna.trial.TrialState.PRUNED
    best = min(trial.intermediate_values.values(), default=None) if pruned else float(trial.value)
    return Trial(number, dict(trial.params), best, pruned)
