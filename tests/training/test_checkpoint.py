"""A killed and resumed run equals an uninterrupted one bit for bit."""

import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from leapts import LeapTS, ModelFileError
from leapts.training.checkpoint import FILE_NAME

STEPS = 36

# The same fit in another process, slow enough to be killed in the middle.
SCRIPT = f"""
import sys, time, torch
import pandas as pd
from leapts import LeapTS
torch.set_num_threads(1)
model = LeapTS(h=6, input_size=12, max_steps={STEPS}, batch_size=16, training={{"val_check_steps": 7, "patience": 0}})
model.fit(pd.read_csv(sys.argv[1]), checkpoint_dir=sys.argv[2], progress=lambda event: time.sleep(0.1))
"""


def _model(**options: Any) -> LeapTS:
    given = {"max_steps": STEPS, "batch_size": 16, "training": {"val_check_steps": 7, "patience": 0}, **options}
    return LeapTS(h=6, input_size=12, **given)


def _assert_same(ours: LeapTS, theirs: LeapTS) -> None:
    assert ours.report_ == theirs.report_
    state, other = ours.predictor_.model.state_dict(), theirs.predictor_.model.state_dict()
    assert all(torch.equal(state[name], other[name]) for name in state)
    pd.testing.assert_frame_equal(ours.predict(level=[80]), theirs.predict(level=[80]))


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "data.csv"
    rng, steps = np.random.default_rng(0), np.arange(200)
    days = pd.date_range("2024-01-01", periods=200)
    pd.concat(
        pd.DataFrame({"unique_id": name, "ds": days, "y": np.sin(steps / k) + 0.1 * rng.normal(size=200)})
        for name, k in (("a", 2), ("b", 3))
    ).to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def uninterrupted(data: Path) -> LeapTS:
    return _model().fit(data)


@pytest.fixture(scope="module")
def finished(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkpoint folder of a finished run."""
    folder = tmp_path_factory.mktemp("finished")
    _model().fit(data, checkpoint_dir=folder)
    return folder


@pytest.fixture
def kept(finished: Path, tmp_path: Path) -> Path:
    """A copy of the folder of the finished run."""
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    return tmp_path


@pytest.mark.slow
def test_resumed_after_sigkill_equals_uninterrupted(data: Path, uninterrupted: LeapTS, tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", SCRIPT, str(data), str(tmp_path)])
    deadline = time.monotonic() + 120
    while not (tmp_path / FILE_NAME).exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.7)
    assert process.poll() is None, "the run ended before it could be killed"
    process.kill()
    process.wait()
    events: list[int] = []
    resumed = _model().fit(data, checkpoint_dir=tmp_path, resume=True, progress=lambda event: events.append(event.step))
    assert events[0] > 1, "it started from the beginning"
    _assert_same(resumed, uninterrupted)


@pytest.mark.parametrize("stop_at", [1, 7, 8, 20, STEPS - 1])
def test_resumed_after_an_interrupt_at_any_step_equals_uninterrupted(
    data: Path, uninterrupted: LeapTS, tmp_path: Path, stop_at: int
) -> None:
    def interrupt(event: Any) -> None:
        if event.step == stop_at:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        _model().fit(data, checkpoint_dir=tmp_path, progress=interrupt)
    assert (tmp_path / FILE_NAME).exists() == (stop_at >= 7)
    _assert_same(_model().fit(data, checkpoint_dir=tmp_path, resume=True), uninterrupted)


def test_resuming_a_finished_run_changes_nothing(data: Path, uninterrupted: LeapTS, kept: Path) -> None:
    events: list[Any] = []
    resumed = _model().fit(data, checkpoint_dir=kept, resume=True, progress=events.append)
    assert events == []
    _assert_same(resumed, uninterrupted)


def test_without_resume_a_fit_starts_from_the_beginning(data: Path, kept: Path) -> None:
    events: list[int] = []
    _model().fit(data, checkpoint_dir=kept, progress=lambda event: events.append(event.step))
    assert events[0] == 1


@pytest.mark.parametrize("change", [{"random_seed": 2}, {"max_steps": STEPS + 1}, {"batch_size": 8}])
def test_a_checkpoint_of_other_options_is_refused(data: Path, kept: Path, change: dict[str, Any]) -> None:
    with pytest.raises(ModelFileError, match="belongs to another run: the options or the data differ"):
        _model(**change).fit(data, checkpoint_dir=kept, resume=True)


def test_a_checkpoint_of_other_data_is_refused(data: Path, kept: Path) -> None:
    other = pd.read_csv(data)
    other["y"] += 1e-9 * (other.index == 3)
    with pytest.raises(ModelFileError, match="the options or the data differ"):
        _model().fit(other, checkpoint_dir=kept, resume=True)


@pytest.mark.parametrize("place", [0.3, 0.6, 0.99])
def test_a_flipped_bit_in_a_checkpoint_is_detected(data: Path, kept: Path, place: float) -> None:
    file = kept / FILE_NAME
    damaged = bytearray(file.read_bytes())
    damaged[int(place * len(damaged))] ^= 0x04
    file.write_bytes(damaged)
    with pytest.raises(ModelFileError, match="cannot be read as a checkpoint"):
        _model().fit(data, checkpoint_dir=kept, resume=True)


@pytest.mark.parametrize("keep", [0, 5, 100, -1])
def test_a_damaged_checkpoint_is_refused(data: Path, kept: Path, keep: int) -> None:
    file = kept / FILE_NAME
    file.write_bytes(file.read_bytes()[:keep])
    with pytest.raises(ModelFileError, match=r"cannot be read as a checkpoint.*start again without resuming"):
        _model().fit(data, checkpoint_dir=kept, resume=True)
