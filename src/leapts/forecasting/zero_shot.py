"""LeapTS-Zero: forecasts without training, by a universal network that was trained on many kinds of series."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from jaxtyping import Int64
from torch import Tensor

from leapts.data.panel import Panel
from leapts.errors import ConfigError
from leapts.forecasting.estimator import LeapTS
from leapts.forecasting.networks import WEIGHTS, load_universal, training_facts
from leapts.forecasting.predictor import Predictor
from leapts.forecasting.pretrained import zero_shot_predictor

if TYPE_CHECKING:
    from leapts.explanation.ledger import Explanation

__all__ = ["WEIGHTS", "ZeroShotLeapTS", "load_universal", "training_facts"]


class ZeroShotLeapTS(LeapTS):
    """`LeapTS.pretrained`: forecasts any series at once; `fit` only takes note of the series.

    A saved one is loaded as `LeapTS(init="pretrained")`, whose `fit` and `update` fine-tune.
    """

    def _train(self, panel: Panel, **options: Any) -> Predictor:  # noqa: ARG002
        return zero_shot_predictor(panel, self.fit_config())

    def _explained_by(self, panel: Panel) -> Predictor:
        return self.predictor_ if self._has_learned else self._train(panel)

    def explain(self, df: Any = None) -> "Explanation":
        """Explain the forecast of every series of a frame, as `LeapTS.explain` does."""
        return super().explain(df) if df is None or self._has_learned else self.fit(df).explain()

    def predict(self, df: Any = None, **options: Any) -> Any:
        """Forecast the steps after the end of every series of a frame, as `LeapTS.predict` does."""
        if options.get("futr_df") is not None or options.get("static_df") is not None:
            raise ConfigError("the pretrained model does not use covariates yet; leave futr_df and static_df out")
        if df is None or self._has_learned:
            return super().predict(df, **options)
        return self.fit(df).predict(None, **options)

    def _newer(self, df: Any) -> Panel:
        return self._input(df)

    def _predictor_of(self, panel: Panel) -> Predictor:
        if self._has_learned and self.report_.steps:
            return self.predictor_
        # Limits found in all of the data would let a forecast see what follows it.
        limits = "real" if self.support == "auto" else self.support
        made = zero_shot_predictor(panel, self.fit_config().model_copy(update={"support": limits}))
        own = self._predictor.calibration if hasattr(self, "_predictor") else None
        return made if own is None else replace(made, calibration=own.of_last_group())

    def _first_cutoffs(self, panel: Panel, share: float) -> Int64[Tensor, " series"]:
        return (panel.lengths * share).long().clamp(min=self.fit_config().h)

    @property
    def _has_learned(self) -> bool:
        """Whether the model was updated or calibrated, which a fit to other series would undo."""
        fitted = self.__dict__.get("_predictor")
        return fitted is not None and (fitted.calibration is not None or fitted.report.steps > 0)
