"""Forecast and tune on a Ray cluster; Spark uses the same partition function."""

from leapts.integrations.ray.partitions import PartitionForecaster, predict_partition

__all__ = ["PartitionForecaster", "predict_partition"]
