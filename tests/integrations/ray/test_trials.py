"""A search on a cluster finishes all trials, also when it loses a machine."""

import json
import os
import sqlite3
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from leapts import LeapTS
from leapts.cli import run
from leapts.data.panel import Panel
from leapts.errors import ConfigError
from leapts.integrations.tuning import Candidate, Outcome, fit_once, tune
from tests.forecasting.frames import H, make_frame

ray = pytest.importorskip("ray")
pytest.importorskip("optuna")
pytestmark = pytest.mark.filterwarnings("ignore")  # Ray's own

from leapts.integrations.ray.tuning import RayEngine  # noqa: E402

FRAME = make_frame({"a": 60, "b": 60})
MODEL = LeapTS(H, 12, max_steps=4, batch_size=16, training={"val_check_steps": 2})
TRIALS = 6


@dataclass(frozen=True)
class _Noted:
    """Fit slowly, and record the machine of each trial."""

    notes: Path

    def __call__(self, candidate: Candidate, panel: Panel) -> Outcome:
        note = self.notes / f"{candidate.number}-{os.getpid()}-{time.time_ns()}"
        note.write_text(ray.get_runtime_context().get_node_id())
        outcome = fit_once(candidate, panel)
        time.sleep(1.5)
        return outcome


@dataclass(frozen=True)
class _Broken:
    """Refuse the options."""

    def __call__(self, candidate: Candidate, panel: Panel) -> Outcome:
        raise ConfigError(f"trial {candidate.number} of {len(panel)} series makes no sense")


def _told(study: Path) -> dict[int, str]:
    """Read the ended trials and their times from the file; Optuna would create a missing file."""
    ended = "SELECT number, datetime_complete FROM trials WHERE state IN ('COMPLETE', 'PRUNED')"
    try:
        with closing(sqlite3.connect(f"file:{study}?mode=ro", uri=True)) as file:
            return dict(file.execute(ended).fetchall())
    except sqlite3.OperationalError:
        return {}  # the file is being created


def test_after_the_loss_of_a_machine_only_unfinished_trials_are_repeated(
    cluster: Any, machine: Any, tmp_path: Path
) -> None:
    notes, study = tmp_path / "notes", tmp_path / "search.db"
    notes.mkdir()
    with ThreadPoolExecutor(1) as pool:
        job = pool.submit(tune, MODEL, FRAME, TRIALS, study=study, engine=RayEngine(fit=_Noted(notes)))
        while not job.done() and not (
            _told(study) and any(note.read_text() == machine.node_id for note in notes.iterdir())
        ):
            time.sleep(0.1)
        before = _told(study)
        cluster.remove_node(machine, allow_graceful=False)
        found = job.result(120)
    assert 0 < len(before) < TRIALS, "the machine was lost too late to matter"
    after = _told(study)
    assert len(after) == TRIALS == len(found.trials)
    assert {number: after[number] for number in before} == before
    repeats = len(list(notes.iterdir())) - TRIALS
    assert 0 <= repeats <= 1, "the lost machine had one processor"
    # A fit here gives the same result, and the study can be resumed here.
    assert found.trials[0].validation == pytest.approx(LeapTS.fit(MODEL, FRAME).report_.best_validation, rel=1e-4)
    assert tune(MODEL, FRAME, TRIALS, study=study).trials == found.trials
    assert len(tune(MODEL, FRAME, TRIALS + 1, study=study).trials) == TRIALS + 1


@pytest.mark.usefixtures("cluster")
def test_errors_are_raised_as_without_a_cluster_and_the_trial_can_be_repeated(tmp_path: Path) -> None:
    study = tmp_path / "search.db"
    with pytest.raises(ConfigError, match=r"^trial \d of 2 series makes no sense$"):
        tune(MODEL, FRAME, 2, study=study, engine=RayEngine(fit=_Broken()))
    assert len(tune(MODEL, FRAME, 2, study=study).trials) == 2


@pytest.mark.usefixtures("cluster")
def test_the_command_line_tunes_on_a_cluster(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    data, best = tmp_path / "data.csv", tmp_path / "best.toml"
    FRAME.to_csv(data, index=False)
    options = ["--horizon", "6", "--max-steps", "4", "--trials", "3", "--engine", "ray", "--out", str(best), "--json"]
    assert run(["tune", str(data), *options]) == 0
    done = json.loads(capfd.readouterr().out)
    assert [trial["number"] for trial in done["trials"]] == [1, 2, 3]
    assert done["validation"] == min(trial["validation"] for trial in done["trials"])
    assert tomllib.loads(best.read_text())["horizon"] == 6
