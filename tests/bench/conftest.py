"""Small runs and series for tests."""

from pathlib import Path

import numpy as np
import pytest
import torch

from leapts.data.panel import Panel
from leapts.data.splits import split_by_months
from leapts_bench.recipes import Recipe
from leapts_bench.runs import LeapTSDesign, Learning, Run

ETT_HOURLY = split_by_months(12, 4, 4, steps_per_day=24)

TINY = Recipe(
    model=LeapTSDesign(options={"hidden_size": 8, "encoder_layers": 1}),
    training=Learning(epochs=0.2, batch_size=64, looks=1),
)


def tiny_run(horizon: int = 12, seed: int = 1) -> Run:
    """A fast run of the bundled data set."""
    return TINY.run("SeattleWeather", input_size=24, horizon=horizon, seed=seed)


@pytest.fixture
def panel() -> Panel:
    """Two series as long as the split of ETTh1 needs."""
    steps = np.arange(14_400)
    values = np.stack([np.sin(steps / 24), 100 + 30 * np.cos(steps / 12)])
    return Panel.from_matrix(torch.from_numpy(values))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder for results."""
    return tmp_path / "results"
