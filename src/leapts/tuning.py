"""A search for better options, judged on the validation windows: Optuna proposes, `LeapTS` fits, the best one wins.

Only what the forecaster leaves open is searched. The first trial is what would have been picked anyway, so the result
is never worse than no search on the windows it is judged by. Every trial's proposal follows from the seed and the
trials before it, so a search that was stopped and resumed is the search that was not.
"""

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tomli_w

from leapts.data.panel import Panel
from leapts.errors import ConfigError, TrainingError
from leapts.forecaster import LeapTS
from leapts.forecaster.picking import Picked, pick_options
from leapts.training import Progress, TrainingStep

if TYPE_CHECKING:
    import optuna

_STUDY = "leapts"
_FINGERPRINT = "fingerprint"
_LEARNING_RATES = (3e-4, 1e-2)
_HIDDEN_SIZES = (16, 32, 64, 128)
_MAX_LEAPS = (2, 3, 4, 6)
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
        params = self.best.get_params().items()
        changed = {name: value for name, value in params if value != usual[name] and name not in ("alias", "pad_short")}
        tables: dict[str, dict[str, Any]] = {
            name: dict(changed.pop(name)) for name in ("model", "training") if name in changed
        }
        if "batch_size" in changed:  # the command line has no option for it
            tables["training"] = {**tables.get("training", {}), "batch_size": changed.pop("batch_size")}
        names = {"random_seed": "seed"}
        flat = {names.get(name, name).replace("_", "-"): value for name, value in changed.items()}
        return tomli_w.dumps({"horizon": self.best.h, **flat, **tables})


def tune(
    model: LeapTS,
    df: Any,
    trials: int = 20,
    *,
    study: str | Path | None = None,
    progress: Progress | None = None,
    on_trial: Callable[[int], None] | None = None,
) -> Tuned:
    """Search for the options that do best on the validation windows.

    Args:
        model: What is fixed: options that were given stay, the others are searched. It is not changed.
        df: The data, as for `fit`.
        trials: How many sets of options to try, counting those that the study holds already.
        study: A SQLite file to keep the trials in, to go on from later; by default nothing is kept.
        progress: Called after every step of training.
        on_trial: Told the number of each trial before it starts, from 1.

    Raises:
        ConfigError: When no steps can be held out to judge by, or the study is of other data or options.
    """
    optuna = _optuna()
    if trials < 1:
        raise ConfigError(f"trials={trials} tries nothing; try at least 1")
    panel = model.read(df)
    space = _Space.of(model, panel)
    with _quiet(optuna):
        search = _opened(optuna, study, space)
        while (done := len(_finished(optuna, search))) < trials:
            if on_trial is not None:
                on_trial(done + 1)
            # Seeded anew for every trial, so that it does not matter where a search was interrupted.
            search.sampler = optuna.samplers.TPESampler(seed=_seed(model.random_seed, done), n_startup_trials=6)
            if done == 0:
                search.enqueue_trial(space.usual, skip_if_exists=False)
            _run(optuna, search, space, panel, progress)
        finished = _finished(optuna, search)
        if not any(trial.state is optuna.trial.TrialState.COMPLETE for trial in finished):
            raise TrainingError("every trial diverged; look at the data, or allow more trials")
        return Tuned(
            best=space.forecaster(search.best_trial.params),
            validation=float(search.best_value),
            trials=tuple(_trial(optuna, number, trial) for number, trial in enumerate(finished, start=1)),
        )


@dataclass(frozen=True)
class _Space:
    """What is searched: the options a forecaster leaves open, with the values each may take."""

    model: LeapTS
    choices: dict[str, tuple[Any, ...]]
    usual: dict[str, Any]  # what is picked without a search
    fingerprint: str

    @classmethod
    def of(cls, model: LeapTS, panel: Panel) -> "_Space":
        given = dict(model.model or {})
        picked = pick_options(
            panel, model.h, input_size=model.input_size, val_size=model.val_size, model=given, training={}
        )
        if picked.val_size == 0:
            raise ConfigError(
                "no steps are held out, so there is nothing to judge by; give longer series, or val_size= of at "
                f"least {model.h}"
            )
        usual = {
            "input_size": picked.model.input_size,
            "hidden_size": picked.model.hidden_size,
            "normalization": picked.model.normalization,
            "mixing": picked.model.mixing.kind,
            "max_leaps": getattr(picked.model.scheduling, "max_leaps", None),
            "learning_rate": picked.training.learning_rate,
        }
        choices: dict[str, tuple[Any, ...]] = {
            "input_size": _lookbacks(picked, panel, model.h),
            "hidden_size": _HIDDEN_SIZES,
            "normalization": ("mean", "last", "none"),
            "mixing": ("none", "mlp") if len(panel) > 1 and panel.is_aligned else ("none",),
            "max_leaps": _MAX_LEAPS,
            "learning_rate": _LEARNING_RATES,
        }
        fixed = set(given) | ({"max_leaps"} if "scheduling" in given else set())
        fixed |= {"mixing"} if {"variate_identity", "n_series", "state"} & set(given) else set()
        fixed |= {name for name in ("input_size", "learning_rate") if getattr(model, name) is not None}
        fixed |= {"learning_rate"} & set(model.training or {})
        choices = {name: values for name, values in choices.items() if name not in fixed and len(values) > 1}
        if not choices:
            raise ConfigError("every option is given, so there is nothing to search; leave some of them open")
        return cls(model, choices, {name: usual[name] for name in choices}, _fingerprint(model, panel, choices))

    def proposal(self, trial: "optuna.Trial") -> dict[str, Any]:
        """One value for each option."""
        return {
            name: trial.suggest_float(name, *values, log=True)
            if name == "learning_rate"
            else trial.suggest_categorical(name, values)
            for name, values in self.choices.items()
        }

    def forecaster(self, options: dict[str, Any]) -> LeapTS:
        """The forecaster with these options."""
        inside = dict(self.model.model or {})
        outside: dict[str, Any] = {name: options[name] for name in ("input_size", "learning_rate") if name in options}
        inside |= {name: options[name] for name in ("hidden_size", "normalization") if name in options}
        if "mixing" in options:
            inside |= {"mixing": {"kind": options["mixing"]}, "variate_identity": options["mixing"] != "none"}
        if "max_leaps" in options:
            inside["scheduling"] = {"kind": "hierarchical", "max_leaps": options["max_leaps"]}
        params: dict[str, Any] = {**self.model.get_params(), **outside, "model": inside or None}
        return LeapTS(**params)


def _lookbacks(picked: Picked, panel: Panel, h: int) -> tuple[int, ...]:
    """Half to four times what would be picked, as far as the shortest series leaves windows to learn from."""
    usual = picked.model.input_size
    room = (int(panel.lengths.min()) - picked.val_size - h) // 2
    return tuple(size for size in (max(1, usual // 2), usual, 2 * usual, 4 * usual) if size <= max(room, usual))


def _fingerprint(model: LeapTS, panel: Panel, choices: dict[str, tuple[Any, ...]]) -> str:
    """Of everything the course of a search depends on."""
    digest = hashlib.sha256(json.dumps([model.get_params(), choices], sort_keys=True, default=str).encode())
    digest.update(panel.offsets.numpy().tobytes())
    digest.update(panel.values.numpy().tobytes())
    return digest.hexdigest()


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


def _opened(optuna: Any, path: str | Path | None, space: _Space) -> Any:
    """A new study, or the one the file holds."""
    if path is not None and not Path(path).parent.is_dir():
        raise ConfigError(f"the folder {Path(path).parent} does not exist; make it first")
    if path is not None and Path(path).exists() and not Path(path).read_bytes()[:16].startswith(b"SQLite format 3"):
        raise ConfigError(f"{path} is not a study: it is no SQLite file; choose another name")
    search = optuna.create_study(
        study_name=_STUDY,
        storage=None if path is None else f"sqlite:///{Path(path)}",
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


def _run(optuna: Any, search: Any, space: _Space, panel: Panel, progress: Progress | None) -> None:
    """One trial: fit, report every look, stop early when most others were better by then."""
    states = optuna.trial.TrialState
    trial = search.ask()
    forecaster = space.forecaster(space.proposal(trial))
    looks = 0

    def watch(step: TrainingStep) -> None:
        nonlocal looks
        if progress is not None:
            progress(step)
        if step.validation is not None:
            trial.report(step.validation, looks)
            looks += 1
            if trial.should_prune():
                raise optuna.TrialPruned

    try:
        forecaster.fit(panel, progress=watch)
    except (optuna.TrialPruned, TrainingError):
        search.tell(trial, state=states.PRUNED)
    except BaseException:
        search.tell(trial, state=states.FAIL)
        raise
    else:
        search.tell(trial, forecaster.report_.best_validation)


def _finished(optuna: Any, search: Any) -> list[Any]:
    states = optuna.trial.TrialState
    finished: list[Any] = search.get_trials(deepcopy=False, states=[states.COMPLETE, states.PRUNED])
    return finished


def _trial(optuna: Any, number: int, trial: Any) -> Trial:
    pruned = trial.state is optuna.trial.TrialState.PRUNED
    looks = list(trial.intermediate_values.values())
    best = min(looks) if looks else None
    return Trial(number, dict(trial.params), best if pruned else float(trial.value), pruned)
