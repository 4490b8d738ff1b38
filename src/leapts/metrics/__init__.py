"""How good a forecast is: MSE, MAE, RMSE, SMAPE, MAPE, MASE and OWA, on arrays and on frames.

Every metric is defined once, by the term it takes the mean of (`formulas`). The functions named after the metrics score
arrays or tensors as one; `evaluate` scores the columns of a long frame series by series. SMAPE and MAPE are in percent.

Where a denominator is zero:

- SMAPE: a forecast of 0 for an actual 0 is exact, and counts as 0.
- MAPE: actual zeros are left out. Where nothing remains the result is `inf`.
- MASE: a series without in-sample error (constant, or no longer than a season) has scale 0. Its result is `inf`, or 0
  for an exact forecast.

`evaluate` leaves series that have no scale to be measured by out of the overall figures, for all models alike, and says
how many they were.
"""

from leapts.metrics.evaluation import Evaluation, MetricName, evaluate
from leapts.metrics.formulas import mae, mape, mase, mse, naive_scale, owa, rmse, smape

__all__ = [
    "Evaluation",
    "MetricName",
    "evaluate",
    "mae",
    "mape",
    "mase",
    "mse",
    "naive_scale",
    "owa",
    "rmse",
    "smape",
]
