"""Training reduces the error, is reproducible bit for bit, stops early, and keeps the best weights."""

import math
from itertools import pairwise
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from leapts.config import ModelConfig, TrainingConfig
from leapts.data.windows import AlignedWindows, WindowBatch
from leapts.errors import TrainingError
from leapts.model import LeapTSModel
from leapts.model.build import build_model
from leapts.training.loop import TrainingStep, _WindowOrder, clip_gradients, mean_absolute_error, seed_for, train

LOOKBACK, HORIZON = 16, 8


class _Noise:
    """Windows whose target is independent of their history: there is nothing to learn."""

    def __init__(self, seed: int) -> None:
        self.windows = torch.randn(64, 1, LOOKBACK + HORIZON, generator=torch.Generator().manual_seed(seed))

    def __len__(self) -> int:
        return len(self.windows)

    def gather(self, index: Tensor) -> WindowBatch:
        windows = self.windows[index]
        return WindowBatch(history=windows[..., :LOOKBACK], target=windows[..., LOOKBACK:])


class _PartlyKnown:
    """Waves with targets that are known for the first steps only."""

    def __init__(self, known: int) -> None:
        self.windows, self.known = _waves(), known

    def __len__(self) -> int:
        return len(self.windows)

    def gather(self, index: Tensor) -> WindowBatch:
        batch = self.windows.gather(index)
        target = torch.where(torch.arange(HORIZON) < self.known, batch.target, math.nan)
        return WindowBatch(history=batch.history, target=target)


class _Poisoned:
    """Valid windows for some steps, then histories of NaN."""

    def __init__(self, good_steps: int) -> None:
        self.windows, self.left = _waves(), good_steps

    def __len__(self) -> int:
        return len(self.windows)

    def gather(self, index: Tensor) -> WindowBatch:
        batch = self.windows.gather(index)
        self.left -= 1
        return batch if self.left >= 0 else WindowBatch(history=batch.history * math.nan, target=batch.target)


def _model() -> LeapTSModel:
    return build_model(ModelConfig(h=HORIZON, input_size=LOOKBACK, hidden_size=16), seed=0)


def _config(**options: Any) -> TrainingConfig:
    return TrainingConfig(**{"max_steps": 30, "batch_size": 32, "val_check_steps": 5, **options})


def _waves(length: int = 400) -> AlignedWindows:
    time = torch.arange(float(length))
    return AlignedWindows(torch.stack([torch.sin(time / 2), torch.cos(time / 3)]), LOOKBACK, HORIZON)


def _assert_same_weights(one: LeapTSModel, other: LeapTSModel) -> None:
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))


@pytest.mark.slow
def test_the_error_on_sine_waves_falls_to_nearly_zero() -> None:
    model, windows = _model(), _waves()
    before = mean_absolute_error(model, windows)
    train(model, windows, windows, _config(max_steps=300, val_check_steps=50, learning_rate=1e-2))
    assert mean_absolute_error(model, windows) < 0.05 < 0.5 * before


def test_known_steps_are_learned_and_unknown_ones_are_not() -> None:
    model, windows = _model(), _waves()
    train(model, _PartlyKnown(known=3), None, _config(max_steps=300, learning_rate=1e-2))
    batch = windows.gather(torch.arange(len(windows)))
    error = (model.forecast(batch.history).values - batch.target).abs().mean((0, 1))
    assert error[:3].max() < 0.1 < error[3:].mean()


def test_unknown_targets_leave_the_weights_unchanged() -> None:
    model = _model()
    report = train(model, _PartlyKnown(known=0), None, _config())
    assert report.steps == 30
    _assert_same_weights(model, _model())


def test_the_same_seed_gives_the_same_weights_bit_for_bit() -> None:
    one, other = _model(), _model()
    assert train(one, _waves(), _waves(200), _config()) == train(other, _waves(), _waves(200), _config())
    _assert_same_weights(one, other)


@pytest.mark.parametrize(("max_norm", "norm"), [(1.0, 1.0), (13.0, 13.0), (14.0, 13.0)])
def test_gradients_are_clipped_to_the_maximum_norm(max_norm: float, norm: float) -> None:
    layer = nn.Linear(1, 1)
    layer.weight.grad, layer.bias.grad = torch.tensor([[12.0]]), torch.tensor([-5.0])
    clip_gradients(layer, max_norm)
    expected = torch.tensor([12.0, -5.0]) * (norm / 13)
    torch.testing.assert_close(torch.cat([layer.weight.grad.flatten(), layer.bias.grad]), expected)


def test_a_step_is_adam_on_the_clipped_huber_gradient_with_cosine_decay() -> None:
    model, by_hand = _model(), _model()
    config = _config(max_steps=4, huber_delta=0.05, gradient_clip=0.001, learning_rate=3e-3)
    train(model, _waves(), None, config)
    optimizer = torch.optim.Adam(by_hand.parameters())
    order = _WindowOrder(len(_waves()), config)
    for step in range(4):
        batch = _waves().gather(order.batch(step))
        generator = torch.Generator().manual_seed(seed_for(config.random_seed, "exploration", step))
        error = by_hand(batch.history, generator) - batch.target
        small = error.abs() <= 0.05
        loss = torch.where(small, error.square() / 2, 0.05 * (error.abs() - 0.025)).mean()
        optimizer.zero_grad()
        loss.backward()
        norm = torch.stack([p.grad.norm() for p in by_hand.parameters() if p.grad is not None]).norm()
        assert norm > 0.001, "nothing would be clipped"
        for parameter in by_hand.parameters():
            assert parameter.grad is not None
            parameter.grad.mul_(0.001 / (norm + 1e-6))
        optimizer.param_groups[0]["lr"] = 3e-3 * (0.01 + 0.99 * (1 + math.cos(math.pi * step / 4)) / 2)
        optimizer.step()
    for one, other in zip(model.parameters(), by_hand.parameters(), strict=True):
        torch.testing.assert_close(one, other, atol=1e-6, rtol=1e-4)


def test_another_seed_gives_other_weights() -> None:
    one, other = _model(), _model()
    train(one, _waves(), None, _config())
    train(other, _waves(), None, _config(random_seed=2))
    assert not torch.equal(one.head.weight, other.head.weight)


def test_the_weights_of_the_lowest_validation_error_are_kept() -> None:
    model = _model()
    report = train(model, _Noise(0), _Noise(1), _config(max_steps=100, patience=0, learning_rate=1e-2))
    scores = dict(report.validations)
    assert report.best_validation == min(scores.values()) == scores[report.best_step]
    assert mean_absolute_error(model, _Noise(1)) == report.best_validation
    assert report.best_step < 100


def test_training_stops_early_without_improvement() -> None:
    report = train(_model(), _Noise(0), _Noise(1), _config(max_steps=2000, patience=3, learning_rate=1e-2))
    assert report.stopped_early
    assert report.steps == report.best_step + 3 * 5 < 2000


def test_without_validation_the_last_weights_are_kept() -> None:
    report = train(_model(), _waves(), None, _config())
    assert (report.steps, report.best_step, report.validations) == (30, 30, [])
    assert [step for step, _ in report.losses] == [5, 10, 15, 20, 25, 30]


@pytest.mark.parametrize("good_steps", [0, 13])
def test_a_loss_of_nan_stops_training_and_restores_the_kept_weights(good_steps: int) -> None:
    poisoned, expected = _model(), _model()
    with pytest.raises(TrainingError, match=rf"became nan at step {good_steps + 1} of 30.*learning_rate below 0\.002"):
        train(poisoned, _Poisoned(good_steps), None, _config())
    if good_steps:
        _train_until(expected, 10)  # the last validation check
    _assert_same_weights(poisoned, expected)


class _StopHereError(Exception):
    pass


def _train_until(model: LeapTSModel, steps: int) -> None:
    """Train for the first steps of a run."""

    def stop(event: TrainingStep) -> None:
        if event.step == steps:
            raise _StopHereError

    with pytest.raises(_StopHereError):
        train(model, _waves(), None, _config(), progress=stop)


def test_progress_is_called_after_every_step() -> None:
    events: list[TrainingStep] = []
    train(_model(), _waves(), _waves(200), _config(), progress=events.append)
    assert [event.step for event in events] == list(range(1, 31))
    assert [event.step for event in events if event.validation is not None] == [5, 10, 15, 20, 25, 30]
    bests = [event.best for event in events if event.best is not None]
    assert all(after <= before for before, after in pairwise(bests))


def test_an_epoch_has_every_window_once_in_a_new_order() -> None:
    order = _WindowOrder(50, _config(batch_size=16))
    epochs = [torch.cat([order.batch(4 * epoch + step) for step in range(4)]) for epoch in range(2)]
    for epoch in epochs:
        assert sorted(epoch.tolist()) == list(range(50))
    assert epochs[0].tolist() != epochs[1].tolist()
    assert torch.equal(_WindowOrder(50, _config(batch_size=16)).batch(6), order.batch(6))


@given(st.integers(1, 500), st.integers(1, 100))
def test_batches_of_an_epoch_differ_by_one_window_at_most(windows: int, size: int) -> None:
    order = _WindowOrder(windows, _config(batch_size=size))
    sizes = [len(order.batch(step)) for step in range(order.steps_per_epoch)]
    assert len(sizes) == math.ceil(windows / size)
    assert max(sizes) <= size
    assert max(sizes) - min(sizes) <= 1


def test_unknown_targets_do_not_count_in_the_error() -> None:
    model, windows = _model(), _waves()
    batch = windows.gather(torch.arange(len(windows)))
    expected = (model.forecast(batch.history).values - batch.target)[..., :3].abs().mean()
    assert mean_absolute_error(model, _PartlyKnown(known=3)) == pytest.approx(float(expected), rel=1e-6)


def test_too_many_windows_to_shuffle_are_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("leapts.training.loop._MAX_SHUFFLED", 10)
    order = _WindowOrder(1000, _config(batch_size=16))
    batch = order.batch(3)
    assert len(batch.unique()) > 8
    assert 0 <= batch.min() <= batch.max() < 1000
    assert torch.equal(order.batch(3), batch)
    assert not torch.equal(order.batch(4), batch)
