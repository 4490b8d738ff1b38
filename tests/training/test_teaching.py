"""Who is taught learns from the teachers' mean, for a share, and from nothing that is unknown."""

import math

import pytest
import torch

from leapts.assembly import build_model
from leapts.config import ModelConfig, TrainingConfig
from leapts.core import LeapTSModel
from leapts.data.windows import AlignedWindows, WindowBatch
from leapts.training import TaughtWindows, mean_absolute_error, train

LOOKBACK, HORIZON = 16, 8
INDEX = torch.tensor([5, 0, 7])


def _model(seed: int) -> LeapTSModel:
    return build_model(ModelConfig(h=HORIZON, input_size=LOOKBACK, hidden_size=16), seed=seed)


def _waves(noise: float = 0.0) -> AlignedWindows:
    time = torch.arange(300.0)
    waves = torch.stack([torch.sin(time / 2), torch.cos(time / 3)])
    drawn = torch.randn(waves.shape, generator=torch.Generator().manual_seed(0))
    return AlignedWindows(waves + noise * drawn, LOOKBACK, HORIZON)


class _Unfinished:
    """Waves whose last step ahead is not known."""

    def __init__(self) -> None:
        self.windows = _waves()

    def __len__(self) -> int:
        return len(self.windows)

    def gather(self, index: torch.Tensor) -> WindowBatch:
        history, future = self.windows.gather(index)
        return WindowBatch(history, torch.where(torch.arange(HORIZON) < HORIZON - 1, future, math.nan))


@pytest.mark.parametrize("share", [0.0, 0.25, 1.0])
def test_a_future_is_for_its_share_the_mean_of_what_the_teachers_forecast(share: float) -> None:
    windows, teachers = _waves(), [_model(1), _model(2), _model(3)]
    taught = TaughtWindows(windows, teachers, share=share)
    came = windows.gather(INDEX)
    said = sum(teacher.forecast(came.history).values for teacher in teachers) / 3
    lesson = taught.gather(INDEX)
    assert len(taught) == len(windows)
    assert torch.equal(lesson.history, came.history)
    torch.testing.assert_close(lesson.future, (1 - share) * came.future + share * said)


def test_what_is_unknown_is_not_made_up_by_teachers() -> None:
    lesson = TaughtWindows(_Unfinished(), [_model(1)], share=0.5).gather(INDEX)
    assert lesson.future[..., -1].isnan().all()
    assert lesson.future[..., :-1].isfinite().all()


def test_lessons_of_who_knows_better_than_noise_are_worth_more_than_the_noise() -> None:
    """A teacher that has seen the waves themselves, and two models that see noise all over them."""
    config = TrainingConfig(max_steps=150, batch_size=32, val_check_steps=50, learning_rate=5e-3)
    teacher, taught, alone = _model(1), _model(2), _model(2)
    train(teacher, _waves(), None, config)
    train(alone, _waves(noise=1.0), None, config)
    train(taught, TaughtWindows(_waves(noise=1.0), [teacher], share=0.8), None, config)
    assert mean_absolute_error(taught, _waves()) < 0.8 * mean_absolute_error(alone, _waves())
