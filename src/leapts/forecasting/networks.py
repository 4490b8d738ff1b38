"""The networks that a predictor runs: one of its fit, the pretrained one, or the mean of both."""

import json
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Self, cast

import torch
from jaxtyping import Float
from safetensors.torch import load
from torch import Tensor, nn

from leapts.config import QUANTILES, ModelConfig
from leapts.errors import ModelFileError
from leapts.model import LeapTSModel, ScheduleTrace
from leapts.model.build import build_model
from leapts.model.context import context_of, view_of
from leapts.model.network import Execution, Forecast, GatedFusion, History, Outputs, Record, RunOptions
from leapts.model.normalization import Units
from leapts.model.schedulers import NoiseSource
from leapts.model.universal import StepBasis, UniversalConfig, UniversalModel
from leapts.parts import EnsembleNetwork, OwnNetwork

WEIGHTS = Path(__file__).parents[1] / "model" / "leapts-zero.safetensors"
_MAX_BYTES = 8 << 20
_MAX_ROWS = 1024  # in one pass: as many as the cache holds


@cache
def load_universal(path: Path = WEIGHTS) -> UniversalModel:
    """Read the pretrained weights, once for a program.

    Raises:
        ModelFileError: When the file is missing, or is not the weights of this network.
    """
    try:
        if path.stat().st_size > _MAX_BYTES or not path.is_file():
            raise ValueError("it is no ordinary file, or too large")
        tensors = load(path.read_bytes())
        model = _universal_model(QUANTILES)
        model.load_state_dict({name: value.float() for name, value in tensors.items()})
        if not all(bool(weight.isfinite().all()) for weight in model.parameters()):
            raise ValueError("a weight is not a number")
    except FileNotFoundError:
        raise ModelFileError(f"{path} is missing; install leapts again") from None
    except Exception as error:
        why = " ".join(str(error).split())[:200]
        raise ModelFileError(f"{path} is not the weights of LeapTS-Zero ({why}); install leapts again") from error
    return model.eval()


def training_facts(path: Path = WEIGHTS) -> dict[str, Any]:
    """Return facts about the training of the weights: windows, hours, seed and data sets."""
    with path.open("rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    facts: dict[str, Any] = json.loads(header["__metadata__"]["record"])
    return facts


def _universal_model(quantiles: tuple[float, ...]) -> UniversalModel:
    with torch.random.fork_rng(devices=[]):
        return UniversalModel(UniversalConfig(quantiles))


class UniversalNetwork(nn.Module):
    """A universal network for one horizon, with the interface of a fitted one."""

    def __init__(self, model: UniversalModel, h: int) -> None:
        super().__init__()
        self.model = model
        self.h = h

    def as_model(self) -> LeapTSModel:
        """Return this network where a fitted one is expected, whose interface it has."""
        return cast("LeapTSModel", self)

    @property
    def levels(self) -> Float[Tensor, " quantiles"]:
        """Return the levels of the quantiles."""
        return self.model.outputs.levels

    @property
    def median(self) -> int:
        """Return the index of the median among the quantiles."""
        return self.model.outputs.below

    @property
    def fusion(self) -> GatedFusion:
        """Return the rollout over the horizon, to describe it."""
        nothing = torch.empty(0, 0, self.h)
        return self.model.fusion(self.h, StepBasis(nothing, nothing))

    def snapshot(self) -> Self:
        """Return this network, which needs no preparation."""
        return self

    def forward(
        self,
        history: History,
        generator: NoiseSource | None = None,
        covariates: None = None,  # noqa: ARG002
    ) -> Outputs:
        """Forecast with gradients, for training; a generator makes it explore."""
        context = context_of(view_of(history.flatten(0, 1)))
        found = self.model(context, self.h, RunOptions(generator, "dense"))
        values: Tensor = Units(context.center, context.scale).restore(found.values).unflatten(0, history.shape[:2])
        return values

    @torch.inference_mode()
    def forecast(
        self,
        history: History,
        generator: None = None,  # noqa: ARG002
        *,
        execution: Execution = "dense",
        record: Record = "nothing",
        quantiles: bool = False,
        covariates: None = None,  # noqa: ARG002
    ) -> Forecast:
        """Forecast the quantiles of every row, or their median alone."""
        return self.run(history, RunOptions(None, execution, record, quantiles))

    def run(self, history: History, options: RunOptions) -> Forecast:
        """Forecast with gradients, in passes of limited size."""
        rows = history.flatten(0, 1)
        found = [self.model.run(some, self.h, options.record) for some in rows.split(_MAX_ROWS)]

        def by_window(parts: Sequence[Tensor]) -> Tensor:
            joined = torch.cat(list(parts))
            return joined.view(*history.shape[:2], *joined.shape[1:])

        values = by_window([part.values for part in found])
        if not options.quantiles:
            values = values.unflatten(2, (self.h, -1))[..., self.median]
        coarse = [part.coarse for part in found if part.coarse is not None]
        traces = [part.trace for part in found if part.trace is not None]
        if options.record == "nothing":
            return Forecast(values, None, None)
        trace = ScheduleTrace.joined(traces).arranged(lambda x: by_window([x]))
        parts = tuple(map(by_window, zip(*(part.parts for part in found), strict=True)))
        return Forecast(values, by_window(coarse), trace, parts)


class Ensemble(nn.Module):
    """The mean of a fitted network and the pretrained one, quantile by quantile; the trace is that of the first.

    A training step changes the fitted network alone.
    """

    def __init__(self, own: LeapTSModel, pretrained: UniversalNetwork, *, is_masked: bool) -> None:
        super().__init__()
        self.own = own
        self.pretrained = pretrained
        self.is_masked = is_masked
        self.levels, self.median = own.levels, own.median

    def as_model(self) -> LeapTSModel:
        """Return this network where a fitted one is expected, whose interface it has."""
        return cast("LeapTSModel", self)

    @property
    def fusion(self) -> nn.Module:
        """Return that of the fitted network."""
        return self.own.fusion

    def snapshot(self) -> "Ensemble":
        """Prepare the fitted network for fast inference."""
        return Ensemble(self.own.snapshot(), self.pretrained, is_masked=self.is_masked)

    def own_history(self, history: History) -> History:
        """Cut out the look-back of the fitted network; without a mask, the first known value stands before it."""
        own = history[..., -self.own.shape.lookback :]
        if self.is_masked:
            return own
        first = own.gather(2, (~own.isnan()).float().argmax(2, keepdim=True))
        return torch.where(own.isnan(), first, own)

    def forward(
        self,
        history: History,
        generator: NoiseSource | None = None,
        covariates: None = None,  # noqa: ARG002
    ) -> Outputs:
        """Forecast with gradients of the fitted network."""
        with torch.no_grad():
            pretrained = self.pretrained(history)
        mean: Tensor = (self.own(self.own_history(history), generator) + pretrained) / 2
        return mean

    @torch.inference_mode()
    def forecast(
        self,
        history: History,
        generator: None = None,  # noqa: ARG002
        *,
        execution: Execution = "sparse",
        record: Record = "nothing",
        quantiles: bool = False,
        covariates: None = None,  # noqa: ARG002
    ) -> Forecast:
        """Forecast the mean of both."""
        own = self.own.forecast(self.own_history(history), execution=execution, record=record, quantiles=quantiles)
        pretrained = self.pretrained.forecast(history, record=record, quantiles=quantiles)
        coarse = None if own.coarse is None or pretrained.coarse is None else (own.coarse + pretrained.coarse) / 2
        return Forecast((own.values + pretrained.values) / 2, coarse, own.trace)


def _pretrained(config: ModelConfig, *, seed: int, clusters: Sequence[int] | None = None) -> LeapTSModel:  # noqa: ARG001
    return UniversalNetwork(_universal_model(config.quantiles), config.h).as_model()


def _ensemble(config: ModelConfig, *, seed: int, clusters: Sequence[int] | None = None) -> LeapTSModel:
    assert isinstance(config.network, EnsembleNetwork)
    own = config.model_copy(update={"input_size": config.network.lookback, "network": OwnNetwork()})
    pretrained = UniversalNetwork(_universal_model(config.quantiles), config.h)
    return Ensemble(build_model(own, seed=seed, clusters=clusters), pretrained, is_masked=config.mask).as_model()


# Makes the network that the options name by its kind; every one has the interface of a `LeapTSModel`.
BUILDERS: dict[str, Callable[..., LeapTSModel]] = {
    "own": build_model,
    "pretrained": _pretrained,
    "ensemble": _ensemble,
}
