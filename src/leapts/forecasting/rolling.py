"""Rolling forecasts of known data: each forecast uses only values before its cutoff."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float64, Int64
from torch import Tensor

from leapts.data.panel import Panel
from leapts.errors import DataError
from leapts.forecasting.forecast import Forecast
from leapts.forecasting.predictor import Predictor
from leapts.model.network import Record

_PER_PASS = 2**22  # values of windows that are cut at a time: 32 MiB


@dataclass(frozen=True, eq=False)
class Cutoffs:
    """Places in a panel to forecast from, series after series, each in the order of time."""

    series: Int64[Tensor, " cutoffs"]
    steps: Int64[Tensor, " cutoffs"]  # values of the series before the cutoff

    @classmethod
    def every(
        cls, step: int, first: Int64[Tensor, " series"], last: Int64[Tensor, " series"], limit: int | None = None
    ) -> "Cutoffs":
        """Take every `step`-th place, counted back from the last one of each series; at most `limit` of each."""
        counts = torch.where(last >= first, (last - first).div(step, rounding_mode="floor") + 1, 0)
        counts = counts if limit is None else counts.clamp(max=limit)
        series = torch.arange(len(counts)).repeat_interleave(counts)
        number = torch.arange(len(series)) - (counts.cumsum(0) - counts)[series]
        return cls(series, last[series] - step * (counts[series] - 1 - number))

    def __len__(self) -> int:
        return len(self.series)

    def rows(self, panel: Panel, h: int) -> Int64[Tensor, "cutoffs h"]:
        """Find the rows of the `h` values after each cutoff in the values of a panel."""
        return (panel.offsets[self.series] + self.steps)[:, None] + torch.arange(h)


def steps_known(predictor: Predictor, panel: Panel) -> Int64[Tensor, " series"]:
    """Count the values of each series up to the end of the fit's data; 0 for an unseen series.

    Raises:
        DataError: When the timestamps are of another kind than those of the fit.
    """
    places, last, timestamps = predictor.places_of(panel.series), predictor.tail.last(), panel.timestamps()
    if last.dtype.kind != timestamps.dtype.kind:
        raise DataError("the timestamps are of another kind than those of the fit; give dates for dates, or integers")
    ends = np.repeat(last[places.numpy()], panel.lengths.numpy())
    before = torch.from_numpy(np.concatenate([[0], np.cumsum(timestamps <= ends)]))
    counts = before[panel.offsets[1:]] - before[panel.offsets[:-1]]
    return torch.where(places < 0, 0, counts)


def min_history(predictor: Predictor, panel: Panel) -> Int64[Tensor, " series"]:
    """Count the values that each series needs before a cutoff: a look-back, or for short series a horizon."""
    steps, h = predictor.config.input_size, predictor.config.h
    if predictor.is_multivariate or not predictor.pad_short:
        return torch.full_like(panel.lengths, steps)
    return torch.where(panel.lengths >= steps + h, steps, min(steps, h))


def forecasts_at(
    predictor: Predictor, panel: Panel, cutoffs: Cutoffs, record: Record = "nothing"
) -> Iterator[tuple[Int64[Tensor, " some"], Forecast]]:
    """Forecast from each cutoff; yield indexes of some cutoffs, and their forecasts.

    Imputed values do not come from later ones. A row of a forecast is one cutoff.
    """
    panel, steps = panel.without_lookahead(), predictor.config.input_size
    if predictor.is_multivariate:  # all series have the same cutoffs
        each = cutoffs.steps.view(len(panel), -1)
        for number, index in enumerate(torch.arange(len(cutoffs)).view(each.shape).unbind(1)):
            end = int(each[0, number])
            forecast = predictor.predict(predictor.windows(panel.slice(max(0, end - steps), end)), record)
            yield index, forecast.select(panel.series)
        return
    for index in torch.arange(len(cutoffs)).split(max(1, _PER_PASS // steps)):
        series, ends = cutoffs.series[index], cutoffs.steps[index]
        lengths = ends.clamp(max=steps)
        windows = panel.cut(series, ends - lengths, lengths)
        yield index, predictor.predict(predictor.windows(windows), record)


def targets(panel: Panel, cutoffs: Cutoffs, h: int) -> Float64[Tensor, "cutoffs h"]:
    """Return the values after each cutoff."""
    return panel.values[cutoffs.rows(panel, h)]
