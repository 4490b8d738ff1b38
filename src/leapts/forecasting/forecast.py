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
from leapts.data.scaling import Scaler, Support
from leapts.data.windows import WindowBatch
from leapts.errors import ConfigError
from leapts.forecasting.intervals import Calibration, Level, requested_bounds, values_of
from leapts.forecasting.samples import Scores, draw_paths
from leapts.forecasting.trace_frame import Trace, trace_frame
from leapts.messages import counted
from leapts.model import ScheduleTrace


@dataclass(frozen=True, eq=False, kw_only=True)
class ForecastWindows:
    """The last look-back of every series, scaled for the network."""

    panel: Panel  # series, in the order of the rows
    batch: WindowBatch  # scaled look-backs; without targets
    scaler: Scaler  # value that was subtracted from each row, and standard deviation it was divided by
    groups: Int64[Tensor, " rows"]  # group of each row in the calibration
    support: Support  # values that can occur in each row

    def __len__(self) -> int:
        return len(self.groups)


MAX_SAMPLES = 100_000  # sample paths; each is a column of a frame
MAX_SAMPLE_VALUES = 10**8  # of all sample paths of a forecast, 800 MB


@dataclass(frozen=True)
class Samples:
    """Sample paths to draw."""

    number: int
    seed: int

    def __post_init__(self) -> None:
        if not 0 <= self.number <= MAX_SAMPLES:
            raise ConfigError(f"n_samples={self.number}: must be from 0 to {MAX_SAMPLES:,}")
        if not 0 <= self.seed < 2**63:
            raise ConfigError(f"random_seed={self.seed}: must be at least 0 and below 2**63")


@dataclass(frozen=True, eq=False, kw_only=True)
class Forecast:
    """Forecasts of every series of a panel, in the units of the data."""

    panel: Panel  # series; a multivariate model forecasts them in its own order
    values: Float64[Tensor, "series h"]  # point forecasts: the median, if the model learned quantiles
    quantiles: Float64[Tensor, "series h quantiles"]  # as the network gave them; of a point forecast, the point alone
    coarse: Float64[Tensor, "series h"] | None  # coarse forecasts; recorded together with the trace
    scale: Float64[Tensor, " series"]  # standard deviation of each series, the unit of its calibration
    groups: Int64[Tensor, " series"]  # group of each series in the calibration
    support: Support  # values that can occur in each series
    trace: ScheduleTrace | None  # leaps, if recorded and if the model has a scheduler
    levels: tuple[float, ...]  # of the quantiles
    calibration: Calibration | None  # corrections of the quantiles, from held-out windows
    scores: Scores | None  # normal scores of held-out targets, for sample paths
    known: tuple[str, ...] = ()  # names of the known-future covariates that the model uses

    def columns(
        self,
        level: Sequence[Level] | None = None,
        quantiles: Sequence[float] | None = None,
        alias: str = "LeapTS",
        samples: Samples | None = None,
    ) -> dict[str, Floats]:
        """Compute the point forecast, its intervals or quantiles, and sample paths, by column, as [series, h].

        Raises:
            ConfigError: When a level is impossible, or the model forecasts points and has no calibration.
        """
        columns = {alias: self.values}
        if bounds := requested_bounds(level, quantiles, alias):
            known, levels = self.calibrated()
            found = self.support.clip(values_of(bounds, known, levels))
            columns |= {one.column: values for one, values in zip(bounds, found.unbind(2), strict=True)}
        if samples is not None and samples.number:
            paths = self.sample_paths(samples).unbind(2)
            columns |= {f"{alias}-sample-{number}": path for number, path in enumerate(paths, 1)}
        return {name: values.numpy() for name, values in columns.items()}

    def sample_paths(self, samples: Samples) -> Float64[Tensor, "series h samples"]:
        """Draw sample paths, whose steps depend on each other as on held-out windows.

        Raises:
            ConfigError: When the model forecasts points and has no calibration, or the paths are too many to hold.
        """
        if self.values.numel() * samples.number > MAX_SAMPLE_VALUES:
            raise ConfigError(
                f"n_samples={samples.number}: the paths of {counted(len(self.values), 'series')} have more than "
                f"{MAX_SAMPLE_VALUES:,} values; ask for fewer, or forecast fewer series at a time"
            )
        known, levels = self.calibrated()
        return self.support.clip(draw_paths(known, levels, self.scores, count=samples.number, seed=samples.seed))

    def calibrated(self) -> tuple[Float64[Tensor, "series h quantiles"], tuple[float, ...]]:
        """Correct the quantiles by the calibration, if there is one; return them and their levels.

        Raises:
            ConfigError: When the model forecasts points and has no calibration.
        """
        require_intervals(self.levels, self.calibration)
        if self.calibration is None:
            return self.quantiles, self.levels
        unit, point = self.scale.view(-1, 1, 1), self.values.unsqueeze(-1)
        corrected = self.calibration.correct((self.quantiles - point) / unit, self.groups)
        return corrected * unit + point, self.calibration.levels

    def to_frame(
        self,
        level: Sequence[Level] | None = None,
        quantiles: Sequence[float] | None = None,
        alias: str = "LeapTS",
        samples: Samples | None = None,
    ) -> Any:
        """Build a frame with a row for each series and step: timestamps, forecasts, intervals.

        Args:
            level: Prediction intervals, in percent: `[80, 95]`.
            quantiles: Quantiles instead of intervals: `[0.1, 0.9]`.
            alias: Name of the column of forecasts.
            samples: Number and seed of sample paths.
        """
        return forecast_frame(self.panel, self.columns(level, quantiles, alias, samples), self.values.shape[1])

    def to_trace(self) -> Trace:
        """Build the trace: one row for each leap.

        Raises:
            ConfigError: When the model has no scheduler.
        """
        if self.trace is None:
            raise ConfigError("this model has no scheduling branch, so there are no leaps to trace")
        return trace_frame(self.panel, self.trace, self.known)

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
            quantiles=self.quantiles[rows],
            coarse=None if self.coarse is None else self.coarse[rows],
            scale=self.scale[rows],
            groups=self.groups[rows],
            support=self.support.select(rows),
            trace=None if self.trace is None else self.trace.arranged(lambda x: x[rows]),
            scores=self.scores if self.scores is None or self.scores.shape[1] == 1 else self.scores[:, rows],
        )


def require_intervals(levels: Sequence[float], calibration: Calibration | None) -> None:
    """Refuse intervals around point forecasts that were not calibrated, with a ConfigError."""
    if calibration is None and len(levels) == 1:
        raise ConfigError(
            "no windows were held out, so the point forecasts have no prediction intervals; fit with val_size=, with "
            "loss='quantile', or call calibrate(df) with newer data"
        )
