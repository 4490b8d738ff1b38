"""Fit the model of a run: LeapTS and baselines by the same training loop."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, cast

import torch
from jaxtyping import Float
from torch import Generator, Tensor, nn

from leapts.config import ModelConfig
from leapts.data.windows import AlignedWindows
from leapts.model import LeapTSModel, cluster_series
from leapts.model.build import build_model
from leapts.training.checkpoint import Checkpoint
from leapts.training.distillation import train_with_distillation
from leapts.training.early_stopping import TrainingReport
from leapts.training.loop import WindowSource
from leapts_bench.baselines import BaselineModel, build_baseline
from leapts_bench.baselines.quicker import quicken
from leapts_bench.runs import BaselineDesign, LeapTSDesign, NaiveDesign, Run
from leapts_bench.scoring import Predicted, Predictor


class Parts(Protocol):
    """The windows that a model is fitted on."""

    @property
    def variates(self) -> int | None:
        """Return the number of series of a multivariate model; None for univariate models."""

    def train(self) -> WindowSource:
        """Return the training windows."""

    def validation(self) -> WindowSource:
        """Return the validation windows."""


@dataclass(frozen=True)
class Fit:
    """A fitted model or ensemble, with its number of parameters and training reports."""

    predictor: Predictor
    parameters: int
    reports: tuple[dict[str, Any], ...]  # of each member

    @property
    def report(self) -> dict[str, Any]:
        """Return the training report as stored in results."""
        return self.reports[0] if len(self.reports) == 1 else {"members": list(self.reports)}


def fit(run: Run, data: Parts, states: Path | None = None) -> Fit:
    """Fit the model of a run on the training windows, with weights chosen on the validation windows.

    Args:
        run: The model and its training options.
        data: The windows.
        states: The folder of the training state, to resume from.

    Raises:
        ConfigError: When the run names an unknown baseline.
        ImportError: When a package of the baseline is not installed.
    """
    if isinstance(run.model, NaiveDesign):
        return Fit(Repeating(run.horizon), 0, ({"steps": 0, "stopped_early": False},))
    windows, validation = data.train(), data.validation()
    trained = [_trained(member, windows, validation, data.variates, states=states) for member in run.members()]
    models = [model for model, _ in trained]
    return Fit(_asked(models), sum(_size(model) for model in models), tuple(_told(report) for _, report in trained))


class Leaping:
    """LeapTS as a predictor that counts its leaps."""

    def __init__(self, model: LeapTSModel) -> None:
        self.model = model

    @property
    def leaps(self) -> bool:
        """Check for a scheduling branch."""
        return self.model.fusion.state_size > 0

    def predict(self, history: Float[Tensor, "batch variates lookback"]) -> Predicted:
        """Forecast each window by the sparse execution."""
        forecast = self.model.forecast(history, record="leaps")
        return Predicted(forecast.values, None if forecast.trace is None else forecast.trace.leaps)


class Asked:
    """A baseline as a predictor."""

    def __init__(self, model: BaselineModel) -> None:
        self.model = model

    def predict(self, history: Float[Tensor, "batch variates lookback"]) -> Predicted:
        """Forecast each window; there are no leaps to count."""
        return Predicted(self.model.forecast(history).values, None)


class Averaging:
    """The mean of several predictors."""

    def __init__(self, members: Sequence[Predictor]) -> None:
        self.members = members

    def predict(self, history: Float[Tensor, "batch variates lookback"]) -> Predicted:
        """Return the mean forecast of each window, and the mean number of leaps of the members."""
        said = [member.predict(history) for member in self.members]
        leaps = [each.leaps.double() for each in said if each.leaps is not None]
        values = torch.stack([each.values for each in said]).mean(0)
        return Predicted(values, torch.stack(leaps).mean(0) if leaps else None)


class Repeating:
    """The naive forecast: the last value, repeated."""

    def __init__(self, horizon: int) -> None:
        self.horizon = horizon

    def predict(self, history: Float[Tensor, "batch variates lookback"]) -> Predicted:
        """Forecast each window."""
        return Predicted(history[..., -1:].expand(-1, -1, self.horizon), None)


def refit(run: Run, windows: WindowSource, *, variates: int | None, steps: Sequence[int]) -> Predictor:
    """Refit the run's model on these windows, each member for its number of steps, without validation."""
    assert not run.training.teachers, "a student's number of steps does not give that of its teachers"
    members = zip(run.members(), steps, strict=True)
    return _asked([_trained(member, windows, None, variates, steps=most)[0] for member, most in members])


def _trained(
    run: Run,
    windows: WindowSource,
    validation: WindowSource | None,
    variates: int | None,
    *,
    steps: int | None = None,
    states: Path | None = None,
) -> tuple[LeapTSModel | BaselineModel, TrainingReport]:
    model = _built(run, windows, variates)
    config = run.training.config(len(windows), run.seed)
    if steps is not None:
        config = config.model_copy(update={"max_steps": steps})
    # Baselines have all that training needs: `forward` with a generator, `forecast`, and the weights.
    report = train_with_distillation(
        cast("LeapTSModel", model),
        lambda seed: cast("LeapTSModel", _built(run.model_copy(update={"seed": seed}), windows, variates)),
        windows,
        validation,
        config,
        checkpoint=None if states is None else Checkpoint(states / str(run.seed), fingerprint=run.key),
    )
    return model, report


def _built(run: Run, windows: WindowSource, variates: int | None) -> LeapTSModel | BaselineModel:
    back, ahead, seed = run.input_size, run.horizon, run.seed
    match run.model:
        case LeapTSDesign():
            config = run.model.config(input_size=back, horizon=ahead, variates=variates)
            return build_model(config, seed=seed, clusters=_clusters(config, windows, seed))
        case BaselineDesign(name=name, options=options):
            baseline = build_baseline(name, options, input_size=back, horizon=ahead, variates=variates, seed=seed)
            quicken(baseline)
            return baseline
        case NaiveDesign():
            raise AssertionError("nothing to build: it has nothing to learn")


def _asked(models: Sequence[LeapTSModel | BaselineModel]) -> Predictor:
    predictors = [Leaping(model) if isinstance(model, LeapTSModel) else Asked(model) for model in models]
    return predictors[0] if len(predictors) == 1 else Averaging(predictors)


def _size(model: nn.Module) -> int:
    return sum(weights.numel() for weights in model.parameters())


def _told(report: TrainingReport) -> dict[str, Any]:
    return {
        "steps": report.steps,
        "best_step": report.best_step,
        "best_validation_mae": report.best_validation,
        "stopped_early": report.stopped_early,
        "validations": [[step, round(value, 6)] for step, value in report.validations],
    }


def _clusters(config: ModelConfig, windows: WindowSource, seed: int) -> tuple[int, ...] | None:
    if config.clusters == 1 or not isinstance(windows, AlignedWindows):
        return None
    return tuple(cluster_series(windows.matrix, config.clusters, Generator().manual_seed(seed)).tolist())
