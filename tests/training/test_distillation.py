"""Who is taught learns from the teachers' mean, for a share, and from nothing that is unknown."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch

from leapts.config import ModelConfig, TrainingConfig
from leapts.data.windows import AlignedWindows, WindowBatch
from leapts.errors import TrainingError
from leapts.model import LeapTSModel
from leapts.model.build import build_model
from leapts.training.checkpoint import Checkpoint
from leapts.training.distillation import LONGER, SHARE, DistillationWindows, teacher_configs, train_with_distillation
from leapts.training.loop import TrainingStep, mean_absolute_error, train

LOOKBACK, HORIZON = 16, 8
INDEX = torch.tensor([5, 0, 7])


def _model(seed: int) -> LeapTSModel:
    return build_model(ModelConfig(h=HORIZON, input_size=LOOKBACK, hidden_size=16), seed=seed)


def _waves(noise: float = 0.0) -> AlignedWindows:
    time = torch.arange(300.0)
    waves = torch.stack([torch.sin(time / 2), torch.cos(time / 3)])
    drawn = torch.randn(waves.shape, generator=torch.Generator().manual_seed(0))
    return AlignedWindows(waves + noise * drawn, LOOKBACK, HORIZON)


def _config(**options: Any) -> TrainingConfig:
    return TrainingConfig(**{"max_steps": 10, "batch_size": 32, "val_check_steps": 5, "distill_from": 2, **options})


def _assert_same_weights(one: LeapTSModel, other: LeapTSModel) -> None:
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))


class _Unfinished:
    """Waves whose last step ahead is not known."""

    def __init__(self) -> None:
        self.windows = _waves()

    def __len__(self) -> int:
        return len(self.windows)

    def gather(self, index: torch.Tensor) -> WindowBatch:
        batch = self.windows.gather(index)
        history, future = batch.history, batch.target
        return WindowBatch(history, torch.where(torch.arange(HORIZON) < HORIZON - 1, future, math.nan))


@pytest.mark.parametrize("share", [0.0, 0.25, 1.0])
def test_a_future_is_for_its_share_the_mean_of_what_the_teachers_forecast(share: float) -> None:
    windows, teachers = _waves(), [_model(1), _model(2), _model(3)]
    taught = DistillationWindows(windows, teachers, share=share)
    came = windows.gather(INDEX)
    said = sum(teacher.forecast(came.history).values for teacher in teachers) / 3
    lesson = taught.gather(INDEX)
    assert len(taught) == len(windows)
    assert torch.equal(lesson.history, came.history)
    torch.testing.assert_close(lesson.target, (1 - share) * came.target + share * said)


def test_what_is_unknown_is_not_made_up_by_teachers() -> None:
    lesson = DistillationWindows(_Unfinished(), [_model(1)], share=0.5).gather(INDEX)
    assert lesson.target[..., -1].isnan().all()
    assert lesson.target[..., :-1].isfinite().all()


@pytest.mark.slow
def test_lessons_of_who_knows_better_than_noise_are_worth_more_than_the_noise() -> None:
    """A teacher that has seen the waves themselves, and two models that see noise all over them."""
    config = TrainingConfig(max_steps=150, batch_size=32, val_check_steps=50, learning_rate=5e-3)
    teacher, taught, alone = _model(1), _model(2), _model(2)
    train(teacher, _waves(), None, config)
    train(alone, _waves(noise=1.0), None, config)
    train(taught, DistillationWindows(_waves(noise=1.0), [teacher], share=0.8), None, config)
    assert mean_absolute_error(taught, _waves()) < 0.8 * mean_absolute_error(alone, _waves())


def test_without_teachers_it_is_plain_training() -> None:
    taught, plain = _model(1), _model(1)
    report = train_with_distillation(taught, _model, _waves(), _waves(), _config(distill_from=0))
    assert report == train(plain, _waves(), _waves(), _config(distill_from=0))
    _assert_same_weights(taught, plain)


def test_the_taught_learns_longer_from_teachers_that_learned_alone() -> None:
    config, taught, by_hand = _config(), _model(1), _model(1)
    report = train_with_distillation(taught, _model, _waves(), None, config)
    teachers = []
    for own in teacher_configs(config):
        teachers.append(_model(own.random_seed))
        train(teachers[-1], _waves(), None, own)
    lessons = DistillationWindows(_waves(), teachers, share=SHARE)
    train(by_hand, lessons, None, config.model_copy(update={"max_steps": LONGER * config.max_steps}))
    _assert_same_weights(taught, by_hand)
    assert report.steps == LONGER * config.max_steps


def test_no_two_teachers_share_a_seed_nor_have_that_of_the_taught() -> None:
    configs = [own for seed in (0, 1, 2) for own in teacher_configs(_config(distill_from=4, random_seed=seed))]
    assert len({own.random_seed for own in configs} - {0, 1, 2}) == len(configs) == 12
    assert all(own.distill_from == 0 for own in configs)


def test_steps_are_counted_on_from_teacher_to_taught() -> None:
    heard: list[TrainingStep] = []
    train_with_distillation(_model(1), _model, _waves(), None, _config(), progress=heard.append)
    assert [step.step for step in heard] == list(range(1, 41))
    assert {step.max_steps for step in heard} == {40}


@pytest.mark.parametrize("killed_at", [7, 18, 33])
def test_teaching_that_was_stopped_goes_on_to_the_same_weights(tmp_path: Path, killed_at: int) -> None:
    """Amid the first teacher, the second, and the taught."""
    whole, resumed = _model(1), _model(1)
    train_with_distillation(whole, _model, _waves(), _waves(), _config())

    class Killed(BaseException): ...

    def kill(step: TrainingStep) -> None:
        if step.step == killed_at:
            raise Killed

    checkpoint = Checkpoint(tmp_path, fingerprint="run")
    with pytest.raises(Killed):
        train_with_distillation(_model(1), _model, _waves(), _waves(), _config(), checkpoint=checkpoint, progress=kill)
    seen: list[int] = []
    train_with_distillation(
        resumed,
        _model,
        _waves(),
        _waves(),
        _config(),
        checkpoint=checkpoint,
        progress=lambda step: seen.append(step.step),
    )
    assert seen == list(range(killed_at // 5 * 5 + 1, 41))
    _assert_same_weights(resumed, whole)
    checkpoint.discard()
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_a_teacher_that_diverges_leaves_its_last_good_weights_to_the_model() -> None:
    model, config = _model(1), _config(learning_rate=1e30, gradient_clip=1e30)
    with pytest.raises(TrainingError):
        train_with_distillation(model, _model, _waves(), None, config)
    _assert_same_weights(model, _model(teacher_configs(config)[0].random_seed))
