"""LeapTS as a forecasting model of fev, on tasks of fev-bench or of your own.

Importing this module registers the model in fev as `leapts`.
"""

import warnings
from typing import Any

import pandas as pd

from leapts.forecasting import LeapTS
from leapts.integrations.quantiles import quantile_arrays

try:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import fev
except ImportError as error:
    raise ImportError("the fev integration needs: pip install 'leapts[fev]'") from error


class LeapTSModel(fev.ForecastingModel):
    """LeapTS for fev: fitted once to the past of the first window, it forecasts every window from its own past.

    Options that are not given are chosen from the data. Missing values are filled with the last value before them,
    series shorter than a window are padded. Several targets are several series; covariates are not used.

    Args:
        options: Options of `leapts.LeapTS`, such as `input_size`, `max_steps` and `random_seed`.
    """

    model_name = "leapts"

    def __init__(self, **options: Any) -> None:
        super().__init__()
        LeapTS(1, **options)  # refuses an unknown option before the data are read
        self.options = options

    def _fit_predict(self, task: fev.Task) -> list[Any]:
        model, predictions = None, []
        keys = ["predictions", *map(str, task.quantile_levels)]
        for window in task.iter_windows():
            past, *_ = fev.convert_input_data(window)
            history = _series(past, task)
            if model is None:
                options = {"fill": "ffill", **self.options}
                with self._record_training_time():
                    model = LeapTS(task.horizon, **options).fit(history, progress=None)
            with self._record_inference_time():
                arrays = quantile_arrays(model, history, task.quantile_levels)
            rows = [dict(zip(keys, arrays[name], strict=True)) for name in history["unique_id"].unique()]
            predictions.append(fev.combine_univariate_predictions_to_multivariate(rows, task.target_columns))
        return predictions


def _series(past: pd.DataFrame, task: fev.Task) -> pd.DataFrame:
    """Make each target of each item a series, the targets of an item one after the other."""
    first, columns = len(task.target_columns) * past.groupby(task.id_column, sort=False).ngroup(), ["ds", "y"]
    series = [
        past[[task.timestamp_column, target]].set_axis(columns, axis=1).assign(unique_id=first + number)
        for number, target in enumerate(task.target_columns)
    ]
    return pd.concat(series).sort_values("unique_id", kind="stable")
