"""How sure a forecast is, leap by leap: width of the interval, entropy of the choice, error of the scale."""

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch

from leapts.data.panel import Panel
from leapts.errors import ConfigError
from leapts.forecasting.predictor import Predictor
from leapts.forecasting.trace_frame import leap_columns
from leapts.model.schedulers import SCALE_NAMES

if TYPE_CHECKING:
    from leapts.explanation.ledger import Explanation

_MAX_WINDOWS = 2_000  # counted for each series


def leap_table(explanation: "Explanation") -> tuple[npt.NDArray[np.int64], dict[str, npt.NDArray[Any]]]:
    """Return the series of each leap, and its total, shares, entropy of choice, and width of the 80 % interval."""
    forecast, h = explanation.forecast, explanation.values.shape[1]
    if forecast is None or forecast.trace is None:
        return np.zeros(0, dtype=np.int64), {}
    row, found = leap_columns(forecast.trace)
    parts = [explanation.part(f"leap {leap}").sum(1).numpy() for leap in range(h)][: found["leap"].max() + 1]
    totals = np.stack(parts, 1)
    chances = np.stack([found[f"p_{name}"] for name in SCALE_NAMES], 1).astype(np.float64)
    change = np.maximum(found["control"] + found["temporal"], 1e-12)
    columns = {
        **{name: found[name] for name in ("leap", "start", "end", "length", "scale")},
        "total": totals[row, found["leap"]],
        "share": np.abs(totals / np.maximum(np.abs(totals).sum(1, keepdims=True), 1e-300))[row, found["leap"]],
        "entropy": -(chances * np.log2(np.maximum(chances, 1e-12))).sum(1),
        "control_share": found["control"] / change,
        "temporal_share": found["temporal"] / change,
    }
    if forecast.calibration is not None or len(forecast.levels) > 1:
        _, lower, upper = forecast.columns([80]).values()
        width = np.cumsum(np.pad(upper - lower, ((0, 0), (1, 0))), 1)
        columns["width_80"] = (width[row, found["end"]] - width[row, found["start"]]) / found["length"]
    return row, columns


def errors_by_scale(predictor: Predictor, panel: Panel) -> dict[str, tuple[float, int]]:
    """Measure the mean absolute error of the steps that each scale wrote, and count them.

    Errors are in standard deviations of each series. They say something about new data only if the panel was held out
    of the fit.

    Raises:
        ConfigError: When the model has no leaps.
        DataError: When no series has a look-back and a horizon.
    """
    h = predictor.config.h
    windows = predictor.sliding_windows(predictor.require_usable(panel))
    totals = dict.fromkeys(SCALE_NAMES, (0.0, 0))
    count = min(len(windows), max(1, _MAX_WINDOWS // (len(panel) if predictor.is_multivariate else 1)))
    chosen = torch.linspace(0, len(windows) - 1, count, dtype=torch.float64).round().long()
    for index in chosen.split(512):
        batch = windows.gather(index)
        found = predictor.run_network(batch, "leaps", quantiles=False)
        if found.trace is None:
            raise ConfigError("this model has no scheduling branch, so there are no leaps to measure")
        error = (found.values - batch.target).abs().flatten(0, 1).double()
        trace = found.trace.arranged(lambda x: x.flatten(0, 1))
        end = (trace.start + trace.length).masked_fill(~trace.taken, h + 1)
        leap = torch.searchsorted(end, torch.arange(h).expand(len(end), -1).contiguous(), right=True)
        scale = trace.scale.gather(1, leap)
        for place, name in enumerate(trace.scale_names):
            own = error[(scale == place) & ~error.isnan()]
            totals[name] = (totals[name][0] + float(own.sum()), totals[name][1] + len(own))
    return {name: (total / number, number) for name, (total, number) in totals.items() if number}
