"""Folders of data and model for the tests of Ray, and comparison of forecasts."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa


class Folders(NamedTuple):
    """The folders of data and model."""

    data: Path
    model: Path


def assert_same_forecasts(one: pa.Table, other: pa.Table) -> None:
    """Compare row by row: names and timestamps exactly, values up to rounding."""
    assert one.column_names == other.column_names
    keys = one.column_names[:2]
    ours, theirs = (frame.to_pandas().sort_values(keys, ignore_index=True) for frame in (one, other))
    pd.testing.assert_frame_equal(ours[keys], theirs[keys], check_dtype=False)
    for name in one.column_names[2:]:
        np.testing.assert_allclose(ours[name], theirs[name], rtol=1e-5, atol=1e-6)
