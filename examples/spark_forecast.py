"""Forecasts of a Spark table, partition by partition.

    python examples/spark_forecast.py MODEL DATA OUT [--master local[2]]

DATA and OUT are folders of Parquet files; MODEL is what `leapts fit` wrote, where every executor finds it.
"""

import argparse

from pyspark.sql import DataFrame, SparkSession

from leapts import LeapTS
from leapts.integrations.ray import PartitionForecaster


def forecast(table: DataFrame, model: str, *, level: tuple[int, ...] = ()) -> DataFrame:
    """The forecasts of a table of whole series.

    Args:
        table: Long, with the columns the model was fitted on.
        model: The model's folder.
        level: Intervals to give, in percent.
    """
    fitted = LeapTS.load(model)
    forecaster = PartitionForecaster(model, level)
    columns = [fitted.alias, *(f"{fitted.alias}-lo-{each}" for each in sorted(level, reverse=True))]
    columns += [f"{fitted.alias}-hi-{each}" for each in sorted(level)]
    kinds = dict(table.dtypes)
    keys = [f"`{name}` {kinds[name]}" for name in (fitted.id_col, fitted.time_col)]
    schema = ", ".join([*keys, *(f"`{name}` double" for name in columns)])
    wanted = table.select(fitted.id_col, fitted.time_col, fitted.target_col)
    # By name, so that whole series come together; a partition is then forecast in one go.
    return wanted.repartition(fitted.id_col).mapInArrow(forecaster.batches, schema)


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("model", "data", "out"):
        parser.add_argument(name)
    parser.add_argument("--master", default="local[2]")
    options = parser.parse_args()
    spark = SparkSession.builder.master(options.master).getOrCreate()
    forecast(spark.read.parquet(options.data), options.model).write.parquet(options.out)
    spark.stop()


if __name__ == "__main__":
    main()
