"""The training loop: Adam, cosine learning rate, early stopping, best weights restored at the end.

No random state is carried from step to step: the order of windows depends on the seed and the epoch, exploration noise
on the seed and the step. A resumed run therefore equals an uninterrupted one bit for bit.
"""

import hashlib
import math
from collections.abc import Callable
from typing import NamedTuple, Protocol

import torch
from jaxtyping import Int64
from torch import Generator, Tensor, nn

from leapts.config import TrainingConfig
from leapts.data.windows import WindowBatch
from leapts.errors import TrainingError
from leapts.model import LeapTSModel
from leapts.model.schedulers import NoiseSource, SharedNoise
from leapts.training.checkpoint import Checkpoint
from leapts.training.distributed import SingleProcess, Workers
from leapts.training.early_stopping import Rounds, TrainingReport, TrainingState
from leapts.training.losses import huber_loss, pinball_errors, pinball_loss

# Rows per validation batch: enough to use the processor fully, few enough to save memory.
_VALIDATION_ROWS = 8192

# More windows than this are sampled with replacement, because a permutation would take too much memory.
_MAX_SHUFFLED = 2**22


class WindowSource(Protocol):
    """Windows by index, cut out on demand."""

    def __len__(self) -> int: ...

    def gather(self, index: Int64[Tensor, " batch"]) -> WindowBatch:
        """Return the windows with these indices; a target of NaN is unknown."""


class TrainingStep(NamedTuple):
    """The argument of a progress callback, which is called after every step."""

    step: int
    max_steps: int
    loss: float
    validation: float | None  # mean absolute error, at validation checks
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
    workers: Workers | None = None,
) -> TrainingReport:
    """Train a model in place; it ends with the weights of the lowest validation error.

    Without validation windows the last weights are kept; with `beat_start`, the initial weights are kept unless others
    have a lower validation error. The checkpoint is saved at every validation check; if it exists, training resumes
    from it. The workers share every batch.

    Raises:
        TrainingError: When the loss is no longer finite; the model then has the last kept weights.
        WorkerLostError: When another process ended.
    """
    workers = workers or SingleProcess()
    _broadcast_weights(model, workers)
    optimizer = torch.optim.Adam(model.parameters(), lr=config.learning_rate, fused=True)
    state = TrainingState.fresh(model)
    if checkpoint is not None and (content := workers.broadcast(checkpoint.read() if workers.rank == 0 else b"")):
        state = checkpoint.restore(content, model, optimizer)
    report = state.report
    if beat_start and validation is not None and report.steps == 0:
        report.best_validation, report.best_loss = validation_errors(model, validation, workers)
    order = _WindowOrder(len(training), config)
    rounds = Rounds(config.max_steps, 1 if validation is None else config.max_rounds)
    while not rounds.are_done(report):
        share = _BatchShare(order.batch(report.steps), workers)
        batch = training.gather(share.index)
        loss = _take_step(model, optimizer, batch, config, report.steps, share)
        if not math.isfinite(loss):
            raise _diverged(model, state, config, f"the loss became {loss} at step {report.steps + 1}")
        report.steps += 1
        state.losses_since_check.append(loss)
        score = loss_of_check = None
        if report.steps % config.val_check_steps == 0 or report.steps % config.max_steps == 0:
            if not _forecast_is_finite(model, batch, workers):
                raise _diverged(model, state, config, f"the forecasts became NaN or infinite by step {report.steps}")
            if validation is not None:
                score, loss_of_check = validation_errors(model, validation, workers)
                if not math.isfinite(loss_of_check):
                    raise _diverged(model, state, config, f"the validation error became {score} at step {report.steps}")
            state.record_check(model, score, loss_of_check, config.patience if report.steps <= config.max_steps else 0)
            if checkpoint is not None and workers.rank == 0:
                checkpoint.save(model, optimizer, state)
        if progress is not None:
            progress(TrainingStep(report.steps, rounds.end(report.steps), loss, score, report.best_validation))
    report.still_improving = rounds.has_improved(report) and not report.stopped_early
    model.load_state_dict(state.kept)
    return report


def _broadcast_weights(model: LeapTSModel, workers: Workers) -> None:
    """Give every process the weights of rank 0, since libraries may differ in the draws of a seed."""
    for value in model.state_dict().values():
        workers.all_reduce_sum(value if workers.rank == 0 else value.zero_())


def _diverged(model: LeapTSModel, state: TrainingState, config: TrainingConfig, problem: str) -> TrainingError:
    """Restore the kept weights, and return the error to raise."""
    model.load_state_dict(state.kept)
    return TrainingError(
        f"{problem} of {config.max_steps}; the weights of step {state.report.best_step} are kept; "
        f"try a learning_rate below {config.learning_rate:g}",
        state.report,
    )


class ValidationErrors(NamedTuple):
    """Errors on the validation windows."""

    mae: float  # mean absolute error of the point forecast
    loss: float  # the error that chooses weights: the pinball loss of quantiles; otherwise the same


def validation_errors(model: LeapTSModel, windows: WindowSource, workers: Workers | None = None) -> ValidationErrors:
    """Compute the mean errors over all windows, shared between workers; unknown targets (NaN) are skipped."""
    workers = workers or SingleProcess()
    sums = torch.zeros(3, dtype=torch.float64)  # of absolute errors, of losses, of known targets
    series = windows.gather(torch.zeros(1, dtype=torch.int64)).history.shape[1]
    batches = torch.arange(len(windows)).split(max(1, _VALIDATION_ROWS // series))
    levels = model.levels
    for index in batches[workers.rank :: workers.size]:
        batch = windows.gather(index)
        forecast = model.forecast(batch.history, quantiles=True, covariates=batch.covariates).values
        errors = pinball_errors(forecast, batch.target, levels)
        absolute = errors[..., model.median].sum(dtype=torch.float64)
        loss = absolute if len(levels) == 1 else errors.sum(dtype=torch.float64) / len(levels)
        sums += torch.stack([absolute, loss, (~batch.target.isnan()).sum()])
    absolute, loss, known = workers.all_reduce_sum(sums).tolist()
    return ValidationErrors(absolute / known, loss / known)


def mean_absolute_error(model: LeapTSModel, windows: WindowSource, workers: Workers | None = None) -> float:
    """Compute the mean absolute error of the point forecast over all windows."""
    return validation_errors(model, windows, workers).mae


class _BatchShare:
    """The windows of a batch that this process computes."""

    def __init__(self, batch: Int64[Tensor, " batch"], workers: Workers) -> None:
        self.workers = workers
        self.batch = len(batch)
        share = workers.share(self.batch)
        self.weight = (share.stop - share.start) / self.batch
        # A process without a window computes the first one with weight 0, so that all take part in every operation.
        self.share = share if self.weight else slice(0, 1)
        self.index = batch[self.share]

    def noise(self, generator: Generator) -> NoiseSource:
        """Return the noise that a single process would draw for these windows of the batch."""
        return generator if self.workers.size == 1 else SharedNoise(generator, self.batch, self.share)


@torch.no_grad()
def _forecast_is_finite(model: LeapTSModel, batch: WindowBatch, workers: Workers) -> bool:
    """Check the weights after a step, whose loss was computed before it."""
    return not workers.all_reduce_sum((~model(batch.history, None, batch.covariates).isfinite()).sum())


def _take_step(
    model: LeapTSModel,
    optimizer: torch.optim.Optimizer,
    batch: WindowBatch,
    config: TrainingConfig,
    step: int,
    share: _BatchShare,
) -> float:
    """Take one training step and return its loss; if that is not finite, the weights stay unchanged."""
    for group in optimizer.param_groups:
        number, place = divmod(step, config.max_steps)
        group["lr"] = config.learning_rate * 0.5**number * _cosine_decay(place / config.max_steps)
    noise = share.noise(Generator().manual_seed(seed_for(config.random_seed, "exploration", step)))
    optimizer.zero_grad()
    forecast = model(batch.history, noise, batch.covariates)
    if len(model.levels) > 1:
        loss = pinball_loss(forecast, batch.target, model.levels)
    else:
        loss = huber_loss(forecast, batch.target, delta=config.huber_delta)
    loss.backward()
    value = share.workers.all_reduce_mean(loss, model.parameters(), share.weight)
    if math.isfinite(value):
        clip_gradients(model, config.gradient_clip)
        optimizer.step()
    return value


def clip_gradients(model: nn.Module, max_norm: float) -> None:
    """Clip the norm of the gradient, without a multiplication if it is small enough."""
    norm = nn.utils.get_total_norm([each.grad for each in model.parameters() if each.grad is not None])
    if norm > max_norm:
        nn.utils.clip_grads_with_norm_(model.parameters(), max_norm, norm)


def _cosine_decay(progress: float) -> float:
    """Compute the factor of the learning rate: half a cosine from 1 to 0.01."""
    return 0.01 + 0.99 * (1 + math.cos(math.pi * progress)) / 2


class _WindowOrder:
    """The windows of each step: every window once per epoch, in a new random order.

    Batches of an epoch differ in size by one window at most. A small last batch would weigh as much as the others.
    """

    def __init__(self, windows: int, config: TrainingConfig) -> None:
        self.windows = windows
        self.seed = config.random_seed
        self.size = min(config.batch_size, windows)
        self.steps_per_epoch = math.ceil(windows / self.size)
        self.epoch = -1
        self.order = torch.empty(0, dtype=torch.int64)

    def batch(self, step: int) -> Int64[Tensor, " batch"]:
        """Return the indices of the windows of a step."""
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
    """Derive a seed from the seed of a run, a purpose and a number, by hashing."""
    return int.from_bytes(hashlib.blake2b(repr(parts).encode(), digest_size=8).digest(), "big") >> 1
