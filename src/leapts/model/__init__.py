"""The network of the paper in torch alone: no data frames, no files, no logging."""

from leapts.model.clusters import cluster_series
from leapts.model.network import Forecast, LeapTSModel, WindowShape
from leapts.model.schedulers import ScaleGrid
from leapts.model.trace import ScheduleTrace
from leapts.renamed import renamed_attribute

__all__ = ["Forecast", "LeapTSModel", "ScaleGrid", "ScheduleTrace", "WindowShape", "cluster_series"]
__getattr__ = renamed_attribute(__name__, {"cluster_variates": "cluster_series"})
