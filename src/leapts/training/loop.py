"""The training loop: Adam, a Huber loss, a falling learning rate, early stopping, the best weights at the end.

Nothing random is carried from step to step: the order of the windows follows from the seed and the epoch, exploration
from the seed and the step. A run that was stopped and resumed is therefore the run that was not, bit for bit.
"""

import hashlib
import math
from collections.abc import Callable
from typing import NamedTuple, Protocol

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int64
from torch import Generator, Tensor, nn

from leapts.config import TrainingConfig
from leapts.errors import TrainingError
from leapts.model import LeapTSModel
from leapts.model.schedulers import NoiseSource, SharedNoise
from leapts.training.checkpoint import Checkpoint
from leapts.training.distributed import SingleProcess, Workers
from leapts.training.early_stopping import TrainingReport, TrainingState

# Validation runs on so many rows at a time: enough to keep the processor busy, little enough to spare the memory.
_ROWS_AT_A_TIME = 8192

# More windows than this are drawn at random instead of being put in an order, which would take too much memory.
_MAX_SHUFFLED = 2**22


class Batch(Protocol):
    """Histories and what followed them."""

    @property
    def history(self) -> Float[Tensor, "batch variates lookback"]: ...  # noqa: D102

    @property
    def target(self) -> Float[Tensor, "batch variates horizon"]: ...  # noqa: D102


class WindowSource(Protocol):
    """Numbered windows, cut out when asked for."""

    def __len__(self) -> int: ...

    def gather(self, index: Int64[Tensor, " batch"]) -> Batch:
        """The windows of these numbers."""


class TrainingStep(NamedTuple):
    """What a progress callback hears after every step."""

    step: int
    max_steps: int
    loss: float
    validation: float | None  # mean absolute error, at the steps where it was looked at
    best: float | None


Progress = Callable[[TrainingStep], None]


def train(
    model: LeapTSModel,
    training: WindowSource,
    validation: WindowSource | None,
    config: TrainingConfig,
    *,
    progress: Progress | None = None,
    checkpoint: Checkpoint | None = None,
    beat_start: bool = False,
    has_gaps: bool = False,
    workers: Workers | None = None,
) -> TrainingReport:
    """Fit the model in place, and leave it with the weights that did best on the validation windows.

    Args:
        model: What to fit.
        training: Windows to learn from.
        validation: Windows to choose the weights by; without them, the last weights stay.
        config: How.
        progress: Called after every step.
        checkpoint: Where to keep the state, and to go on from if it holds one.
        beat_start: Whether the weights at the start are worth keeping, so that others must do better to replace them.
        has_gaps: Whether steps of the training windows' horizons may be unknown, NaN; they then count for nothing.
        workers: The processes to share every batch with; they all end with the same weights, and the first keeps the
            checkpoint. None: this one alone.

    Raises:
        TrainingError: When the loss stops being a number; the model then has its last good weights.
        WorkerLostError: When one of the other processes is gone.
    """
    workers = workers or SingleProcess()
    _start_alike(model, workers)
    optimizer = torch.optim.Adam(model.parameters(), lr=config.learning_rate, fused=True)
    state = TrainingState.fresh(model)
    if checkpoint is not None and (content := workers.broadcast(checkpoint.read() if workers.rank == 0 else b"")):
        state = checkpoint.restore(content, model, optimizer)
    report = state.report
    if beat_start and validation is not None and report.steps == 0:
        report.best_validation = mean_absolute_error(model, validation, workers)
    order = _WindowOrder(len(training), config)
    while report.steps < config.max_steps and not report.stopped_early:
        part = _Part(order.batch(report.steps), workers)
        batch = training.gather(part.index)
        loss = _learn(model, optimizer, batch, config, report.steps, part, has_gaps=has_gaps)
        if not math.isfinite(loss):
            raise _diverged(model, state, config, f"the loss became {loss} at step {report.steps + 1}")
        report.steps += 1
        state.losses_since_check.append(loss)
        score = None
        if report.steps % config.val_check_steps == 0 or report.steps == config.max_steps:
            if not _forecasts_numbers(model, batch, workers):
                raise _diverged(model, state, config, f"the forecasts stopped being numbers by step {report.steps}")
            score = None if validation is None else mean_absolute_error(model, validation, workers)
            if score is not None and not math.isfinite(score):
                raise _diverged(model, state, config, f"the validation error became {score} at step {report.steps}")
            state.look(model, score, config.patience)
            if checkpoint is not None and workers.rank == 0:
                checkpoint.save(model, optimizer, state)
        if progress is not None:
            progress(TrainingStep(report.steps, config.max_steps, loss, score, report.best_validation))
    model.load_state_dict(state.kept)
    return report


def _start_alike(model: LeapTSModel, workers: Workers) -> None:
    """Give every worker the first one's weights, whatever its own library makes of a seed."""
    for value in model.state_dict().values():
        workers.all_reduce_sum(value if workers.rank == 0 else value.zero_())


def _diverged(model: LeapTSModel, state: TrainingState, config: TrainingConfig, what: str) -> TrainingError:
    """Back to the last good weights, and what to say."""
    model.load_state_dict(state.kept)
    return TrainingError(
        f"{what} of {config.max_steps}; the weights of step {state.report.best_step} are kept; "
        f"try a learning_rate below {config.learning_rate:g}",
        state.report,
    )


def mean_absolute_error(model: LeapTSModel, windows: WindowSource, workers: Workers | None = None) -> float:
    """The model's mean absolute error over all windows; the workers take turns, with some thousand rows each.

    What is unknown of a future, NaN, counts for nothing.
    """
    workers = workers or SingleProcess()
    absolute, count = 0.0, 0
    variates = windows.gather(torch.zeros(1, dtype=torch.int64)).history.shape[1]
    turns = torch.arange(len(windows)).split(max(1, _ROWS_AT_A_TIME // variates))
    for index in turns[workers.rank :: workers.size]:
        batch = windows.gather(index)
        error = model.forecast(batch.history).values - batch.target
        unknown = batch.target.isnan()
        absolute += float(error.masked_fill(unknown, 0).abs().sum(dtype=torch.float64))
        count += error.numel() - int(unknown.sum())
    sums = workers.all_reduce_sum(torch.tensor([absolute, count], dtype=torch.float64))
    return float(sums[0] / sums[1])


class _Part:
    """This worker's share of a batch."""

    def __init__(self, batch: Int64[Tensor, " batch"], workers: Workers) -> None:
        self.workers = workers
        self.batch = len(batch)
        share = workers.share(self.batch)
        self.weight = (share.stop - share.start) / self.batch
        # A worker that there is no window for goes through the same motions with the first, which then counts nothing.
        self.share = share if self.weight else slice(0, 1)
        self.index = batch[self.share]

    def noise(self, generator: Generator) -> NoiseSource:
        """The share of what one worker with the whole batch would draw."""
        return generator if self.workers.size == 1 else SharedNoise(generator, self.batch, self.share)


@torch.no_grad()
def _forecasts_numbers(model: LeapTSModel, batch: Batch, workers: Workers) -> bool:
    """Whether the weights still forecast finite values; a step can ruin them after its loss was taken."""
    return not workers.all_reduce_sum((~model(batch.history).isfinite()).sum())


def _learn(
    model: LeapTSModel,
    optimizer: torch.optim.Optimizer,
    batch: Batch,
    config: TrainingConfig,
    step: int,
    part: _Part,
    *,
    has_gaps: bool,
) -> float:
    """One step of training; a loss that is not a number changes nothing."""
    for group in optimizer.param_groups:
        group["lr"] = config.learning_rate * _share_of_learning_rate(step / config.max_steps)
    noise = part.noise(Generator().manual_seed(seed_for(config.random_seed, "exploration", step)))
    optimizer.zero_grad()
    forecast, future = model(batch.history, noise), batch.target
    if has_gaps:  # what the forecast is right about by definition has neither loss nor gradient
        future = torch.where(future.isnan(), forecast.detach(), future)
    loss = F.huber_loss(forecast, future, delta=config.huber_delta)
    loss.backward()
    value = part.workers.all_reduce_mean(loss, model.parameters(), part.weight)
    if math.isfinite(value):
        clip_gradients(model, config.gradient_clip)
        optimizer.step()
    return value


def clip_gradients(model: nn.Module, most: float) -> None:
    """Shorten the gradient to this norm. Most of the time it is short enough, and to see that is all there is to do."""
    norm = nn.utils.get_total_norm([each.grad for each in model.parameters() if each.grad is not None])
    if norm > most:
        nn.utils.clip_grads_with_norm_(model.parameters(), most, norm)


def _share_of_learning_rate(progress: float) -> float:
    """Half a cosine, from all of the learning rate down to a hundredth."""
    return 0.01 + 0.99 * (1 + math.cos(math.pi * progress)) / 2


class _WindowOrder:
    """Which windows each step learns from: every one once an epoch, in an order of that epoch's own.

    Batches are as even as can be. A few windows left over for a last one would steer as much as any other batch.
    """

    def __init__(self, windows: int, config: TrainingConfig) -> None:
        self.windows = windows
        self.seed = config.random_seed
        self.size = min(config.batch_size, windows)
        self.steps_per_epoch = math.ceil(windows / self.size)
        self.epoch = -1
        self.order = torch.empty(0, dtype=torch.int64)

    def batch(self, step: int) -> Int64[Tensor, " batch"]:
        """The numbers of a step's windows."""
        if self.windows > _MAX_SHUFFLED:
            generator = Generator().manual_seed(seed_for(self.seed, "windows", step))
            return torch.randint(self.windows, (self.size,), generator=generator)
        epoch, position = divmod(step, self.steps_per_epoch)
        if epoch != self.epoch:
            generator = Generator().manual_seed(seed_for(self.seed, "order", epoch))
            self.epoch, self.order = epoch, torch.randperm(self.windows, generator=generator)
        start, stop = (place * self.windows // self.steps_per_epoch for place in (position, position + 1))
        return self.order[start:stop]


def seed_for(*parts: object) -> int:
    """A seed for each use and step, far from its neighbours'."""
    return int.from_bytes(hashlib.blake2b(repr(parts).encode(), digest_size=8).digest(), "big") >> 1
