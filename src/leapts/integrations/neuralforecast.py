"""LeapTS as a model of neuralforecast.

Importing this module registers it, so that `NeuralForecast.load` finds it.
"""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import torch
from jaxtyping import Float
from torch import Generator, Tensor

from leapts.config import ModelConfig, NormalizationName
from leapts.errors import ConfigError, NotFittedError
from leapts.forecasting.trace_frame import leap_columns
from leapts.model import ScheduleTrace
from leapts.model.build import build_model
from leapts.model.network import CoarseOnly

try:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from neuralforecast.common._base_model import BaseModel
        from neuralforecast.core import MODEL_FILENAME_DICT
        from neuralforecast.losses.pytorch import MAE
except ImportError as error:
    raise ImportError("the neuralforecast integration needs: pip install 'leapts[neural]'") from error


_ROUNDING = 1e-6  # relative, in single precision
_MODEL_OPTIONS = ModelConfig.model_fields.keys() - {"h", "input_size"}


class LeapTS(BaseModel):
    """LeapTS for neuralforecast: one univariate model for all series.

    neuralforecast standardizes windows as `scaler_type` says; LeapTS then normalizes them as `normalization` says. With
    a distribution loss the window is not normalized again, because neuralforecast scales the distribution back itself.

    The arguments up to `temporal_clip` are those of `leapts.config.ModelConfig`, the others those of every
    neuralforecast model.

    Args:
        h: The horizon, in steps.
        input_size: The look-back, in steps.
        normalization: `mean` or `last` subtracts the mean or the last value of a window and divides by its standard
            deviation; `shift` subtracts the last value only; `none` changes nothing.
        scheduling: The scheduler, by its kind or with its options.
        state: The state cell, by its kind or with its options.
        loss: A loss of neuralforecast, for points, quantiles or distributions; by default MAE.
        options: Further options of neuralforecast (`early_stop_patience_steps`, `random_seed`, `alias`, ...) and of
            Lightning's trainer.
    """

    EXOGENOUS_FUTR = False
    EXOGENOUS_HIST = False
    EXOGENOUS_STAT = False
    MULTIVARIATE = False
    RECURRENT = False

    def __init__(
        self,
        h: int,
        input_size: int,
        *,
        hidden_size: int = 64,
        encoder_layers: int = 2,
        head_layers: int = 1,
        normalization: NormalizationName = "mean",
        scheduling: str | Mapping[str, Any] = "hierarchical",
        state: str | Mapping[str, Any] = "cde",
        control_size: int = 16,
        summary_size: int = 16,
        mask_sharpness: float = 0.5,
        temporal_clip: tuple[float, float] = (0.05, 1.0),
        loss: Any = None,
        valid_loss: Any = None,
        max_steps: int = 1000,
        learning_rate: float = 2e-3,
        num_lr_decays: int = 3,
        val_check_steps: int = 100,
        batch_size: int = 32,
        valid_batch_size: int | None = None,
        windows_batch_size: int = 1024,
        inference_windows_batch_size: int = 1024,
        start_padding_enabled: bool = False,
        scaler_type: str = "standard",
        **options: Any,
    ) -> None:
        # The parent class stores the arguments as hyperparameters, so the default must be set first.
        loss = MAE() if loss is None else loss
        given: dict[str, Any] = {k: v for k, v in locals().items() if k not in ("self", "options", "__class__")}
        model = {name: given.pop(name) for name in _MODEL_OPTIONS & given.keys()}
        super().__init__(**given, **options)
        model |= {name: {"kind": model[name]} for name in ("scheduling", "state") if isinstance(model[name], str)}
        model["normalization"] = "none" if self.loss.is_distribution_output else normalization
        config = ModelConfig(h=h, input_size=self.input_size, **model)
        # Darts sets no seed; the model then uses the seed of torch.
        seed = torch.initial_seed() if self.random_seed is None else self.random_seed
        self.network = build_model(config, seed=seed, outputs_per_step=self.loss.outputsize_multiplier).float()
        self._keeps_units = config.normalization in ("shift", "none")
        self._recorded: list[ScheduleTrace] | None = None
        self._traces: list[ScheduleTrace] = []

    def forward(self, windows_batch: Mapping[str, Tensor]) -> Tensor:
        """Forecast a batch: [windows, steps, outputs of the loss].

        Training samples schedules. Inference uses the inference copy, unless gradients are needed for explanations.
        """
        history = windows_batch["insample_y"].transpose(1, 2)
        center, unit = self._units(history)
        history = (history - center) / unit
        if self.training:
            # neuralforecast seeds torch at the start of a fit, so this draw is reproducible.
            seed = int(torch.randint(2**62, ()))
            values = self.network(history, Generator(history.device).manual_seed(seed))
        elif torch.is_grad_enabled():
            values = self.network(history)
        else:
            forecast = self.network.forecast(history, record="nothing" if self._recorded is None else "leaps")
            if self._recorded is not None and forecast.trace is not None:
                self._recorded.append(forecast.trace.arranged(lambda x: x.flatten(0, 1).cpu()))
            values = forecast.values
        values = values * unit + center
        steps: Tensor = values.squeeze(1).unflatten(1, (self.h, self.loss.outputsize_multiplier))
        return steps

    @torch.no_grad()  # constants for the gradient
    def _units(self, history: Float[Tensor, "windows 1 steps"]) -> tuple[Tensor, Tensor]:
        """Return center and unit of each window: the network expects unit variance, and Darts passes raw values.

        Without normalization, the level and spread of a window carry information and stay.
        """
        if self._keeps_units:
            return history.new_zeros(()), history.new_ones(())
        center = history.mean(-1, keepdim=True)
        spread = (history - center).square().mean(-1, keepdim=True).sqrt()
        # A smaller spread is rounding error of a constant window.
        return center, torch.maximum(spread, _ROUNDING * center.abs()).clamp(min=torch.finfo(spread.dtype).tiny)

    def on_fit_end(self) -> None:
        """Detach the last batch: a distribution loss keeps its mean with gradients, which cannot be saved."""
        mean = getattr(self.loss, "distr_mean", None)
        if mean is not None:
            self.loss.distr_mean = mean.detach()

    def on_predict_start(self) -> None:
        """Remove the trace of the last prediction."""
        self._traces = []

    def predict_step(self, batch: Any, batch_idx: int) -> Any:
        """Forecast a batch and record the trace.

        A horizon beyond `h` is forecast recursively; the trace has the first `h` steps. Explanations run the network
        on altered windows, so nothing is recorded for them.
        """
        self._recorded = None if getattr(self, "explain", False) else []
        try:
            result = super().predict_step(batch, batch_idx)
            recorded = self._recorded or []
            self._traces.extend(recorded[: len(recorded) // self.n_predicts])
        finally:
            self._recorded = None
        return result

    @property
    def trace_(self) -> ScheduleTrace:
        """Return the trace of the last prediction: one row for each window, series by series.

        Raises:
            NotFittedError: Before the first prediction.
            ConfigError: When the model has no scheduling branch.
        """
        if not self._traces:
            if isinstance(self.network.fusion, CoarseOnly):
                raise ConfigError("this model has no scheduling branch, so there are no leaps to trace")
            raise NotFittedError("there is no trace before the first prediction; call predict first")
        return ScheduleTrace.joined(self._traces)

    def trace_frame(self, series: Sequence[Any]) -> pd.DataFrame:
        """Return the trace of the last prediction as a frame, with the columns of `leapts.LeapTS.predict`.

        Args:
            series: The names of the series, in the order of the forecast: `nf.uids` after `nf.predict()`.
        """
        trace = self.trace_
        windows, left_over = divmod(len(trace.leaps), len(series)) if len(series) else (0, 1)
        if left_over or not windows:
            raise ConfigError(
                f"series= has {len(series)} names, and the trace {len(trace.leaps)} windows; pass nf.uids"
            )
        row, columns = leap_columns(trace)
        names = pd.Series(list(series)).take(row // windows).reset_index(drop=True)
        return pd.DataFrame({"unique_id": names, "window": row % windows, **columns})


MODEL_FILENAME_DICT["leapts"] = LeapTS
