"""Backtesting: forecast the past as if it were not known yet."""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import narwhals as nw
import numpy as np

from leapts.config import FitConfig
from leapts.data.frames import long_frame
from leapts.data.panel import Panel
from leapts.data.validation import require_length
from leapts.errors import ConfigError
from leapts.forecasting.forecast import require_intervals
from leapts.forecasting.intervals import Level, interval_bounds
from leapts.forecasting.metrics import coverage, weighted_quantile_loss, width
from leapts.forecasting.predictor import Predictor
from leapts.forecasting.trace_frame import CUTOFF
from leapts.messages import counted


def steps_after_cutoffs(h: int, n_windows: int, step: int) -> range:
    """Number of steps after the cutoff of each window, from the earliest window to the latest."""
    return range(h + step * (n_windows - 1), h - 1, -step)


@dataclass(frozen=True)
class Backtest:
    """Windows to forecast: `n_windows` cutoffs, `step` apart, the last of them a horizon before the end."""

    config: FitConfig
    n_windows: int
    step: int
    levels: Sequence[Level]
    _: KW_ONLY
    refit: bool

    def __post_init__(self) -> None:
        if self.n_windows < 1 or self.step < 1:
            raise ConfigError(f"n_windows={self.n_windows} and step_size={self.step} must be at least 1")
        # Impossible levels are refused before the fit.
        if (
            interval_bounds(self.levels, self.config.alias)
            and self.config.loss == "huber"
            and self.config.val_size == 0
        ):
            require_intervals([0.5], None)

    def run(self, panel: Panel, fit: Callable[[Panel], Predictor]) -> Any:
        """Forecast from every cutoff.

        Args:
            panel: The data, without values that were imputed from later ones.
            fit: Fits a model to the data before a cutoff.

        Returns:
            A frame: series, timestamp, cutoff, the actual value, the forecast and its prediction intervals.
        """
        h, n_windows, style = self.config.h, self.n_windows, panel.style
        if CUTOFF in (style.id_col, style.time_col, style.target_col):
            raise ConfigError(f"a backtest has its own column {CUTOFF!r}; rename that column of the data")
        needed = 2 * h + self.step * (n_windows - 1) + 2
        purpose = f"a backtest with {counted(n_windows, 'window')} of {h} steps and a training part"
        require_length(panel, needed, purpose, hint="ask for fewer windows or a shorter horizon")
        predictor: Predictor | None = None
        timestamps, blocks = [], list[dict[str, np.ndarray[Any, Any]]]()
        for after in steps_after_cutoffs(h, n_windows, self.step):
            if predictor is None or self.refit:
                predictor = fit(panel.head(-after))
            # Only the look-back is cut out: a copy of the whole history for every window would cost far more.
            windows = predictor.windows(panel.slice(-after - predictor.config.input_size, -after))
            forecast = predictor.predict(windows, quantiles=bool(self.levels))
            columns = forecast.columns(self.levels, alias=self.config.alias)
            timestamps.append(panel.future_timestamps(h, back=after).reshape(-1))
            blocks.append(
                {
                    CUTOFF: np.repeat(panel.last(back=after), h),
                    style.target_col: panel.slice(-after, h - after or None).values.numpy(),
                    **{name: values.reshape(-1) for name, values in columns.items()},
                }
            )
        series = np.tile(np.repeat(np.arange(len(panel)), h), n_windows)
        order = np.argsort(series, kind="stable")  # series by series, each with its cutoffs in order
        merged = {name: np.concatenate([block[name] for block in blocks])[order] for name in blocks[0]}
        return long_frame(panel, series[order], np.concatenate(timestamps)[order], merged)


@dataclass(frozen=True)
class IntervalScores:
    """Scores of the prediction intervals of a backtest."""

    coverage: dict[Level, float]  # share of actual values inside the interval of each level
    width: dict[Level, float]  # mean width of the intervals of each level, in the units of the data
    wql: float  # weighted quantile loss of the ends of all intervals and the point forecast


def interval_scores(frame: Any, levels: Sequence[Level], alias: str, target_col: str) -> IntervalScores:
    """Compute the scores of the prediction intervals in the frame of a backtest."""
    table = nw.from_native(frame, eager_only=True)
    bounds = interval_bounds(levels, alias)
    values = {
        column: table.get_column(column).to_numpy() for column in (target_col, alias, *(b.column for b in bounds))
    }
    actual, sides = values[target_col], {(bound.level, bound.side): values[bound.column] for bound in bounds}
    ends = {level: (sides[level, -1], sides[level, 1]) for level in sorted({level for level, _ in sides})}
    quantiles = {0.5: values[alias], **{bound.quantile: values[bound.column] for bound in bounds}}
    return IntervalScores(
        coverage={level: coverage(actual, *pair) for level, pair in ends.items()},
        width={level: width(*pair) for level, pair in ends.items()},
        wql=weighted_quantile_loss(actual, quantiles),
    )
