"""From a run to a fitted model: LeapTS by its own training loop, peers behind the same seam."""

from dataclasses import dataclass
from typing import Any, Protocol

from jaxtyping import Float
from torch import Generator, Tensor

from leapts.assembly import build_model
from leapts.config import ModelConfig
from leapts.core import LeapTSModel, cluster_variates
from leapts.data.windows import AlignedWindows
from leapts.errors import ConfigError
from leapts.training import WindowSource, train
from leapts_bench.runs import LeapTSDesign, PeerDesign, Run
from leapts_bench.scoring import Predicted, Predictor


class Parts(Protocol):
    """What a model is fitted on: windows to learn from, and windows to choose its weights by."""

    @property
    def variates(self) -> int | None:
        """How many series are forecast together; none: any number, each for itself."""

    def train(self) -> WindowSource:
        """Windows to learn from."""

    def validation(self) -> WindowSource:
        """Windows to choose the weights by."""


@dataclass(frozen=True)
class Fit:
    """A fitted model, its size, and how its training went."""

    predictor: Predictor
    parameters: int
    report: dict[str, Any]


def fit(run: Run, data: Parts) -> Fit:
    """Fit the run's model on the training windows, choosing its weights on the validation windows.

    Raises:
        ConfigError: When the run names a peer that is not there.
    """
    match run.model:
        case LeapTSDesign():
            return _fit_leapts(run, run.model, data)
        case PeerDesign(name=name):
            raise ConfigError(f"there is no peer {name!r} yet")


class Leaping:
    """LeapTS as a predictor, with a count of its leaps."""

    def __init__(self, model: LeapTSModel) -> None:
        self.model = model

    def predict(self, history: Float[Tensor, "batch variates lookback"]) -> Predicted:
        """The forecast of each window, by the sparse execution."""
        forecast = self.model.forecast(history, record="leaps")
        return Predicted(forecast.values, None if forecast.trace is None else forecast.trace.leaps)


def _fit_leapts(run: Run, design: LeapTSDesign, data: Parts) -> Fit:
    windows = data.train()
    config = design.config(input_size=run.input_size, horizon=run.horizon, variates=data.variates)
    model = build_model(config, seed=run.seed, clusters=_clusters(config, windows, run.seed))
    report = train(model, windows, data.validation(), run.training.config(len(windows), run.seed))
    return Fit(
        predictor=Leaping(model),
        parameters=sum(weights.numel() for weights in model.parameters()),
        report={
            "steps": report.steps,
            "best_step": report.best_step,
            "best_validation_mae": report.best_validation,
            "stopped_early": report.stopped_early,
            "validations": [[step, round(value, 6)] for step, value in report.validations],
        },
    )


def _clusters(config: ModelConfig, windows: WindowSource, seed: int) -> tuple[int, ...] | None:
    if config.clusters == 1 or not isinstance(windows, AlignedWindows):
        return None
    return tuple(cluster_variates(windows.matrix, config.clusters, Generator().manual_seed(seed)).tolist())
