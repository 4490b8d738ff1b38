"""A short share of the killed and resumed fits."""

from pathlib import Path
from typing import Any

import pytest

from leapts.training.checkpoint import Checkpoint
from leapts_qa import exact_resume


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 3])
def test_resumed_fits_equal_uninterrupted_fits(seed: int, tmp_path: Path) -> None:
    outcome = exact_resume.run(f"seed {seed}", tmp_path, kills=2)
    assert not outcome.failures
    assert outcome.cases == 2
    assert outcome.ends["resumed: equal to an uninterrupted fit"] >= 1


def test_a_reset_optimizer_is_detected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    restore = Checkpoint.restore

    def forgetful(checkpoint: Checkpoint, content: bytes, model: Any, optimizer: Any) -> Any:
        state = restore(checkpoint, content, model, optimizer)
        optimizer.state.clear()
        return state

    monkeypatch.setattr(Checkpoint, "restore", forgetful)
    outcome = exact_resume.run("seed 0", tmp_path, kills=2)
    assert "optimiser" in outcome.failures[0]
