"""Forecasting the past as if it were not known yet."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from leapts.data.frames import long_frame
from leapts.data.panel import Panel
from leapts.forecaster.fitted import Fitted, PanelForecast

Columns = dict[str, np.ndarray[Any, Any]]


def cutoffs(panel: Panel, h: int, n_windows: int, step: int) -> Iterator[tuple[Panel, Panel]]:
    """For each window, the earliest first: what is known at its cutoff, and the `h` steps ahead of it."""
    for window in range(n_windows):
        after = step * (n_windows - 1 - window)
        yield panel.head(-(h + after)), panel.tail(h + after).head(h)


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
        A frame: series, stamp, cutoff, the actual value, and the columns given for each forecast.
    """
    fitted: Fitted | None = None
    blocks: list[Columns] = []
    for known, ahead in cutoffs(panel, h, n_windows, step):
        if fitted is None or refit:
            fitted = fit(known)
        forecast = fitted.forecast(known)
        count = len(panel)
        blocks.append(
            {
                "series": np.repeat(np.arange(count), h),
                "stamps": ahead.stamps(),
                "cutoff": np.repeat(known.last(), h),
                panel.style.target_col: ahead.values.numpy(),
                **{name: values.reshape(-1) for name, values in columns(fitted, forecast).items()},
            }
        )
    merged = {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}
    # Series by series, each with its cutoffs in order.
    order = np.argsort(merged["series"], kind="stable")
    merged = {name: values[order] for name, values in merged.items()}
    return long_frame(panel, merged.pop("series"), merged.pop("stamps"), merged)
