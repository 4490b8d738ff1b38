"""Workers of Ray Train, which create a process group, fit the same model as one process."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
import torch

from leapts import LeapTS

pytest.importorskip("ray")
pytest.importorskip("ray.train")
pytestmark = pytest.mark.filterwarnings("ignore")  # Ray's own

from ray_training import train  # noqa: E402

OPTIONS: dict[str, Any] = {"h": 6, "input_size": 12, "max_steps": 8, "batch_size": 33}


@pytest.mark.usefixtures("machine")  # two workers, and a controller beside them
def test_two_workers_of_ray_train_fit_the_same_model_as_one_process(table: pa.Table, tmp_path: Path) -> None:
    data = tmp_path / "whole.parquet"
    pa.parquet.write_table(table, data)
    train(data, tmp_path / "model", workers=2, options=OPTIONS, storage=tmp_path / "ray")
    alone = LeapTS(**OPTIONS).fit(data)
    together = LeapTS.load(tmp_path / "model")
    assert together.report_.steps == 8
    weights = alone.predictor_.model.state_dict()
    for name, value in together.predictor_.model.state_dict().items():
        torch.testing.assert_close(value, weights[name], rtol=1e-4, atol=1e-5)
