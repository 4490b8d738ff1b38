"""Quantiles as arrays, for the adapters to GluonTS and fev."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from leapts.data.arrays import Floats
from leapts.forecasting import LeapTS


def quantile_arrays(model: LeapTS, history: pd.DataFrame, levels: Sequence[float]) -> dict[Any, Floats]:
    """Forecast all series of a frame: by name, an array with a row for the point forecast and one for each level."""
    frame = model.predict(history, quantiles=list(levels) or None)
    values = frame.iloc[:, -len(levels) - 1 :].to_numpy("float64").reshape(-1, model.h, len(levels) + 1)
    return dict(zip(frame[model.id_col].iloc[:: model.h], values.swapaxes(1, 2), strict=True))
