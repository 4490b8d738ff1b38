"""A panel of waves as a folder of Parquet files that cut through its series, and a model fitted to some of them."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from leapts import LeapTS
from tests.scaleout.folders import Folders


@pytest.fixture(scope="session")
def table() -> pa.Table:
    """Forty daily series of 60 to 99 steps, shuffled: no file holds a whole series."""
    luck = np.random.default_rng(1)
    rows = [(f"s{number}", day, np.sin(day / 7 + number) + number) for number in range(40) for day in range(60 + number)]
    luck.shuffle(rows)
    names, days, values = zip(*rows, strict=True)
    stamps = np.datetime64("2024-01-01", "us") + np.array(days) * np.timedelta64(1, "D")
    return pa.table({"unique_id": names, "ds": stamps, "y": values})


@pytest.fixture(scope="session")
def folders(table: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> Folders:
    root = tmp_path_factory.mktemp("scaleout")
    data, model = root / "data", root / "model"
    data.mkdir()
    size = -(-table.num_rows // 4)
    for number in range(4):
        pa.parquet.write_table(table.slice(number * size, size), data / f"{number}.parquet")
    LeapTS(6, 12, max_steps=4).fit(table).save(model)
    return Folders(data, model)
