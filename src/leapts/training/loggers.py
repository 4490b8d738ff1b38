"""Loggers: callbacks for `fit(progress=...)` that write to TensorBoard and MLflow.

They create no run, experiment or server; they write to the given one while training runs.
"""

from pathlib import Path
from typing import Any

from leapts.errors import ConfigError
from leapts.training.loop import Progress, TrainingStep

EVERY = 10


class TensorBoardLog:
    """Writes loss and validation error as events to a folder for `tensorboard --logdir`.

    Close it, or use it in a `with` block, so that the last events are written.

    Args:
        folder: The folder of the events.
        every: Steps between two losses; every validation check is written.
    """

    def __init__(self, folder: str | Path, *, every: int = EVERY) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise ImportError("the TensorBoard log needs: pip install 'leapts[tensorboard]'") from error
        self._writer: Any = SummaryWriter(str(folder))
        self._every = every

    def __call__(self, step: TrainingStep) -> None:
        """Log a training step."""
        for name, value in _metrics(step, self._every).items():
            self._writer.add_scalar(name, value, step.step)

    def close(self) -> None:
        """Write the remaining events."""
        self._writer.close()

    def __enter__(self) -> "TensorBoardLog":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class MlflowLog:
    """Writes loss and validation error as metrics of an MLflow run.

    Args:
        run_id: The run; by default the active one, as inside `with mlflow.start_run()`.
        every: Steps between two losses; every validation check is written.
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
        """Log a training step.

        Raises:
            ConfigError: When no run is given and none is active; MLflow would create one.
        """
        if values := _metrics(step, self._every):
            self._mlflow.log_metrics(values, step=step.step, run_id=self._run_id or self._active_run())

    def _active_run(self) -> str:
        if (run := self._mlflow.active_run()) is None:
            raise ConfigError("no MLflow run is active; fit within mlflow.start_run(), or give MlflowLog a run_id")
        return str(run.info.run_id)


def together(*callbacks: Progress) -> Progress:
    """Combine callbacks into one that calls them in order."""

    def call_all(step: TrainingStep) -> None:
        for callback in callbacks:
            callback(step)

    return call_all


def _metrics(step: TrainingStep, every: int) -> dict[str, float]:
    values = {"loss": step.loss} if step.step % every == 0 or step.step in (1, step.max_steps) else {}
    return values if step.validation is None else {**values, "validation": step.validation}
