"""A forecast on its way: windows ready for the network, and what comes out of it, in the units of the data."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float64, Int64
from torch import Tensor

from leapts.data.arrays import Floats, Name
from leapts.data.frames import forecast_frame
from leapts.data.panel import Panel
from leapts.data.windows import WindowBatch
from leapts.errors import ConfigError
from leapts.forecasting.intervals import ConformalScores, Level, requested_bounds, require_scores
from leapts.forecasting.trace_frame import Trace, trace_frame
from leapts.model import ScheduleTrace


@dataclass(frozen=True, eq=False, kw_only=True)
class ForecastWindows:
    """The last look-back of every series, scaled for the network."""

    panel: Panel  # series, in the order of the rows
    batch: WindowBatch  # scaled look-backs; without targets
    center: Float64[Tensor, " rows"]  # value that was subtracted from each row
    scale: Float64[Tensor, " rows"]  # standard deviation that each row was divided by
    groups: Int64[Tensor, " rows"]  # group of calibration scores of each row

    def __len__(self) -> int:
        return len(self.center)


@dataclass(frozen=True, eq=False, kw_only=True)
class Forecast:
    """Forecasts of every series of a panel, in the units of the data."""

    panel: Panel  # series; a multivariate model forecasts them in its own order
    values: Float64[Tensor, "series h"]  # point forecasts
    coarse: Float64[Tensor, "series h"] | None  # coarse forecasts; recorded together with the trace
    scale: Float64[Tensor, " series"]  # standard deviation of each series, the unit of its calibration scores
    groups: Int64[Tensor, " series"]  # group of calibration scores of each series
    trace: ScheduleTrace | None  # leaps, if recorded and if the model has a scheduler
    scores: ConformalScores | None  # calibration scores of the model

    def columns(
        self, level: Sequence[Level] | None = None, quantiles: Sequence[float] | None = None, alias: str = "LeapTS"
    ) -> dict[str, Floats]:
        """Compute the point forecast and its intervals or quantiles, by column, as [series, h].

        Raises:
            ConfigError: When a level is impossible, or no windows were held out to calibrate intervals.
            DataError: When too few windows were held out for a level.
        """
        columns = {alias: self.values}
        if bounds := requested_bounds(level, quantiles, alias):
            columns |= require_scores(self.scores).around(self.values, self.scale, bounds, self.groups)
        return {name: values.numpy() for name, values in columns.items()}

    def to_frame(
        self, level: Sequence[Level] | None = None, quantiles: Sequence[float] | None = None, alias: str = "LeapTS"
    ) -> Any:
        """Build a frame with a row for each series and step: timestamps, forecasts, intervals.

        Args:
            level: Prediction intervals, in percent: `[80, 95]`.
            quantiles: Quantiles instead of intervals: `[0.1, 0.9]`.
            alias: Name of the column of forecasts.
        """
        return forecast_frame(self.panel, self.columns(level, quantiles, alias), self.values.shape[1])

    def to_trace(self) -> Trace:
        """Build the trace: one row for each leap.

        Raises:
            ConfigError: When the model has no scheduler.
        """
        if self.trace is None:
            raise ConfigError("this model has no scheduling branch, so there are no leaps to trace")
        return trace_frame(self.panel, self.trace)

    def select(self, series: Sequence[Name]) -> "Forecast":
        """Select the forecasts of some series, in the order given."""
        if tuple(series) == self.panel.series:
            return self
        place = {name: index for index, name in enumerate(self.panel.series)}
        rows = torch.tensor([place[name] for name in series], dtype=torch.int64)
        return replace(
            self,
            panel=self.panel.select(series),
            values=self.values[rows],
            coarse=None if self.coarse is None else self.coarse[rows],
            scale=self.scale[rows],
            groups=self.groups[rows],
            trace=None if self.trace is None else self.trace.arranged(lambda x: x[rows]),
        )
