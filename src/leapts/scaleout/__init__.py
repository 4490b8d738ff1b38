"""Forecasting more series than one process should: one function of a partition, and engines that run it."""

from leapts.scaleout.partitions import PartitionForecaster, predict_partition

__all__ = ["PartitionForecaster", "predict_partition"]
