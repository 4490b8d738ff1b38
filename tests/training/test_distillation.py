"""A student is trained on the targets and on the mean forecast of its teachers."""

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
from leapts.training.distillation import (
    STUDENT_LENGTH,
    TEACHER_WEIGHT,
    DistillationWindows,
    teacher_configs,
    train_with_distillation,
)
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


class _PartlyKnown:
    """Waves with targets whose last step is unknown."""

    def __init__(self) -> None:
        self.windows = _waves()

    def __len__(self) -> int:
        return len(self.windows)

    def gather(self, index: torch.Tensor) -> WindowBatch:
        batch = self.windows.gather(index)
        target = torch.where(torch.arange(HORIZON) < HORIZON - 1, batch.target, math.nan)
        return WindowBatch(history=batch.history, target=target)


@pytest.mark.parametrize("weight", [0.0, 0.25, 1.0])
def test_a_target_is_mixed_with_the_mean_forecast_of_the_teachers(weight: float) -> None:
    windows, teachers = _waves(), [_model(1), _model(2), _model(3)]
    mixed = DistillationWindows(windows, teachers, weight=weight)
    actual = windows.gather(INDEX)
    forecast = sum(teacher.forecast(actual.history).values for teacher in teachers) / 3
    batch = mixed.gather(INDEX)
    assert len(mixed) == len(windows)
    assert torch.equal(batch.history, actual.history)
    torch.testing.assert_close(batch.target, (1 - weight) * actual.target + weight * forecast)


def test_unknown_targets_stay_unknown() -> None:
    batch = DistillationWindows(_PartlyKnown(), [_model(1)], weight=0.5).gather(INDEX)
    assert batch.target[..., -1].isnan().all()
    assert batch.target[..., :-1].isfinite().all()


@pytest.mark.slow
def test_a_student_of_a_good_teacher_beats_a_model_trained_on_noisy_targets() -> None:
    """The teacher is trained on clean waves; student and plain model on waves with noise."""
    config = TrainingConfig(max_steps=150, batch_size=32, val_check_steps=50, learning_rate=5e-3)
    teacher, student, plain = _model(1), _model(2), _model(2)
    train(teacher, _waves(), None, config)
    train(plain, _waves(noise=1.0), None, config)
    train(student, DistillationWindows(_waves(noise=1.0), [teacher], weight=0.8), None, config)
    assert mean_absolute_error(student, _waves()) < 0.8 * mean_absolute_error(plain, _waves())


def test_without_teachers_it_is_plain_training() -> None:
    student, plain = _model(1), _model(1)
    report = train_with_distillation(student, _model, _waves(), _waves(), _config(distill_from=0))
    assert report == train(plain, _waves(), _waves(), _config(distill_from=0))
    _assert_same_weights(student, plain)


def test_the_student_trains_longer_than_its_teachers() -> None:
    config, student, by_hand = _config(), _model(1), _model(1)
    report = train_with_distillation(student, _model, _waves(), None, config)
    teachers = []
    for own in teacher_configs(config):
        teachers.append(_model(own.random_seed))
        train(teachers[-1], _waves(), None, own)
    mixed = DistillationWindows(_waves(), teachers, weight=TEACHER_WEIGHT)
    train(by_hand, mixed, None, config.model_copy(update={"max_steps": STUDENT_LENGTH * config.max_steps}))
    _assert_same_weights(student, by_hand)
    assert report.steps == STUDENT_LENGTH * config.max_steps


def test_teachers_and_student_have_different_seeds() -> None:
    configs = [own for seed in (0, 1, 2) for own in teacher_configs(_config(distill_from=4, random_seed=seed))]
    assert len({own.random_seed for own in configs} - {0, 1, 2}) == len(configs) == 12
    assert all(own.distill_from == 0 for own in configs)


def test_progress_counts_the_steps_of_teachers_and_student() -> None:
    heard: list[TrainingStep] = []
    train_with_distillation(_model(1), _model, _waves(), None, _config(), progress=heard.append)
    assert [step.step for step in heard] == list(range(1, 41))
    assert {step.max_steps for step in heard} == {40}


@pytest.mark.parametrize("killed_at", [7, 18, 33])
def test_resumed_distillation_equals_uninterrupted(tmp_path: Path, killed_at: int) -> None:
    """The interruption is during the first teacher, the second, or the student."""
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


def test_when_a_teacher_diverges_the_model_gets_its_kept_weights() -> None:
    model, config = _model(1), _config(learning_rate=1e30, gradient_clip=1e30)
    with pytest.raises(TrainingError):
        train_with_distillation(model, _model, _waves(), None, config)
    _assert_same_weights(model, _model(teacher_configs(config)[0].random_seed))
