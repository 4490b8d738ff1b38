"""Small data and models for the stress suites."""

from typing import Any

import numpy as np
import pandas as pd

from leapts import LeapTS

H, LOOKBACK = 3, 6
TINY: dict[str, Any] = {"hidden_size": 4, "control_size": 2, "summary_size": 2, "mixing": {"kind": "none"}}


def waves(names: tuple[str, ...] = ("a", "b"), length: int = 48, *, seed: int = 0) -> pd.DataFrame:
    """Generate noisy daily waves, one for each name."""
    rng = np.random.default_rng(seed)
    time = np.arange(length)
    frames = [
        pd.DataFrame(
            {
                "unique_id": name,
                "ds": pd.date_range("2024-01-01", periods=length),
                "y": 10 + number + np.sin(time / (2 + number)) + 0.1 * rng.normal(size=length),
            }
        )
        for number, name in enumerate(names)
    ]
    return pd.concat(frames, ignore_index=True)


def forecaster(**options: Any) -> LeapTS:
    """Create a forecaster that fits quickly."""
    given: dict[str, Any] = {"input_size": LOOKBACK, "max_steps": 2, "batch_size": 8, "val_size": 9, "model": TINY}
    given |= options
    return LeapTS(given.pop("h", H), **given)
