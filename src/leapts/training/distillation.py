"""Knowledge distillation: train a student on the targets and on the mean forecast of several teachers.

Models with different seeds make different errors, and their mean makes smaller ones. A student keeps most of that gain
in one model, with one schedule to trace and the cost of one forecast.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import torch
from jaxtyping import Int64
from torch import Tensor

from leapts.config import TrainingConfig
from leapts.data.windows import WindowBatch
from leapts.errors import TrainingError
from leapts.model import LeapTSModel
from leapts.training.checkpoint import Checkpoint
from leapts.training.distributed import Workers
from leapts.training.early_stopping import TrainingReport
from leapts.training.loop import Progress, WindowSource, seed_for, train

TEACHER_WEIGHT = 0.5  # of the teachers' forecast in the target of the student
# The teachers' forecast is smoother than the targets, so the student keeps improving for longer.
STUDENT_LENGTH = 2  # training steps of the student, as a multiple of those of a teacher


def train_with_distillation(
    model: LeapTSModel,
    make: Callable[[int], LeapTSModel],
    training: WindowSource,
    validation: WindowSource | None,
    config: TrainingConfig,
    *,
    progress: Progress | None = None,
    checkpoint: Checkpoint | None = None,
    workers: Workers | None = None,
    beat_start: bool = False,
) -> TrainingReport:
    """Train the teachers that the options ask for, then the model as their student; without teachers, like `train`.

    A teacher, which `make` builds from a seed, takes `max_steps` steps, the student `STUDENT_LENGTH` times as many. The
    steps of the progress are counted over all models; teachers have subfolders of the checkpoint.

    Returns the report of the model, without its teachers.

    Raises:
        TrainingError: When a loss is no longer finite; the model then has the last kept weights of the diverging one.
        WorkerLostError: When another process ended.
    """
    fit = partial(train, validation=validation, workers=workers, beat_start=beat_start)
    total = config.max_steps * (config.distill_from + STUDENT_LENGTH if config.distill_from else 1)
    teachers: list[LeapTSModel] = []
    for number, teacher_config in enumerate(teacher_configs(config), 1):
        teacher = make(teacher_config.random_seed)
        shifted = progress and _shift_progress(progress, len(teachers) * config.max_steps, total)
        part = checkpoint and checkpoint.part(f"teacher-{number}")
        try:
            fit(teacher, training, config=teacher_config, progress=shifted, checkpoint=part)
        except TrainingError:
            model.load_state_dict(teacher.state_dict())
            raise
        teachers.append(teacher)
    if teachers:
        training = DistillationWindows(training, teachers, weight=TEACHER_WEIGHT)
        config = config.model_copy(update={"max_steps": config.max_steps * STUDENT_LENGTH})
        progress = progress and _shift_progress(progress, total - config.max_steps, total)
    return fit(model, training, config=config, progress=progress, checkpoint=checkpoint)


def teacher_configs(config: TrainingConfig) -> list[TrainingConfig]:
    """Return the options of each teacher: its own seed, and no teachers."""
    seeds = [seed_for(config.random_seed, "teacher", number) for number in range(config.distill_from)]
    return [config.model_copy(update={"distill_from": 0, "random_seed": seed}) for seed in seeds]


def _shift_progress(progress: Progress, before: int, total: int) -> Progress:
    return lambda step: progress(step._replace(step=before + step.step, max_steps=total))


class DistillationWindows:
    """Windows whose targets are mixed with the mean forecast of the teachers.

    Teachers forecast every batch again, so that nothing is stored for each window.
    """

    def __init__(self, windows: WindowSource, teachers: Sequence[LeapTSModel], *, weight: float) -> None:
        """Mix the actual targets, where they are known, with the teachers' mean forecast of that weight (0 to 1)."""
        self.windows = windows
        self.teachers = teachers
        self.weight = weight

    def __len__(self) -> int:
        return len(self.windows)

    def gather(self, index: Int64[Tensor, " batch"]) -> WindowBatch:
        """Return the windows with these indices."""
        batch = self.windows.gather(index)
        forecasts = [
            teacher.forecast(batch.history, quantiles=True, covariates=batch.covariates).values
            for teacher in self.teachers
        ]
        mean = torch.stack(forecasts).mean(0)
        # Mixing with the teachers' quantile moves that quantile of the targets alone, so each has a target of its own.
        target = batch.target.repeat_interleave(len(self.teachers[0].levels), -1)
        return replace(batch, target=target.lerp(mean, self.weight))
