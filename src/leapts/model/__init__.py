"""The network of the paper in torch alone: no data frames, no files, no logging."""

import warnings

from torch import Generator, Tensor

from leapts.model.clusters import cluster_series
from leapts.model.network import Forecast, LeapTSModel, WindowShape
from leapts.model.schedulers import ScaleGrid
from leapts.model.trace import ScheduleTrace

__all__ = ["Forecast", "LeapTSModel", "ScaleGrid", "ScheduleTrace", "WindowShape", "cluster_series"]


def cluster_variates(series: Tensor, clusters: int, generator: Generator) -> Tensor:
    """Call `cluster_series` by its name of release 0.1."""
    warnings.warn("cluster_variates is now cluster_series", DeprecationWarning, stacklevel=2)
    return cluster_series(series, clusters, generator)
