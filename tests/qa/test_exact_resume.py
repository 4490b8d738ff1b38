"""A short share of the fits that are killed and resumed."""

from pathlib import Path
from typing import Any

import pytest

from leapts.training.checkpoint import Checkpoint
from leapts_qa import exact_resume


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 3])
def test_killed_fits_go_on_as_if_nothing_had_happened(seed: int, tmp_path: Path) -> None:
    outcome = exact_resume.run(f"seed {seed}", tmp_path, kills=2)
    assert not outcome.failures
    assert outcome.cases == 2
    assert outcome.ends["resumed: equal to an uninterrupted fit"] >= 1


def test_an_optimiser_that_starts_afresh_would_be_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    restore = Checkpoint.restore

    def forgetful(checkpoint: Checkpoint, content: bytes, model: Any, optimizer: Any) -> Any:
        state = restore(checkpoint, content, model, optimizer)
        optimizer.state.clear()
        return state

    monkeypatch.setattr(Checkpoint, "restore", forgetful)
    outcome = exact_resume.run("seed 0", tmp_path, kills=2)
    assert "optimiser" in outcome.failures[0]
