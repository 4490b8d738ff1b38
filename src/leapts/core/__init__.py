"""The paper, in torch alone: no frames, no files, no logging."""

from leapts.core.clusters import cluster_variates
from leapts.core.model import Forecast, LeapTSModel, WindowShape
from leapts.core.scales import ScaleGrid
from leapts.core.trace import ScheduleTrace

__all__ = ["Forecast", "LeapTSModel", "ScaleGrid", "ScheduleTrace", "WindowShape", "cluster_variates"]
