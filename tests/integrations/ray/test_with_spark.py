"""Spark forecasts the same as one process."""

import os
import sys
from collections.abc import Iterator

import pyarrow as pa
import pytest

from leapts import LeapTS
from tests.integrations.ray.folders import Folders, assert_same_forecasts

pytest.importorskip("pyspark")
pytestmark = pytest.mark.filterwarnings("ignore")  # Spark's own

from pyspark.sql import SparkSession  # noqa: E402

from spark_forecast import forecast  # noqa: E402


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    """A local Spark session with two processors, and the Python and sources of this test."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "3",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
    }
    builder = SparkSession.builder.master("local[2]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    yield session
    session.stop()


def test_spark_forecasts_the_same_as_one_process(spark: SparkSession, table: pa.Table, folders: Folders) -> None:
    frame = spark.read.parquet(str(folders.data))
    forecasts = forecast(frame, str(folders.model), level=(80, 95))
    assert forecasts.rdd.getNumPartitions() == 3
    written = forecasts.toArrow()
    assert written.num_rows == 40 * 6
    assert_same_forecasts(written, LeapTS.load(folders.model).predict(table, level=[80, 95]))
