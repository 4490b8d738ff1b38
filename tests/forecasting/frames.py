"""Small frames to fit on, and a model that fits them in a moment."""

from typing import Any

import numpy as np
import pandas as pd

from leapts import LeapTS

H, LOOKBACK = 6, 12


def make_frame(lengths: dict[str, int] | None = None, *, seed: int = 0, start: str = "2024-01-01") -> pd.DataFrame:
    """Noisy waves, one for each name, ending on the same day where their lengths agree."""
    rng = np.random.default_rng(seed)
    frames = []
    for number, (name, length) in enumerate((lengths or {"a": 160, "b": 160, "c": 160}).items()):
        time = np.arange(length)
        y = (number + 1) * (10 + np.sin(time / (2 + number)) + 0.1 * rng.normal(size=length))
        frames.append(pd.DataFrame({"unique_id": name, "ds": pd.date_range(start, periods=length), "y": y}))
    return pd.concat(frames, ignore_index=True)


def make_forecaster(**options: Any) -> LeapTS:
    """A forecaster that trains for a moment only."""
    given: dict[str, Any] = {"input_size": LOOKBACK, "max_steps": 30, "batch_size": 16, **options}
    return LeapTS(given.pop("h", H), **given)


MULTIVARIATE: dict[str, Any] = {"model": {"mixing": {"kind": "mlp"}, "series_embedding": True, "hidden_size": 16}}
UNIVARIATE: dict[str, Any] = {"model": {"mixing": {"kind": "none"}, "hidden_size": 16}}
