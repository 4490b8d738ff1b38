"""Forecasting the past as if it were not known yet."""

from collections.abc import Callable, Sequence
from typing import Any

import narwhals as nw
import numpy as np
import torch

from leapts.data.frames import long_frame
from leapts.data.panel import Panel
from leapts.forecasting.intervals import Level, coverage, interval_bounds
from leapts.forecasting.predictor import Fitted, PanelForecast

Columns = dict[str, np.ndarray[Any, Any]]

CUTOFF = "cutoff"  # the column of a back-test's cutoffs


def cutoffs(h: int, n_windows: int, step: int) -> range:
    """For each window, the earliest first, how many steps of every series come after its cutoff."""
    return range(h + step * (n_windows - 1), h - 1, -step)


def backtest(
    panel: Panel,
    h: int,
    n_windows: int,
    step: int,
    *,
    fit: Callable[[Panel], Fitted],
    refit: bool,
    columns: Callable[[Fitted, PanelForecast], Columns],
) -> Any:
    """Forecast from `n_windows` cutoffs, `step` apart, the last of them `h` before the end.

    Returns:
        A frame: series, timestamp, cutoff, the actual value, and the columns given for each forecast.
    """
    fitted: Fitted | None = None
    timestamps, blocks = [], list[Columns]()
    for back in cutoffs(h, n_windows, step):
        if fitted is None or refit:
            fitted = fit(panel.head(-back))
        # A forecast looks no further back; to copy all that is known would cost the whole history for every window.
        forecast = fitted.forecast(panel.slice(-back - fitted.config.input_size, -back))
        timestamps.append(panel.future_timestamps(h, back=back).reshape(-1))
        blocks.append(
            {
                CUTOFF: np.repeat(panel.last(back=back), h),
                panel.style.target_col: panel.slice(-back, h - back or None).values.numpy(),
                **{name: values.reshape(-1) for name, values in columns(fitted, forecast).items()},
            }
        )
    series = np.tile(np.repeat(np.arange(len(panel)), h), n_windows)
    # Series by series, each with its cutoffs in order.
    order = np.argsort(series, kind="stable")
    merged = {name: np.concatenate([block[name] for block in blocks])[order] for name in blocks[0]}
    return long_frame(panel, series[order], np.concatenate(timestamps)[order], merged)


def coverage_reached(frame: Any, levels: Sequence[Level], alias: str, target_col: str) -> dict[Level, float]:
    """For each level, the share of a back-test's actual values that lie inside their interval."""
    table = nw.from_native(frame, eager_only=True)

    def values(column: str) -> torch.Tensor:
        return torch.from_numpy(np.array(table.get_column(column).to_numpy(), dtype=np.float64))

    actual = values(target_col)
    sides = {(bound.level, bound.side): bound.column for bound in interval_bounds(levels, alias)}
    return {
        level: coverage(values(sides[level, -1]), values(sides[level, 1]), actual)
        for level in sorted({level for level, _ in sides})
    }
