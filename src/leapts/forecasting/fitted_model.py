"""What a fitted model has and does beside forecasting: its properties, a check of itself, and explanations."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any

from jaxtyping import Int64
from torch import Tensor

from leapts.data.panel import Panel
from leapts.errors import ConfigError
from leapts.forecasting.anomalies import detect
from leapts.forecasting.auto_config import AutoConfig
from leapts.forecasting.intervals import Level, as_list
from leapts.forecasting.model_check import ModelCheck, check_model
from leapts.forecasting.params import Params, suggest_names, whole_number
from leapts.forecasting.predictor import Predictor
from leapts.forecasting.rolling import min_history, steps_known
from leapts.messages import counted
from leapts.training.early_stopping import TrainingReport

if TYPE_CHECKING:
    from leapts.explanation.ledger import Explanation
    from leapts.forecasting.forecast import Forecast


class FittedModel(Params):
    """Options of `LeapTS` with a fitted predictor, which it judges by newer data, and explains."""

    if TYPE_CHECKING:

        @property
        def predictor_(self) -> Predictor: ...  # noqa: D102 - described by LeapTS

    @property
    def auto_config_(self) -> AutoConfig:
        """The options that were chosen automatically, with reasons; prints as a table."""
        return self.predictor_.auto_config

    @property
    def report_(self) -> TrainingReport:
        """Losses and validation checks of the training."""
        return self.predictor_.report

    def __repr__(self) -> str:
        if not hasattr(self, "_predictor"):
            return f"LeapTS(h={self.h}, input_size={self.input_size}, freq={self.freq!r}; not fitted)"
        config, tail, quality = self._predictor.config, self._predictor.tail, self._predictor.report.quality
        fitted = f"fitted on {counted(len(tail), 'series')}{quality and f'; {quality}'}"
        return f"LeapTS(h={config.h}, input_size={config.input_size}, freq={tail.freq!r}; {fitted})"

    def __str__(self) -> str:
        is_fitted = hasattr(self, "_predictor") and self._predictor.auto_config
        return f"{self!r}\n\nchosen automatically:\n{self._predictor.auto_config!r}" if is_fitted else repr(self)

    def _repr_html_(self) -> str:
        table = self._predictor.auto_config._repr_html_() if hasattr(self, "_predictor") else ""
        return f"<p><code>{escape(repr(self))}</code></p>{table}"

    def _keep(self, predictor: Predictor) -> None:
        self._predictor = predictor

    @suggest_names
    def evaluate(
        self,
        df: Any,
        n_windows: int | None = None,
        *,
        step_size: int | None = None,
        level: Sequence[Level] = (80, 95),
    ) -> ModelCheck:
        """Forecast newer data as if unknown, and judge whether the model is still good.

        Args:
            df: The data after the fit, together with their history.
            n_windows: Windows of each series, counted back from the end; by default all after the data of the fit.
            step_size: Steps between cutoffs; by default `h`, so that windows do not overlap.
            level: Prediction intervals to check, in percent.

        Returns:
            Errors beside those of the seasonal naive forecast, coverage, drift since the fit, and the verdict:
            `still good`, `recalibrate` or `fit again`.
        """
        panel = self._newer(df)
        predictor = self._predictor_of(panel)
        return check_model(
            predictor,
            panel,
            self._first_cutoffs(panel, 0.5),
            n_windows=None if n_windows is None else whole_number("n_windows", n_windows),
            step=predictor.config.h if step_size is None else whole_number("step_size", step_size),
            levels=as_list("level", level),
            alias=self.alias,
        )

    @suggest_names
    def detect(self, df: Any, *, alert_rate: float = 0.01, fdr: float | None = None) -> Any:
        """Find anomalies in newer data: observations and leaps that forecasts made improbable.

        Args:
            df: The data after the fit, together with their history.
            alert_rate: Share of normal observations that may be marked; an alert needs at least `1 / alert_rate` scores
                to compare with.
            fdr: Rate of false discoveries among all that are marked, by Benjamini and Hochberg; instead of
                `alert_rate`.

        Returns:
            A frame of the kind of the data: each observation with its one-step forecast, the conformal `p_value`, and
            whether it is an `anomaly`; `p_value_ahead` by the forecast of the window it is in; the number of its
            `leap` in that forecast with `p_value_leap` and `leap_anomaly`.
        """
        panel = self._newer(df)
        first = self._first_cutoffs(panel, 0)
        return detect(self._predictor_of(panel), panel, first, alias=self.alias, alert_rate=alert_rate, fdr=fdr)

    def explain(self, df: Any = None) -> "Explanation":
        """Explain the forecast of every series: each value as an exact sum, and what each part depends on.

        Args:
            df: History to forecast from, as for `predict`; by default the data of the fit.
        """
        from leapts.explanation.compute import explain  # the layer above imports this one

        panel = self.predictor_.tail if df is None else self._input(df, self.predictor_)
        return explain(self._explained_by, panel, self.alias)

    def _explained_by(self, panel: Panel) -> Predictor:  # noqa: ARG002 - a pretrained model makes one for the data
        if self.predictor_.covariates is not None:
            raise ConfigError("explanations and do= are not supported yet with covariates; fit without them")
        return self.predictor_

    def _under(self, do: Mapping[str, Any]) -> "Callable[..., Forecast]":
        """Return the function that forecasts with decisions changed."""
        from leapts.explanation.interventions import predict_under

        return partial(predict_under, self._explained_by(self.predictor_.tail), do)

    def _newer(self, df: Any) -> Panel:
        """Read data that the model may be checked on."""
        panel = self._input(df, self.predictor_)
        self.predictor_.require_frequency(panel)
        return self.predictor_.require_usable(panel)

    def _predictor_of(self, panel: Panel) -> Predictor:  # noqa: ARG002 - a pretrained model makes one for the data
        return self.predictor_

    def _first_cutoffs(self, panel: Panel, share: float) -> Int64[Tensor, " series"]:  # noqa: ARG002
        """Count the values before the first window of each series: those of the fit, and a look-back."""
        return steps_known(self.predictor_, panel).maximum(min_history(self.predictor_, panel))
