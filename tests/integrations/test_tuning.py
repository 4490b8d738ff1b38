"""A search changes only open options, can be resumed, and its best result can be refitted."""

import tomllib
from collections.abc import Generator, Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid

from leapts import ConfigError, LeapTS
from leapts.data.panel import Panel
from leapts.training.loop import TrainingStep
from tests.forecasting.frames import H, make_forecaster, make_frame

optuna = pytest.importorskip("optuna")

from leapts.integrations.tuning import Candidate, Outcome, Tuned, fit_once, tune  # noqa: E402


def quick(**options: Any) -> LeapTS:
    """A model small enough for many trials, with the look-back to be searched."""
    training = {"val_check_steps": 4}
    return LeapTS(H, **{"max_steps": 12, "batch_size": 16, "training": training, **options})


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return make_frame({"a": 90, "b": 90})


@pytest.fixture(scope="module")
def steps() -> list[int]:
    """The training steps of the search."""
    return []


@pytest.fixture(scope="module")
def found(frame: pd.DataFrame, steps: list[int]) -> Tuned:
    return tune(quick(), frame, trials=9, progress=lambda step: steps.append(step.step))


def test_the_first_trial_is_the_auto_config(found: Tuned, frame: pd.DataFrame) -> None:
    assert found.trials[0].validation == quick().fit(frame).report_.best_validation
    assert found.validation <= (found.trials[0].validation or 0)


def test_the_best_trial_has_the_lowest_error_and_a_fit_reproduces_it(found: Tuned, frame: pd.DataFrame) -> None:
    assert [trial.number for trial in found.trials] == list(range(1, 10))
    whole = [trial.validation for trial in found.trials if not trial.pruned]
    assert found.validation == min(error for error in whole if error is not None)
    assert found.best.fit(frame).report_.best_validation == found.validation


def test_bad_trials_are_pruned(found: Tuned, steps: list[int]) -> None:
    pruned = [trial for trial in found.trials if trial.pruned]
    assert pruned
    assert all(trial.number > 4 for trial in pruned)
    assert (9 - len(pruned)) * 12 <= len(steps) < 9 * 12


def test_a_resumed_search_equals_an_uninterrupted_one(found: Tuned, frame: pd.DataFrame, tmp_path: Path) -> None:
    study = tmp_path / "search.db"
    began: list[int] = []

    def stop_in_the_middle(step: TrainingStep) -> None:
        if len(began) == 6 and step.step == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tune(quick(), frame, trials=9, study=study, progress=stop_in_the_middle, on_trial=began.append)
    assert began == [1, 2, 3, 4, 5, 6]
    resumed = tune(quick(), frame, trials=9, study=study, on_trial=began.append)
    assert began[6:] == [6, 7, 8, 9]
    assert resumed.trials == found.trials
    assert resumed.best.get_params() == found.best.get_params()
    assert tune(quick(), frame, trials=9, study=study, on_trial=began.append).trials == found.trials
    assert len(began) == 10


def _two_at_a_time(panel: Panel, candidates: Iterator[Candidate]) -> Generator[Outcome, None, None]:
    """Run two trials at a time, end the later one first, and never prune."""
    while pair := list(islice(candidates, 2)):
        for candidate in reversed(pair):
            yield fit_once(replace(candidate, should_prune=lambda _: False), panel)


def test_an_engine_may_run_several_trials_and_end_them_in_any_order(
    found: Tuned, frame: pd.DataFrame, tmp_path: Path
) -> None:
    study = tmp_path / "search.db"
    began: list[int] = []
    together = tune(quick(), frame, trials=5, study=study, engine=_two_at_a_time, on_trial=began.append)
    assert began == [1, 2, 3, 4, 5] == [trial.number for trial in together.trials]
    assert together.trials[0] == found.trials[0]
    assert len({str(trial.options) for trial in together.trials}) == 5
    assert not any(trial.pruned for trial in together.trials)
    assert tune(quick(), frame, trials=6, study=study).trials[:5] == together.trials


def test_trials_that_ended_before_an_interruption_are_kept(frame: pd.DataFrame, tmp_path: Path) -> None:
    study = tmp_path / "search.db"

    def interrupted(panel: Panel, candidates: Iterator[Candidate]) -> Generator[Outcome, None, None]:
        outcomes = _two_at_a_time(panel, candidates)
        yield from islice(outcomes, 3)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tune(quick(), frame, trials=4, study=study, engine=interrupted)
    began: list[int] = []
    assert len(tune(quick(), frame, trials=4, study=study, on_trial=began.append).trials) == 4
    assert began == [4]


def test_a_killed_trial_is_repeated(frame: pd.DataFrame, tmp_path: Path) -> None:
    study = tmp_path / "search.db"
    first = tune(quick(), frame, trials=2, study=study)
    # The trial of a killed process stays marked as running.
    optuna.load_study(study_name="leapts", storage=f"sqlite:///{study}").ask()
    assert tune(quick(), frame, trials=2, study=study).trials == first.trials
    assert len(tune(quick(), frame, trials=3, study=study).trials) == 3


def test_the_study_file_may_have_any_name(frame: pd.DataFrame, tmp_path: Path) -> None:
    study = tmp_path / "a?mode=memory&b=%20#c.db"
    first = tune(quick(), frame, trials=1, study=study)
    assert [path.name for path in tmp_path.iterdir()] == [study.name]
    assert tune(quick(), frame, trials=1, study=study).trials == first.trials


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="open files are listed there")
def test_the_study_file_is_closed(frame: pd.DataFrame, tmp_path: Path) -> None:
    study = tmp_path / "search.db"
    tune(quick(), frame, trials=1, study=study)
    with suppress(ConfigError):
        tune(quick(), frame.head(200), trials=1, study=study)  # of other data
    still_open = [link.readlink() for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]
    assert study not in still_open


def test_a_study_that_cannot_be_opened_is_named(frame: pd.DataFrame, tmp_path: Path) -> None:
    damaged = tmp_path / "search.db"
    damaged.write_bytes(b"SQLite format 3\0" + b"junk" * 100)
    with pytest.raises(ConfigError, match=r"search\.db cannot be used as a study"):
        tune(quick(), frame, trials=1, study=damaged)


def test_a_study_of_other_data_is_refused(frame: pd.DataFrame, tmp_path: Path) -> None:
    study = tmp_path / "search.db"
    tune(quick(), frame, trials=1, study=study)
    with pytest.raises(ConfigError, match=r"search\.db.*other data or options"):
        tune(quick(), make_frame(seed=1), trials=1, study=study)
    with pytest.raises(ConfigError, match=r"search\.db.*other data or options"):
        tune(quick(random_seed=2), frame, trials=1, study=study)
    (tmp_path / "notes.txt").write_text("not a data base")
    with pytest.raises(ConfigError, match=r"notes\.txt is not an SQLite file"):
        tune(quick(), frame, trials=1, study=tmp_path / "notes.txt")
    assert (tmp_path / "notes.txt").read_text() == "not a data base"


def test_the_best_options_are_written_for_any_numeric_type() -> None:
    state = {"kind": "cde", "rank": None, "hidden_size": np.int64(4)}
    best = LeapTS(np.int64(H), freq=np.int64(1), max_steps=2.0, model={"state": state})  # type: ignore[arg-type]
    options = tomllib.loads(Tuned(best, 1.0, ()).to_toml())
    assert options == {
        "horizon": H, "freq": 1, "max-steps": 2, "model": {"state": {"kind": "cde", "hidden_size": 4}},
    }  # fmt: skip
    assert type(options["max-steps"]) is int


def test_given_options_are_not_searched(frame: pd.DataFrame) -> None:
    model = {"hidden_size": 16, "mixing": {"kind": "none"}, "scheduling": {"kind": "fixed", "step": 2}}
    given = quick(input_size=12, learning_rate=0.004, model=model)
    before = given.get_params()
    result = tune(given, frame, trials=2)
    assert set(result.trials[0].options) == {"normalization"}
    best = result.best.get_params()
    assert best["model"].pop("normalization") in ("mean", "last", "none")
    assert best["model"] == model
    assert {**best, "model": model} == before == given.get_params()
    everything = {**model, "normalization": "mean"}
    with pytest.raises(ConfigError, match="nothing to search"):
        tune(quick(input_size=12, learning_rate=0.004, model=everything), frame)


def test_a_search_needs_held_out_steps(frame: pd.DataFrame) -> None:
    with pytest.raises(ConfigError, match="val_size=0"):
        tune(quick(val_size=0), frame)
    with pytest.raises(ConfigError, match="trials=0"):
        tune(quick(), frame, trials=0)


def test_nothing_is_written_or_printed_by_default(
    frame: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    tune(quick(), frame, trials=1)
    assert list(tmp_path.iterdir()) == []
    assert capfd.readouterr() == ("", "")


def test_a_diverged_trial_counts_and_the_search_continues(frame: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    from leapts.errors import TrainingError

    fit = LeapTS.fit

    def sometimes(self: LeapTS, *args: Any, **options: Any) -> LeapTS:
        if self.learning_rate != 0.002:
            raise TrainingError("the loss became nan")
        return fit(self, *args, **options)

    monkeypatch.setattr(LeapTS, "fit", sometimes)
    result = tune(quick(), frame, trials=3)
    assert [trial.validation is None for trial in result.trials] == [False, True, True]


def test_a_trial_that_diverged_after_a_validation_check_has_no_score(frame: pd.DataFrame) -> None:
    def engine(panel: Panel, candidates: Iterator[Candidate]) -> Generator[Outcome, None, None]:
        """The second trial diverges after its best validation check."""
        for number, candidate in enumerate(candidates):
            if number == 1:
                yield Outcome(candidate.number, (0.1,), None, diverged=True)
            else:
                yield fit_once(candidate, panel)

    result = tune(quick(), frame, trials=3, engine=engine)
    assert (result.trials[1].validation, result.trials[1].pruned) == (None, False)
    assert result.validation == min(trial.validation for trial in result.trials if trial.validation is not None)


def test_the_estimator_follows_scikit_learn_conventions(frame: pd.DataFrame) -> None:
    model = make_forecaster(max_steps=5, model={"hidden_size": 8, "mixing": {"kind": "none"}}).fit(frame)
    twin = clone(model)
    assert twin.get_params() == model.get_params()
    assert twin.model is not model.model
    assert not hasattr(twin, "_fitted")
    errors = {}
    for options in ParameterGrid({"learning_rate": [1e-3, 1e-2], "input_size": [6, 12]}):
        candidate = clone(model).set_params(**options)
        errors[tuple(options.values())] = candidate.fit(frame).report_.best_validation
        assert candidate.get_params()["input_size"] == options["input_size"]
    assert len(set(errors.values())) == 4


def test_old_names_of_engines_work_and_warn() -> None:
    from leapts.integrations import tuning

    with pytest.warns(DeprecationWarning, match="LocalEngine"):
        assert tuning.FitHere is tuning.LocalEngine
