"""What the adapters to benchmark harnesses share: options that any data need, and quantiles as arrays."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from leapts.data.arrays import Floats
from leapts.forecasting import LeapTS


def required_options(lengths: Sequence[int]) -> dict[str, Any]:
    """Options without which data as they are would be refused: with missing values, and series of different lengths.

    Args:
        lengths: Number of values of every series.
    """
    padding = {"pad_short": True} if min(lengths) != max(lengths) else {}
    return {"fill": "ffill", **padding}


def quantile_arrays(model: LeapTS, history: pd.DataFrame, levels: Sequence[float]) -> dict[Any, Floats]:
    """Forecast all series of a frame: by name, an array with a row for the point forecast and one for each level."""
    frame = model.predict(history, quantiles=list(levels) or None)
    values = frame.iloc[:, -len(levels) - 1 :].to_numpy("float64").reshape(-1, model.h, len(levels) + 1)
    return dict(zip(frame[model.id_col].iloc[:: model.h], values.swapaxes(1, 2), strict=True))
