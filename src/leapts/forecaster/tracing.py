"""The trace as a frame: one row for each leap."""

from typing import Any

import numpy as np
import numpy.typing as npt

from leapts.core import ScheduleTrace
from leapts.core.scales import SCALE_NAMES
from leapts.data.frames import long_frame
from leapts.errors import ConfigError
from leapts.forecaster.fitted import PanelForecast


def trace_frame(forecast: PanelForecast) -> Any:
    """Series, cutoff, and for each leap its place in the horizon, scale, probabilities and contributions.

    `start` counts from 0 inside the horizon, `end` is exclusive; `control` and `temporal` are the sums of absolute
    changes of the state that the control signal and time brought about.

    Raises:
        ConfigError: When the model has no scheduling branch, and so takes no leaps.
    """
    trace = forecast.trace
    if trace is None:
        raise ConfigError("this model has no scheduling branch, so there are no leaps to trace")
    series, columns = leap_columns(trace)
    return long_frame(forecast.panel, series, forecast.panel.last()[series], columns, time_name="cutoff")


def leap_columns(trace: ScheduleTrace) -> tuple[npt.NDArray[np.int64], dict[str, npt.NDArray[Any]]]:
    """For each leap of a trace the row it belongs to, and the columns that describe it."""
    taken = trace.taken
    row, leap = (index.numpy() for index in taken.nonzero(as_tuple=True))
    start, length = trace.start[taken].numpy(), trace.length[taken].numpy()
    names = np.array(trace.scale_names)
    probabilities = dict(zip(trace.scale_names, trace.probabilities[taken].T.numpy(), strict=True))
    return row, {
        "leap": leap,
        "start": start,
        "end": start + length,
        "scale": names[trace.scale[taken].numpy()],
        "length": length,
        **{f"p_{name}": probabilities.get(name, np.zeros(len(leap), np.float32)) for name in SCALE_NAMES},
        "control": trace.control[taken].numpy(),
        "temporal": trace.temporal[taken].numpy(),
    }
