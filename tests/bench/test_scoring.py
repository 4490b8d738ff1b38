import numpy as np
import pytest
import torch
from torch import Tensor

from leapts.data.panel import Panel
from leapts_bench.protocol import Benchmark, cut
from leapts_bench.scoring import Predicted, score
from tests.bench.conftest import ETT_HOURLY


class _Repeats:
    """Repeats the last value, and reports one more leap for the second series than for the first."""

    def __init__(self, horizon: int) -> None:
        self.horizon = horizon

    def predict(self, history: Tensor) -> Predicted:
        leaps = torch.tensor([1.0, 2.0]).expand(len(history), 2)
        return Predicted(history[..., -1:].expand(-1, -1, self.horizon), leaps)


@pytest.fixture
def data(panel: Panel) -> Benchmark:
    return cut(panel, ETT_HOURLY, input_size=96, horizon=36)


def test_scores_equal_a_naive_loop_over_every_window(panel: Panel, data: Benchmark) -> None:
    values = panel.matrix().numpy()
    train = values[:, :8640]
    mean, deviation = train.mean(1, keepdims=True), train.std(1, keepdims=True)
    squared, absolute, squared_units, absolute_units = [], [], [], []
    for start in range(11520, 14400 - 36 + 1):
        units = values[:, start - 1 : start] - values[:, start : start + 36]
        scaled = (values[:, start - 1 : start] - mean) / deviation - (values[:, start : start + 36] - mean) / deviation
        squared.append(np.mean(scaled**2))
        absolute.append(np.mean(np.abs(scaled)))
        squared_units.append(np.mean(units**2))
        absolute_units.append(np.mean(np.abs(units)))
    scores = score(_Repeats(36), data.test(), data.scaler)
    assert scores.windows == len(squared) == 2845
    assert scores.mse == pytest.approx(np.mean(squared), rel=1e-5)
    assert scores.mae == pytest.approx(np.mean(absolute), rel=1e-5)
    assert scores.mse_original == pytest.approx(np.mean(squared_units), rel=1e-5)
    assert scores.mae_original == pytest.approx(np.mean(absolute_units), rel=1e-5)
    assert scores.mse_whole_batches == pytest.approx(np.mean(squared[: 2845 // 32 * 32]), rel=1e-5)
    assert scores.mae_whole_batches == pytest.approx(np.mean(absolute[: 2845 // 32 * 32]), rel=1e-5)
    assert scores.leaps == 1.5


def test_fewer_windows_than_a_batch_leave_no_whole_one(data: Benchmark) -> None:
    class Few:
        def __len__(self) -> int:
            return 31

        def gather(self, index: Tensor) -> object:
            return data.test().gather(index)

    scores = score(_Repeats(36), Few(), data.scaler)  # type: ignore[arg-type]
    assert scores.windows == 31
    assert scores.mse_whole_batches is None
