"""Teaching: a model learns from what came, and from what several others, fitted before it, forecast on average.

Models that differ in nothing but their seeds make errors of their own, of which their mean has fewer. Who learns from
that mean keeps most of what it gains and is still one model: one schedule to trace, at the cost of one forecast.
"""

from collections.abc import Callable, Sequence
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

# How much of what is learned is the teachers', and how many times as long as each of them the taught one learns. Their
# mean is smoother than what came: who learns from it goes on getting better for longer.
SHARE = 0.5
LONGER = 2


def train_with_distillation(
    model: LeapTSModel,
    make: Callable[[int], LeapTSModel],
    training: WindowSource,
    validation: WindowSource | None,
    config: TrainingConfig,
    *,
    progress: Progress | None = None,
    checkpoint: Checkpoint | None = None,
    has_gaps: bool = False,
    workers: Workers | None = None,
) -> TrainingReport:
    """Fit the model in place as `train` does, after as many teachers as the options ask for; often that is none.

    Args:
        model: What to fit.
        make: A fresh model of the same kind from a seed, to be a teacher.
        training: Windows to learn from.
        validation: Windows to choose weights by, the teachers' as well.
        config: How; each teacher has as many steps as it says, the taught one `LONGER` times as many.
        progress: Called after every step, which are counted on from one model to the next.
        checkpoint: Where to keep the state, and to go on from if it holds one; teachers have folders in it.
        has_gaps: Whether steps of the training windows' horizons may be unknown, NaN.
        workers: The processes to share every batch with.

    Returns:
        How the training of the model itself went.

    Raises:
        TrainingError: When a loss stops being a number; the model then has the last good weights of who it befell.
        WorkerLostError: When one of the other processes is gone.
    """
    alike = partial(train, validation=validation, has_gaps=has_gaps, workers=workers)
    total = config.max_steps * (config.distill_from + LONGER if config.distill_from else 1)
    teachers: list[LeapTSModel] = []
    for number, own in enumerate(teacher_configs(config), 1):
        teacher = make(own.random_seed)
        heard = progress and _counted_on(progress, len(teachers) * config.max_steps, total)
        kept = checkpoint and checkpoint.part(f"teacher-{number}")
        try:
            alike(teacher, training, config=own, progress=heard, checkpoint=kept)
        except TrainingError:
            model.load_state_dict(teacher.state_dict())
            raise
        teachers.append(teacher)
    if teachers:
        training = DistillationWindows(training, teachers, share=SHARE)
        config = config.model_copy(update={"max_steps": config.max_steps * LONGER})
        progress = progress and _counted_on(progress, total - config.max_steps, total)
    return alike(model, training, config=config, progress=progress, checkpoint=checkpoint)


def teacher_configs(config: TrainingConfig) -> list[TrainingConfig]:
    """How each teacher learns: untaught, and from a seed of its own."""
    seeds = [seed_for(config.random_seed, "teacher", number) for number in range(config.distill_from)]
    return [config.model_copy(update={"distill_from": 0, "random_seed": seed}) for seed in seeds]


def _counted_on(progress: Progress, before: int, total: int) -> Progress:
    return lambda step: progress(step._replace(step=before + step.step, max_steps=total))


class DistillationWindows:
    """Windows whose futures are, for a share, what teachers forecast.

    They are asked anew for every batch, so that nothing is kept for each window.
    """

    def __init__(self, windows: WindowSource, teachers: Sequence[LeapTSModel], *, share: float) -> None:
        """Ready to be learned from.

        Args:
            windows: What came.
            teachers: Predictor models of the same look-back and horizon.
            share: How much of a future is theirs: 0 for nothing, 1 for all of it. What is unknown stays so.
        """
        self.windows = windows
        self.teachers = teachers
        self.share = share

    def __len__(self) -> int:
        return len(self.windows)

    def gather(self, index: Int64[Tensor, " batch"]) -> WindowBatch:
        """The windows of these numbers."""
        batch = self.windows.gather(index)
        said = torch.stack([teacher.forecast(batch.history).values for teacher in self.teachers]).mean(0)
        return WindowBatch(batch.history, batch.target.lerp(said, self.share))
