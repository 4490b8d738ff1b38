"""LeapTS as a model of neuralforecast, to stand beside its own.

Importing this module makes the name known to neuralforecast's `load`.
"""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import torch
from jaxtyping import Float
from torch import Generator, Tensor

from leapts.assembly import build_model
from leapts.config import ModelConfig, NormalizationName
from leapts.core import ScheduleTrace
from leapts.core.fusion import CoarseOnly
from leapts.errors import ConfigError, NotFittedError
from leapts.forecaster.tracing import leap_columns

try:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from neuralforecast.common._base_model import BaseModel
        from neuralforecast.core import MODEL_FILENAME_DICT
        from neuralforecast.losses.pytorch import MAE
except ImportError as error:
    raise ImportError("the neuralforecast adapter needs: pip install 'leapts[neural]'") from error


_ROUNDING = 1e-6  # relative, in single precision


class LeapTS(BaseModel):
    """LeapTS for neuralforecast: every series for itself, with weights that all of them share.

    Windows come standardised by neuralforecast (`scaler_type`), or in any units, and LeapTS centres and scales them
    (once more) as `normalization` says. A distribution's location and scale go back through neuralforecast's scaler
    alone, so with such a loss the window is left as it comes.

    Args:
        h: Steps to forecast.
        input_size: Steps of history a forecast looks back on.
        hidden_size: Width of the network.
        encoder_layers: Layers of the encoder.
        head_layers: Layers of the segment heads.
        normalization: What a window is centred on and divided by: its `mean` or its `last` value, and its spread;
            `shift` its last value alone; or `none`.
        scheduling: The schedule, by its kind or with its options, see `leapts.config.ModelConfig`.
        state: What carries the state from leap to leap, likewise.
        control_size: Numbers in the control signal.
        summary_size: Numbers in the summary of a segment.
        mask_sharpness: How softly a segment ends.
        temporal_clip: Least and most time a leap counts for, in horizons.
        loss: A loss of neuralforecast, for points, quantiles or distributions; by default MAE.
        valid_loss: What to validate by; by default the loss.
        max_steps: Steps of training.
        learning_rate: Of the first step.
        num_lr_decays: How often it is halved on the way.
        val_check_steps: Steps between looks at the validation windows.
        batch_size: Series in a step.
        valid_batch_size: Series in a batch of validation or prediction; by default as in training.
        windows_batch_size: Windows in a step.
        inference_windows_batch_size: Windows in a batch of validation or prediction.
        start_padding_enabled: Whether to take series shorter than a window, with zeros in front.
        scaler_type: How neuralforecast standardises each window.
        options: Further options of every neuralforecast model (`early_stop_patience_steps`, `random_seed`, `alias`,
            ...) and of Lightning's trainer.
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
        # The parent reads this frame's variables to remember how it was made, so the default has to be in place first.
        loss = MAE() if loss is None else loss
        super().__init__(
            h=h,
            input_size=input_size,
            loss=loss,
            valid_loss=valid_loss,
            max_steps=max_steps,
            learning_rate=learning_rate,
            num_lr_decays=num_lr_decays,
            val_check_steps=val_check_steps,
            batch_size=batch_size,
            valid_batch_size=valid_batch_size,
            windows_batch_size=windows_batch_size,
            inference_windows_batch_size=inference_windows_batch_size,
            start_padding_enabled=start_padding_enabled,
            scaler_type=scaler_type,
            **options,
        )
        config = ModelConfig(
            h=h,
            input_size=self.input_size,
            hidden_size=hidden_size,
            encoder_layers=encoder_layers,
            head_layers=head_layers,
            normalization="none" if self.loss.is_distribution_output else normalization,
            scheduling=_by_kind(scheduling),
            state=_by_kind(state),
            control_size=control_size,
            summary_size=summary_size,
            mask_sharpness=mask_sharpness,
            temporal_clip=temporal_clip,
        )
        # Without a seed of its own, as Darts leaves it, the model follows torch's.
        seed = torch.initial_seed() if self.random_seed is None else self.random_seed
        self.network = build_model(config, seed=seed, outputs=self.loss.outputsize_multiplier).float()
        self._keeps_units = config.normalization in ("shift", "none")
        self._recorded: list[ScheduleTrace] | None = None
        self._traces: list[ScheduleTrace] = []

    def forward(self, windows_batch: Mapping[str, Tensor]) -> Tensor:
        """Forecast a batch: windows x steps x numbers that the loss wants for each.

        Training explores. Inference takes the short way, unless gradients are asked for, as explanations do.
        """
        history = windows_batch["insample_y"].transpose(1, 2)
        center, unit = self._units(history)
        history = (history - center) / unit
        if self.training:
            # neuralforecast seeds torch at the start of a fit; a draw from there makes a run repeatable.
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

    @torch.no_grad()  # the forecast follows level and spread of the window by itself, and so does its gradient
    def _units(self, history: Float[Tensor, "windows 1 steps"]) -> tuple[Tensor, Tensor]:
        """What to count a window from and in: the network expects spreads of about one, and Darts feeds raw values.

        Where windows are taken as they come, their level and spread mean something, and stay.
        """
        if self._keeps_units:
            return history.new_zeros(()), history.new_ones(())
        center = history.mean(-1, keepdim=True)
        spread = (history - center).square().mean(-1, keepdim=True).sqrt()
        # Of a constant, rounding leaves no more than this.
        return center, torch.maximum(spread, _ROUNDING * center.abs()).clamp(min=torch.finfo(spread.dtype).tiny)

    def on_fit_end(self) -> None:
        """Let go of the last batch: a distribution loss keeps its mean with the gradients, and could not be saved."""
        mean = getattr(self.loss, "distr_mean", None)
        if mean is not None:
            self.loss.distr_mean = mean.detach()

    def on_predict_start(self) -> None:
        """A new prediction: forget the last one's leaps."""
        self._traces = []

    def predict_step(self, batch: Any, batch_idx: int) -> Any:
        """Forecast, and keep the trace.

        A horizon beyond `h` is forecast by feeding forecasts back in; the trace is that of the first `h` steps. While
        explaining, the network also runs on altered windows, so nothing is kept.
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
        """The leaps of the last prediction: one row for each window, series after series.

        Raises:
            NotFittedError: When nothing was predicted yet.
            ConfigError: When the model has no scheduling branch, and so takes no leaps.
        """
        if not self._traces:
            if isinstance(self.network.fusion, CoarseOnly):
                raise ConfigError("this model has no scheduling branch, so there are no leaps to trace")
            raise NotFittedError("there is no trace yet; predict with this model first")
        return ScheduleTrace.joined(self._traces)

    def trace_frame(self, series: Sequence[Any]) -> pd.DataFrame:
        """The leaps of the last prediction as a table, with the columns of `leapts.LeapTS.predict`'s trace.

        Args:
            series: The names of the series, in the order of the forecast: `nf.uids` after `nf.predict()`.
        """
        trace = self.trace_
        windows, left_over = divmod(len(trace.leaps), len(series)) if len(series) else (0, 1)
        if left_over or not windows:
            raise ConfigError(f"the trace has {len(trace.leaps)} rows, which cannot be {len(series)} series' windows")
        row, columns = leap_columns(trace)
        names = pd.Series(list(series)).take(row // windows).reset_index(drop=True)
        return pd.DataFrame({"unique_id": names, "window": row % windows, **columns})


def _by_kind(part: Any) -> Any:
    return {"kind": part} if isinstance(part, str) else part


MODEL_FILENAME_DICT["leapts"] = LeapTS
