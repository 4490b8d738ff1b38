"""Training in the logs people already keep: callbacks for `fit(progress=...)` that write to TensorBoard and MLflow.

Neither makes a run, an experiment or a server of its own: they write where they are told, while training goes on.
"""

from pathlib import Path
from typing import Any

from leapts.errors import ConfigError
from leapts.training.loop import Progress, TrainingStep

EVERY = 10


class TensorBoardLog:
    """Writes loss and validation error as events into a folder that `tensorboard --logdir` shows.

    Close it, or use it in a `with` block, so that the last events reach the disk.

    Args:
        folder: Where the events go.
        every: Steps between two losses; every look at the validation windows is written.
    """

    def __init__(self, folder: str | Path, *, every: int = EVERY) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise ImportError("the TensorBoard log needs: pip install 'leapts[tensorboard]'") from error
        self._writer: Any = SummaryWriter(str(folder))
        self._every = every

    def __call__(self, step: TrainingStep) -> None:
        """After every step of training."""
        for name, value in _worth_writing(step, self._every).items():
            self._writer.add_scalar(name, value, step.step)

    def close(self) -> None:
        """Write what is left."""
        self._writer.close()

    def __enter__(self) -> "TensorBoardLog":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class MlflowLog:
    """Writes loss and validation error as metrics of an MLflow run.

    Args:
        run_id: The run; by default the one that is active, as inside `with mlflow.start_run()`.
        every: Steps between two losses; every look at the validation windows is written.
    """

    def __init__(self, run_id: str | None = None, *, every: int = EVERY) -> None:
        try:
            import mlflow
        except ImportError as error:
            raise ImportError("the MLflow log needs: pip install 'leapts[mlflow]'") from error
        self._mlflow: Any = mlflow
        self._run_id = run_id
        self._every = every

    def __call__(self, step: TrainingStep) -> None:
        """After every step of training.

        Raises:
            ConfigError: When no run was given, and none is active. MLflow would make one.
        """
        if values := _worth_writing(step, self._every):
            self._mlflow.log_metrics(values, step=step.step, run_id=self._run_id or self._active_run())

    def _active_run(self) -> str:
        if (run := self._mlflow.active_run()) is None:
            raise ConfigError("no MLflow run is active; fit within mlflow.start_run(), or give MlflowLog a run_id")
        return str(run.info.run_id)


def together(*callbacks: Progress) -> Progress:
    """One callback that tells them all, in their order."""

    def tell(step: TrainingStep) -> None:
        for callback in callbacks:
            callback(step)

    return tell


def _worth_writing(step: TrainingStep, every: int) -> dict[str, float]:
    values = {"loss": step.loss} if step.step % every == 0 or step.step in (1, step.max_steps) else {}
    return values if step.validation is None else {**values, "validation": step.validation}
