"""Training with any number of workers gives the weights of a single process."""

import copy
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest
import torch
from torch import Tensor

from leapts.config import ModelConfig, TrainingConfig
from leapts.data.windows import AlignedWindows, WindowBatch
from leapts.errors import ConfigError, TrainingError, WorkerLostError
from leapts.model import LeapTSModel
from leapts.model.build import build_model
from leapts.model.schedulers import SharedNoise
from leapts.training.checkpoint import Checkpoint
from leapts.training.distributed import ProcessGroup, SingleProcess, current_workers, joined_workers, require_same
from leapts.training.early_stopping import TrainingReport
from leapts.training.loop import TrainingStep, mean_absolute_error, train

LOOKBACK, HORIZON = 16, 30

T = TypeVar("T")


class _Meeting:
    """Sums the values of threads that act as workers."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.barrier = threading.Barrier(size)
        self.brought: list[Tensor] = [torch.empty(0)] * size
        self.messages = 0

    def all_reduce_sum(self, rank: int, values: Tensor) -> Tensor:
        self.brought[rank] = values
        self.messages += rank == 0
        self.barrier.wait(60)
        whole = torch.stack(self.brought).sum(0).to(values.dtype)
        self.barrier.wait(60)
        return values.copy_(whole)


class _Threads(ProcessGroup):
    """A process group of threads: real arithmetic, but no communication between processes."""

    def __init__(self, rank: int, meeting: _Meeting) -> None:
        self.rank, self.size, self.meeting = rank, meeting.size, meeting

    def all_reduce_sum(self, values: Tensor) -> Tensor:
        try:
            return self.meeting.all_reduce_sum(self.rank, values)
        except threading.BrokenBarrierError as error:
            raise WorkerLostError("another thread ended") from error


def _together(size: int, work: Callable[[_Threads], T]) -> list[T]:
    """Run the same function in several workers and return their results."""
    meeting = _Meeting(size)
    torch.set_num_threads(1)

    def one(rank: int) -> T:
        try:
            return work(_Threads(rank, meeting))
        except BaseException:
            meeting.barrier.abort()
            raise

    with ThreadPoolExecutor(size) as pool:
        futures = [pool.submit(one, rank) for rank in range(size)]
        return [future.result() for future in futures]


def _model(**options: Any) -> LeapTSModel:
    config = ModelConfig(**{"h": HORIZON, "input_size": LOOKBACK, "hidden_size": 8, **options})
    clusters = (0, 1, 0) if config.clusters > 1 else None
    return build_model(config, seed=0, clusters=clusters).double()


def _windows(length: int = 120) -> AlignedWindows:
    time = torch.arange(length, dtype=torch.float64)
    rows = [torch.sin(time / 2), torch.cos(time / 3), torch.sin(time / 5) + time / 100]
    return AlignedWindows(torch.stack(rows), LOOKBACK, HORIZON)


def _config(**options: Any) -> TrainingConfig:
    return TrainingConfig(**{"max_steps": 12, "batch_size": 16, "val_check_steps": 5, **options})


def _assert_close(one: LeapTSModel, other: LeapTSModel) -> None:
    for a, b in zip(one.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize(
    ("size", "batch", "options"),
    [
        (2, 16, {}),
        (2, 7, {}),  # 75 windows: shares of 3 and 4, and a last batch of 5
        (3, 2, {}),  # one worker has no window
        (2, 16, {"n_series": 3, "state": {"clusters": 2, "kind": "cde"}, "mixing": {"kind": "mlp"}}),
        (2, 16, {"scheduling": {"kind": "monte_carlo"}}),
    ],
)
def test_shared_batches_give_the_weights_of_whole_batches(size: int, batch: int, options: dict[str, Any]) -> None:
    config, alone = _config(batch_size=batch), _model(**options)
    models = [_model(**options) for _ in range(size)]  # not in the threads, which share torch's global seed
    expected = train(alone, _windows(), _windows(90), config)

    def work(workers: _Threads) -> tuple[LeapTSModel, TrainingReport]:
        model = models[workers.rank]
        return model, train(model, _windows(), _windows(90), config, workers=workers)

    for model, report in _together(size, work):
        _assert_close(model, alone)
        assert report.best_step == expected.best_step
        for ours, theirs in ((report.validations, expected.validations), (report.losses, expected.losses)):
            assert [step for step, _ in ours] == [step for step, _ in theirs]
            assert [value for _, value in ours] == pytest.approx([value for _, value in theirs], rel=1e-9)


def test_workers_draw_the_noise_of_a_single_process() -> None:
    history = _windows().gather(torch.arange(6)).history
    whole = _model()(history, torch.Generator().manual_seed(5))
    shared = _model()(history[4:], SharedNoise(torch.Generator().manual_seed(5), 6, slice(4, 6)))
    own = _model()(history[4:], torch.Generator().manual_seed(5))
    torch.testing.assert_close(shared, whole[4:], rtol=1e-12, atol=1e-12)
    assert not torch.allclose(own, whole[4:], rtol=1e-3)


def test_all_workers_start_from_the_weights_of_rank_0() -> None:
    config = ModelConfig(h=HORIZON, input_size=LOOKBACK, hidden_size=8)
    one, other = (build_model(config, seed=seed).double() for seed in (0, 1))
    assert not torch.equal(one.head.weight, other.head.weight)
    _together(2, lambda workers: train([one, other][workers.rank], _windows(), None, _config(), workers=workers))
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))


def test_validation_is_shared_without_changing_its_result() -> None:
    model = _model()
    expected = mean_absolute_error(model, _windows())
    assert (
        _together(2, lambda workers: mean_absolute_error(model, _windows(), workers))
        == [pytest.approx(expected, rel=1e-12)] * 2
    )


@pytest.mark.parametrize("stop_at", [3, 7])
def test_workers_resume_to_the_weights_of_an_uninterrupted_run(stop_at: int, tmp_path: Path) -> None:
    """Only rank 0 has the folder, as on machines without a shared disk."""

    def work(workers: _Threads, stop: int | None = None) -> LeapTSModel:
        def end(event: TrainingStep) -> None:
            if event.step == stop and workers.rank == 1:
                raise KeyboardInterrupt

        model, folder = models.pop(), tmp_path if workers.rank == 0 else tmp_path / "nothing here"
        checkpoint = Checkpoint(folder, fingerprint="same")
        train(model, _windows(), _windows(90), _config(), progress=end, checkpoint=checkpoint, workers=workers)
        return model

    models, uninterrupted = [_model() for _ in range(4)], _model()
    train(uninterrupted, _windows(), _windows(90), _config())
    with pytest.raises((KeyboardInterrupt, WorkerLostError)):
        _together(2, lambda workers: work(workers, stop_at))
    assert (tmp_path / "checkpoint.safetensors").exists() == (stop_at > 5)
    for model in _together(2, work):
        _assert_close(model, uninterrupted)
    assert not (tmp_path / "nothing here").exists()


def test_a_loss_of_nan_in_one_worker_stops_all() -> None:
    class Poisoned(AlignedWindows):
        def gather(self, index: Tensor) -> WindowBatch:
            batch = super().gather(index)
            return WindowBatch(history=batch.history * torch.nan, target=batch.target)

    model = _model()

    def work(workers: _Threads) -> str:
        source = _windows() if workers.rank == 0 else Poisoned(_windows().matrix, LOOKBACK, HORIZON)
        with pytest.raises(TrainingError) as caught:
            train(copy.deepcopy(model), source, None, _config(), workers=workers)
        return str(caught.value)

    one, other = _together(2, work)
    assert one == other
    assert "became nan at step 1" in one


def test_all_processes_refuse_different_data() -> None:
    def work(workers: _Threads) -> str:
        with pytest.raises(ConfigError) as caught:
            require_same(workers, b"abc" if workers.rank != 2 else b"abd")
        return str(caught.value)

    assert all("rank 2 from rank 0" in message for message in _together(4, work))
    _together(2, lambda workers: require_same(workers, b"abc"))


def test_a_step_takes_one_message() -> None:
    counts, model = [], _model()
    for steps in (2, 4):
        config = _config(max_steps=steps, val_check_steps=steps)

        def work(workers: _Threads, config: TrainingConfig = config) -> int:
            train(copy.deepcopy(model), _windows(), None, config, workers=workers)
            return workers.meeting.messages

        counts.append(_together(2, work)[0])
    assert counts[1] - counts[0] == 2


@pytest.mark.parametrize("count", [0, 1, 5, 6])
def test_shares_are_a_partition_into_parts_of_nearly_equal_size(count: int) -> None:
    meeting = _Meeting(4)
    shares = [range(count)[_Threads(rank, meeting).share(count)] for rank in range(4)]
    assert [number for share in shares for number in share] == list(range(count))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_without_a_process_group_there_is_one_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RANK", raising=False)
    assert isinstance(current_workers(), SingleProcess)
    with joined_workers() as workers:
        assert isinstance(workers, SingleProcess)
    # A torch built without distributed support has only this function of the package.
    monkeypatch.setattr("leapts.training.distributed.dist", SimpleNamespace(is_available=lambda: False))
    assert isinstance(current_workers(), SingleProcess)
    with joined_workers() as workers:
        assert isinstance(workers, SingleProcess)
