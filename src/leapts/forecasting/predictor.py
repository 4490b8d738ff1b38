"""A fitted model with all it needs to forecast: weights, scaling, and where its series ended."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Bool, Float32, Float64, Int64
from torch import Tensor

from leapts.config import ModelConfig, TrainingConfig
from leapts.data.panel import Panel
from leapts.data.scaling import Scaler
from leapts.data.validation import require_length
from leapts.data.windows import AlignedWindows, Windows
from leapts.errors import ConfigError, DataError, TrainingError
from leapts.forecasting.auto_config import Pick
from leapts.forecasting.intervals import ConformalScores
from leapts.messages import counted, listed, quoted
from leapts.model import LeapTSModel, ScheduleTrace
from leapts.model.network import Record
from leapts.training.early_stopping import TrainingReport

# So many rows (windows of single series) go through the model at a time.
_ROWS_AT_A_TIME = 16384

# In deviations of a series; the sum of squares of a window of such values still fits single precision.
MAX_STANDARDIZED = 1e15


@dataclass(frozen=True, eq=False, kw_only=True)
class Fitted:
    """Everything that a fit leaves behind."""

    config: ModelConfig
    training: TrainingConfig
    model: LeapTSModel
    clusters: tuple[int, ...] | None
    scaler: Scaler
    tail: Panel  # the last look-back of every series, to forecast from
    pad_short: bool
    report: TrainingReport
    picks: tuple[Pick, ...]
    scores: ConformalScores | None

    def __getstate__(self) -> dict[str, object]:
        # Copies and pickles leave out cached properties; the inference copy could not be pickled.
        cached = {"inference_copy", "_places", "constant_at_fit"}
        return {name: value for name, value in self.__dict__.items() if name not in cached}

    @cached_property
    def inference_copy(self) -> LeapTSModel:
        """The model for forecasts, prepared once for all of them."""
        return self.model.snapshot()

    @property
    def is_multivariate(self) -> bool:
        """Whether the model forecasts its series together, and so needs exactly those."""
        return self.config.n_series is not None

    @property
    def forgets_levels(self) -> bool:
        """Whether the level of a window is taken away before it is looked at, and put back afterwards."""
        return self.config.normalization != "none"

    def windows(self, panel: Panel) -> Windows | AlignedWindows:
        """The windows of a panel, standardised, as the model wants them."""
        scaler = self.scaler_for(panel)
        values = _standardised(scaler.from_own_means(panel) if self.forgets_levels else scaler, panel)
        if self.is_multivariate:
            matrix = values.view(len(panel), -1)
            return AlignedWindows(matrix, self.config.input_size, self.config.h)
        return Windows(values, panel.offsets, self.config.input_size, self.config.h, pad_short=self.pad_short)

    def places_of(self, names: Sequence[str | int]) -> Int64[Tensor, " names"]:
        """Where each name stands among the model's series; -1 where it is none of them.

        A number and the text that spells it are one name: a CSV file has text where other tables have numbers.
        """
        return torch.tensor([self._places.get(str(name), -1) for name in names], dtype=torch.int64)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {str(name): place for place, name in enumerate(self.tail.series)}

    def has_series_of(self, panel: Panel) -> bool:
        """Whether a panel's series are the model's own, all of them and in the same order."""
        own = self.tail.series
        return panel.series == own or tuple(map(str, panel.series)) == tuple(map(str, own))

    def unseen(self, panel: Panel) -> Bool[Tensor, " series"]:
        """Which series of a panel the fit has no measure of: those it did not see, and those it did not see move."""
        places = torch.arange(len(panel)) if self.has_series_of(panel) else self.places_of(panel.series)
        strange = places < 0
        constant_at_fit = ~strange & self.constant_at_fit[places]
        return strange | (constant_at_fit & ~Scaler.fit(panel).constant) if bool(constant_at_fit.any()) else strange

    @cached_property
    def constant_at_fit(self) -> Bool[Tensor, " series"]:
        """Which of the model's series did not move by the end of its data."""
        return self.scaler.constant & Scaler.fit(self.tail).constant

    def scaler_for(self, panel: Panel) -> Scaler:
        """The scaling of a panel's series: as fitted where it measured them, by their own history where not."""
        strange = self.unseen(panel)
        if not bool(strange.any()) and self.has_series_of(panel):
            return self.scaler
        own, places = Scaler.fit(panel), self.places_of(panel.series)
        return Scaler(
            torch.where(strange, own.mean, self.scaler.mean[places]),
            torch.where(strange, own.std, self.scaler.std[places]),
        )

    def forecast(self, panel: Panel, record: Record = "nothing") -> "PanelForecast":
        """Forecast what follows every series of a panel.

        Raises:
            DataError: When a series is too short, or the model needs its own series and these are others.
            TrainingError: When the weights are such that no number comes out.
        """
        # What a model that mixes its series looks at has to be aligned, and not what came before.
        panel = self.accepted(panel.tail(self.config.input_size) if self.is_multivariate else panel)
        tail = panel.tail(self.config.input_size)
        scaler = self.scaler_for(panel)
        if self.forgets_levels:
            scaler = scaler.from_last_values(tail)
        values = _standardised(scaler, tail)
        if self.is_multivariate:
            batches = [values.view(1, len(panel), -1)]
        else:
            windows = Windows(values, tail.offsets, self.config.input_size, 0, pad_short=True)
            every = torch.arange(len(panel))
            batches = [windows.gather(index).history for index in every.split(_ROWS_AT_A_TIME)]
        parts = [self.inference_copy.forecast(batch, record=record) for batch in batches]
        merged = torch.cat([part.values.flatten(0, 1) for part in parts])
        coarse = [part.coarse.flatten(0, 1) for part in parts if part.coarse is not None]
        _require_numbers(merged, panel)
        traces = [part.trace.arranged(lambda x: x.flatten(0, 1)) for part in parts if part.trace is not None]
        return PanelForecast(
            panel=panel,
            values=scaler.inverse(merged),
            coarse=scaler.inverse(torch.cat(coarse)) if coarse else None,
            scale=scaler.std,
            trace=ScheduleTrace.joined(traces) if traces else None,
        )

    def accepted(self, panel: Panel) -> Panel:
        """The panel as the model can take it.

        Raises:
            DataError: Naming the series that stand in the way.
        """
        if self.is_multivariate or not self.pad_short:
            lookback = self.config.input_size
            require_length(panel, lookback, f"a forecast from a look-back of {lookback}", "give a longer history")
        if panel.freq != self.tail.freq:
            raise DataError(
                f"the model was fitted at freq={quoted(self.tail.freq)}, but this data has "
                f"freq={quoted(panel.freq)}; bring it to the same frequency, or fit again"
            )
        return self._own_series(panel) if self.is_multivariate else panel

    def _own_series(self, panel: Panel) -> Panel:
        """The model's own series in their order, which is what a model that mixes them needs."""
        self.require_own(panel.series)
        panel = panel.select([panel.series[place] for place in self.places_of(panel.series).argsort().tolist()])
        panel.matrix()  # refuses series that are not aligned
        return panel

    def require_own(self, names: Sequence[str | int]) -> None:
        """Refuse names that are not exactly those of the model's series, in any order.

        Raises:
            DataError: Naming those that are missing, or too many.
        """
        given = set(map(str, names))
        cure = "give all of them over the same timestamps, or fit with model={'mixing': 'none'}"
        missing = [name for name in self.tail.series if str(name) not in given]
        if missing:
            raise DataError(
                f"the model forecasts {counted(len(self.tail), 'series')} together, and this data lacks "
                f"{listed(missing)}; {cure}"
            )
        extra = [name for name in names if str(name) not in self._places]
        if extra:
            raise DataError(f"the model was fitted without the series {listed(extra)}; leave them out, or fit again")

    def score_groups(self, panel: Panel) -> Int64[Tensor, " series"]:
        """Which group of calibration scores each series of a panel goes by."""
        count = 1 if self.scores is None else len(self.scores.counts)
        if count == 1:
            return torch.zeros(len(panel), dtype=torch.int64)
        return self.places_of(panel.series).where(~self.unseen(panel), count - 1)

    def require_scores(self) -> ConformalScores:
        """The calibration scores.

        Raises:
            ConfigError: When there are none.
        """
        if self.scores is None:
            raise ConfigError(
                "no windows were held out, so there is nothing to measure intervals by; "
                "fit with val_size=, or call calibrate(df) with newer data"
            )
        return self.scores


@dataclass(frozen=True, eq=False, kw_only=True)
class PanelForecast:
    """Forecasts for every series of a panel, in its own units."""

    panel: Panel
    values: Float64[Tensor, "series h"]
    coarse: Float64[Tensor, "series h"] | None
    scale: Float64[Tensor, " series"]  # of each series, for intervals
    trace: ScheduleTrace | None


def _standardised(scaler: Scaler, panel: Panel) -> Float32[Tensor, " rows"]:
    """A panel's values in deviations of their series.

    Raises:
        DataError: When a value is so far off, in deviations, that its square leaves single precision.
    """
    values = scaler.transform(panel)
    if len(values) and not float(values.abs().max()) < MAX_STANDARDIZED:
        row = int((~(values.abs() < MAX_STANDARDIZED)).nonzero()[0])
        series = int(torch.searchsorted(panel.offsets, row, right=True)) - 1
        own = slice(int(panel.offsets[series]), int(panel.offsets[series + 1]))
        raise DataError(too_far(panel.series[series], panel.values[own].numpy()))
    return values


def _require_numbers(values: Float32[Tensor, "series h"], panel: Panel) -> None:
    bad = (~values.isfinite()).any(1).nonzero()
    if len(bad):
        raise TrainingError(
            f"the forecast of series {quoted(panel.series[int(bad[0])])} is not a number: "
            "the weights are damaged, or training ran away; fit again"
        )


def too_far(series: str | int, values: npt.NDArray[np.float64]) -> str:
    """What to say about values of which one leaves single precision once standardised and squared.

    Look-backs are counted from their last value. Should that be the one, all others are far from it.
    """
    value = values[np.abs(values - np.median(values)).argmax()]
    return (
        f"series {quoted(series)} holds {value:g}, which is {MAX_STANDARDIZED:g} standard deviations or more "
        "from its other values, or from those of the fit; correct it, or fit again"
    )


def tail_of(panel: Panel, steps: int) -> Panel:
    """The last steps of every series, in memory of their own."""
    tail = panel.tail(steps)
    return replace(tail, values=tail.values.clone(), forward_filled=None)
