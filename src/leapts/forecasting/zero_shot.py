"""LeapTS-Zero: forecasts without training, by a universal network that was trained on many kinds of series."""

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import torch
from jaxtyping import Float, Int64
from safetensors.torch import load
from torch import Tensor, nn

from leapts.config import QUANTILES, ModelConfig, TrainingConfig
from leapts.data.panel import Panel
from leapts.data.scaling import Scaler, Support
from leapts.errors import ConfigError, ModelFileError
from leapts.forecasting.auto_config import AutoConfig, AutoOption
from leapts.forecasting.estimator import LeapTS
from leapts.forecasting.predictor import Predictor
from leapts.model.context import REACH
from leapts.model.network import Execution, Forecast, GatedFusion, Record, RunOptions
from leapts.model.universal import StepBasis, UniversalConfig, UniversalModel
from leapts.training.early_stopping import TrainingReport

if TYPE_CHECKING:
    from leapts.explanation.ledger import Explanation

WEIGHTS = Path(__file__).parents[1] / "model" / "leapts-zero.safetensors"
MAX_HORIZON = 1_000
_MAX_BYTES = 8 << 20


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
        model = UniversalModel(UniversalConfig(QUANTILES))
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


class UniversalNetwork(nn.Module):
    """A universal network for one horizon, with the interface of a fitted one."""

    def __init__(self, model: UniversalModel, h: int) -> None:
        super().__init__()
        self.model = model
        self.h = h
        self.median = QUANTILES.index(0.5)

    @property
    def fusion(self) -> GatedFusion:
        """Return the rollout over the horizon, to describe it."""
        nothing = torch.empty(0, 0, self.h)
        return self.model.fusion(self.h, StepBasis(nothing, nothing))

    def snapshot(self) -> Self:
        """Return this network, which needs no preparation."""
        return self

    @torch.inference_mode()
    def forecast(
        self,
        history: Float[Tensor, "batch series steps"],
        generator: None = None,  # noqa: ARG002
        *,
        execution: Execution = "dense",
        record: Record = "nothing",
        quantiles: bool = True,
        covariates: None = None,  # noqa: ARG002
    ) -> Forecast:
        """Forecast the quantiles of every row, or their median alone."""
        return self.run(history, RunOptions(None, execution, record, quantiles))

    def run(self, history: Float[Tensor, "batch series steps"], options: RunOptions) -> Forecast:
        """Forecast with gradients."""
        found = self.model.run(history.flatten(0, 1), self.h, options.record)
        if not options.quantiles:
            found = found._replace(values=found.values.unflatten(1, (self.h, -1))[..., self.median])

        def by_window(rows: Tensor) -> Tensor:
            return rows.view(*history.shape[:2], *rows.shape[1:])

        if options.record == "nothing":
            return Forecast(by_window(found.values), None, None)
        assert found.coarse is not None
        assert found.trace is not None
        trace, parts = found.trace.arranged(by_window), tuple(map(by_window, found.parts))
        return Forecast(by_window(found.values), by_window(found.coarse), trace, parts)


def zero_shot_predictor(panel: Panel, h: int, support: Any = "auto") -> Predictor:
    """Make the pretrained network a predictor of the series of a panel.

    Raises:
        ConfigError: When the horizon is longer than the network can forecast.
    """
    if not 1 <= h <= MAX_HORIZON:
        raise ConfigError(f"h={h}: the pretrained model forecasts from 1 to {MAX_HORIZON} steps")
    steps = max(1, min(REACH, int(panel.lengths.max())))
    network: Any = UniversalNetwork(load_universal(), h)
    return Predictor(
        config=ModelConfig(h=h, input_size=steps, quantiles=QUANTILES, mask=True),
        training=TrainingConfig(max_steps=1),
        model=network,
        clusters=None,
        scaler=Scaler.fit(panel),
        tail=panel.ending(steps, h),
        pad_short=True,
        report=TrainingReport(),
        auto_config=AutoConfig([AutoOption("init", "pretrained", "no training was asked for")]),
        support=Support.of(panel, support),
        calibration=None,
    )


class ZeroShotLeapTS(LeapTS):
    """`LeapTS.pretrained`: forecasts any series at once; `fit` only takes note of the series."""

    def _train(self, panel: Panel, **options: Any) -> Predictor:  # noqa: ARG002
        return zero_shot_predictor(panel, self.fit_config().h, self.support)

    def _explained_by(self, panel: Panel) -> Predictor:
        return self._train(panel)

    def explain(self, df: Any = None) -> "Explanation":
        """Explain the forecast of every series of a frame, as `LeapTS.explain` does."""
        return super().explain() if df is None else self.fit(df).explain()

    def predict(self, df: Any = None, **options: Any) -> Any:
        """Forecast the steps after the end of every series of a frame, as `LeapTS.predict` does."""
        if options.get("futr_df") is not None or options.get("static_df") is not None:
            raise ConfigError("the pretrained model does not use covariates yet; leave futr_df and static_df out")
        return super().predict(None, **options) if df is None else self.fit(df).predict(None, **options)

    def _newer(self, df: Any) -> Panel:
        return self._input(df)

    def _predictor_of(self, panel: Panel) -> Predictor:
        # Limits found in all of the data would let a forecast see what follows it.
        made = zero_shot_predictor(panel, self.fit_config().h, "real" if self.support == "auto" else self.support)
        own = self._predictor.calibration if hasattr(self, "_predictor") else None
        return made if own is None else replace(made, calibration=own.of_last_group())

    def _first_cutoffs(self, panel: Panel, share: float) -> Int64[Tensor, " series"]:
        return (panel.lengths * share).long().clamp(min=self.fit_config().h)

    def save(self, path: str | Path) -> None:
        """Refuse: there is nothing to save."""
        raise ConfigError(f"{path}: a pretrained model has nothing of its own to save; call LeapTS.pretrained again")

    def update(self, df: Any, **options: Any) -> Self:  # noqa: ARG002
        """Refuse: the pretrained weights stay."""
        raise ConfigError("the pretrained model is not trained further; fit a LeapTS instead")
