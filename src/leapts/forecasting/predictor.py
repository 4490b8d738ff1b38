"""The path of every forecast: a panel or arrays become windows, windows a forecast, a forecast a frame.

windows = predictor.windows(panel)
forecast = predictor.predict(windows, record="leaps")
frame = forecast.to_frame(level=[80, 95])
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from operator import itemgetter
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float32, Float64, Int64
from torch import Tensor

from leapts.config import Fill, ModelConfig, TrainingConfig
from leapts.data.arrays import Floats, Name, panel_from_arrays
from leapts.data.columns import visible_name
from leapts.data.covariate_channels import CovariateEncoder
from leapts.data.panel import Panel
from leapts.data.scaling import Scaler, Support
from leapts.data.validation import require_length
from leapts.data.windows import AlignedWindows, WindowBatch, Windows
from leapts.errors import DataError, TrainingError
from leapts.forecasting.auto_config import AutoConfig
from leapts.forecasting.forecast import Forecast, ForecastWindows
from leapts.forecasting.intervals import Calibration
from leapts.messages import counted, listed, quoted
from leapts.model import LeapTSModel, ScheduleTrace
from leapts.model.network import Forecast as NetworkForecast
from leapts.model.network import Record
from leapts.training.early_stopping import TrainingReport

_MAX_ROWS = 16384  # windows x series in one pass of the network

# In standard deviations of a series; the sum of squares of a window of such values still fits single precision.
MAX_SCALED = 1e15


@dataclass(frozen=True, eq=False, kw_only=True)
class Predictor:
    """A fitted network with everything a forecast needs: scaling, calibration, and the end of its series."""

    config: ModelConfig
    training: TrainingConfig
    model: LeapTSModel
    clusters: tuple[int, ...] | None
    scaler: Scaler
    tail: Panel  # the last look-back of every series
    pad_short: bool
    report: TrainingReport
    auto_config: AutoConfig
    support: Support  # values that can occur in each series
    calibration: Calibration | None
    covariates: CovariateEncoder | None = None

    def __getstate__(self) -> dict[str, object]:
        # Copies and pickles leave out cached properties; the inference copy cannot be pickled.
        return {one.name: getattr(self, one.name) for one in fields(self)}

    @cached_property
    def inference_copy(self) -> LeapTSModel:
        """The network prepared for fast inference."""
        return self.model.snapshot()

    @property
    def is_multivariate(self) -> bool:
        """Whether the model forecasts its series together, and so needs exactly those series."""
        return self.config.n_series is not None

    def windows(self, panel: Panel) -> ForecastWindows:
        """Cut and scale the last look-back of every series of a panel.

        Raises:
            DataError: When a series is too short, of another frequency, or unknown to a multivariate model.
        """
        self.require_frequency(panel)
        return self._latest(panel)

    def windows_from_arrays(
        self, names: Sequence[Name], histories: Sequence[Floats] | Floats, *, fill: Fill | None = None
    ) -> ForecastWindows:
        """Cut and scale the last look-back of histories given as arrays, oldest value first.

        Args:
            names: Names of the series.
            histories: One array for each series, or a matrix with one row for each.
            fill: Imputation of missing values; by default they are errors.

        Raises:
            DataError: When a history cannot be used, with the name of its series.
        """
        return self._latest(panel_from_arrays(names, histories, fill=fill))

    def _latest(self, panel: Panel) -> ForecastWindows:
        steps = self.config.input_size  # a multivariate model needs aligned look-backs; earlier history may differ
        panel = self.require_usable(panel.tail(steps) if self.is_multivariate else panel)
        scaler, groups = self.scaling(panel)
        tail = panel if self.is_multivariate else panel.tail(steps)
        if self.config.normalization != "none":
            # The network removes the level of a window; a level far from the fitted mean would cost precision.
            scaler = scaler.from_last_values(tail)
        values = _scaled(scaler, tail)
        if len(values) == len(panel) * steps:
            history = values.view((1, -1, steps) if self.is_multivariate else (-1, 1, steps))
            batch = WindowBatch(history, history[..., :0])
        else:
            min_history = None if self.config.min_history is None else steps
            short = Windows(values, tail.offsets, steps, 0, pad_short=True, min_history=min_history)
            batch = short.gather(torch.arange(len(panel)))
        if self.covariates is not None:
            known = self.covariates.latest(tail, steps, self.config.h, batch.history.shape[1])
            batch = replace(batch, covariates=known)
        return ForecastWindows(panel=panel, batch=batch, scaler=scaler, groups=groups, support=self.support_of(tail))

    def predict(self, windows: ForecastWindows, record: Record = "nothing", *, quantiles: bool = True) -> Forecast:
        """Forecast the horizon after each window.

        Args:
            windows: From `windows` or `windows_from_arrays`.
            record: What to record beside the forecast: `"leaps"` for the trace.
            quantiles: Whether to compute quantiles; a forecast without them is faster and has no intervals.

        Raises:
            TrainingError: When the weights produce values that are not finite.
        """
        return self.predict_together([windows], record, quantiles=quantiles)[0]

    def predict_together(
        self, requests: Sequence[ForecastWindows], record: Record = "nothing", *, quantiles: bool = True
    ) -> list[Forecast]:
        """Forecast several requests in one pass of the network, each as if it were alone."""
        quantiles = quantiles or self.config.point == "mean"
        if len(requests) > 1 and self.config.scheduling.draws_at_random:  # a draw depends on the other rows
            return [self.predict(request, record, quantiles=quantiles) for request in requests]
        batch = requests[0].batch if len(requests) == 1 else WindowBatch.joined([one.batch for one in requests])
        found = self._run_all(batch, record, quantiles)
        calibration, levels = (self.calibration, self.levels) if quantiles else (None, (0.5,))
        weights = self.point_weights if quantiles else torch.ones(1, dtype=torch.float64)
        if not bool(found.values.isfinite().all()):
            raise _not_finite(found.values, [name for request in requests for name in request.panel.series])
        inverse = Scaler.joined([request.scaler for request in requests]).inverse
        clip = Support.joined([request.support for request in requests]).clip
        by_level = inverse(found.values).unflatten(1, (self.config.h, -1))
        values = clip(by_level @ weights)
        coarse = None if found.coarse is None else clip(inverse(found.coarse))
        forecasts, start = [], 0
        for request in requests:
            rows = slice(start, start + len(request))
            start = rows.stop
            forecasts.append(
                Forecast(
                    panel=request.panel,
                    values=values[rows],
                    quantiles=by_level[rows],
                    coarse=None if coarse is None else coarse[rows],
                    scale=request.scaler.std,
                    groups=request.groups,
                    support=request.support,
                    trace=None if found.trace is None else found.trace.arranged(itemgetter(rows)),
                    levels=levels,
                    calibration=calibration,
                    scores=None if calibration is None else calibration.scores,
                    known=self.covariates.names("future") if self.covariates else (),
                )
            )
        return forecasts

    def run_network(self, batch: WindowBatch, record: Record = "nothing", *, quantiles: bool = True) -> NetworkForecast:
        """Run the network on scaled windows: the only place that does so outside training."""
        known = batch.covariates
        return self.inference_copy.forecast(batch.history, record=record, quantiles=quantiles, covariates=known)

    def _run_all(self, windows: WindowBatch, record: Record, quantiles: bool) -> NetworkForecast:
        """Run the network in passes of limited size; a row of the result is one series of one window."""
        per_pass = max(1, _MAX_ROWS // windows.history.shape[1])
        batches = [windows] if len(windows.history) <= per_pass else windows.split(per_pass)
        parts = [self.run_network(one, record, quantiles=quantiles) for one in batches]
        coarse = [part.coarse.flatten(0, 1) for part in parts if part.coarse is not None]
        traces = [part.trace.arranged(lambda x: x.flatten(0, 1)) for part in parts if part.trace is not None]
        return NetworkForecast(
            torch.cat([part.values.flatten(0, 1) for part in parts]),
            torch.cat(coarse) if coarse else None,
            ScheduleTrace.joined(traces) if traces else None,
        )

    def sliding_windows(
        self, panel: Panel, *, partial: bool = False, latest: int | None = None
    ) -> Windows | AlignedWindows:
        """All windows of a panel with their targets, scaled, for training, validation and calibration.

        With a mask and `partial`, a horizon of history is enough. `latest` keeps the last windows of univariate series.
        """
        scaler = self.scaling(panel)[0]
        values = _scaled(scaler.from_own_means(panel) if self.config.normalization != "none" else scaler, panel)
        steps, h, least = self.config.input_size, self.config.h, self.config.min_history
        known = None if self.covariates is None else self.covariates.encode(panel.with_covariates_up_to(0))
        if self.is_multivariate:
            return AlignedWindows(values.view(len(panel), -1), steps, h, known)
        least = min(h, steps) if least and (partial or latest) else least
        given: dict[str, Any] = {"min_history": least, "latest": latest, "covariates": known}
        return Windows(values, panel.offsets, steps, h, pad_short=self.pad_short, **given)

    def scaling(self, panel: Panel) -> tuple[Scaler, Int64[Tensor, " series"]]:
        """Scaling, and group in the calibration, of each series of a panel.

        Both come from the fit for the fitted series. An unseen series is scaled by its own history and belongs to the
        last group; so is a series that was constant in the fit's data and has changed since.
        """
        places = torch.arange(len(panel)) if self.has_series_of(panel) else self.places_of(panel.series)
        last_group = 0 if self.calibration is None else len(self.calibration.windows) - 1
        if self.has_series_of(panel) and not bool(self.constant_at_fit.any()):
            return self.scaler, places if last_group else torch.zeros_like(places)
        unseen = places < 0
        was_constant = ~unseen & self.constant_at_fit[places]
        scaler = Scaler(self.scaler.mean[places], self.scaler.std[places])
        if bool((unseen | was_constant).any()):
            own = Scaler.fit(panel)
            unseen |= was_constant & ~own.constant
            scaler = Scaler(torch.where(unseen, own.mean, scaler.mean), torch.where(unseen, own.std, scaler.std))
        groups = torch.where(unseen, last_group, places) if last_group else torch.zeros_like(places)
        return scaler, groups

    def support_of(self, panel: Panel) -> Support:
        """Values that can occur in each series of a panel.

        They come from the fit. A fitted series that has left its limits since has none, and an unseen series has limits
        only if all fitted series have.
        """
        if self.has_series_of(panel):
            return self.support.widened(panel)
        own, places = self.support, self.places_of(panel.series)
        shared = Support(own.lower.min()[None], own.upper.max()[None], own.whole.all()[None])
        return Support.joined([own, shared]).select(torch.where(places < 0, len(own.lower), places)).widened(panel)

    @property
    def levels(self) -> tuple[float, ...]:
        """Levels of the quantiles that the network gives; of point forecasts, the median alone."""
        return self.config.quantiles or (0.5,)

    @cached_property
    def point_weights(self) -> Float64[Tensor, " quantiles"]:
        """Weights of the quantiles in the point forecast: the median alone, or all for the mean."""
        levels = torch.tensor(self.levels, dtype=torch.float64)
        if self.config.point == "median":
            return (levels == 0.5).double()
        middles = (levels[1:] + levels[:-1]) / 2  # each quantile stands for the levels that are closest to it
        return torch.cat([levels.new_zeros(1), middles, levels.new_ones(1)]).diff()

    @property
    def has_intervals(self) -> bool:
        """Whether forecasts have prediction intervals: learned quantiles, or a calibration."""
        return self.calibration is not None or len(self.levels) > 1

    def places_of(self, names: Sequence[Name]) -> Int64[Tensor, " names"]:
        """Index of each name among the fitted series; -1 for an unseen series.

        A number and the text that spells it are one name: a CSV file has text where other tables have numbers. So are
        names that look the same (see `visible_name`).
        """
        return torch.tensor([self._place(name) for name in names], dtype=torch.int64)

    @cached_property
    def _places(self) -> dict[str, int]:
        names = [str(name) for name in self.tail.series]
        return {key: place for keys in (map(visible_name, names), names) for place, key in enumerate(keys)}

    def _place(self, name: Name) -> int:
        text = str(name)
        return self._places[text] if text in self._places else self._places.get(visible_name(text), -1)

    def has_series_of(self, panel: Panel) -> bool:
        """Whether a panel has exactly the fitted series, in the same order."""
        own = self.tail.series
        return panel.series == own or tuple(map(str, panel.series)) == tuple(map(str, own))

    @cached_property
    def constant_at_fit(self) -> Bool[Tensor, " series"]:
        """Which fitted series were constant up to the end of the fit's data."""
        constant = self.scaler.constant
        return constant & Scaler.fit(self.tail).constant if bool(constant.any()) else constant

    def require_frequency(self, panel: Panel) -> None:
        """Refuse a panel of another frequency.

        Raises:
            DataError: With both frequencies.
        """
        if panel.freq != self.tail.freq:
            raise DataError(
                f"the model was fitted at freq={quoted(self.tail.freq)}, but this data has "
                f"freq={quoted(panel.freq)}; bring it to the same frequency, or fit again"
            )

    def require_usable(self, panel: Panel) -> Panel:
        """Refuse series that the model cannot take; put those of a multivariate model in its order.

        Raises:
            DataError: With the names of the series.
        """
        steps = self.config.input_size
        if self.is_multivariate or not self.pad_short:
            require_length(panel, steps, f"a forecast from a look-back of {steps}", "give a longer history")
        if not self.is_multivariate:
            return panel
        if not self.has_series_of(panel):
            self._require_own_series(panel.series)
            panel = panel.select([panel.series[place] for place in self.places_of(panel.series).argsort().tolist()])
        panel.matrix()  # refuses series that are not aligned
        return panel

    def _require_own_series(self, names: Sequence[Name]) -> None:
        """Refuse names that are not exactly those of the fitted series, in any order."""
        given = set(self.places_of(names).tolist())
        missing = [name for place, name in enumerate(self.tail.series) if place not in given]
        if missing:
            raise DataError(
                f"the model forecasts {counted(len(self.tail), 'series')} together, and this data lacks "
                f"{listed(missing)}; give all of them over the same timestamps, or fit with model={{'mixing': 'none'}}"
            )
        extra = [name for name in names if self._place(name) < 0]
        if extra:
            raise DataError(f"the model was fitted without the series {listed(extra)}; leave them out, or fit again")


def _scaled(scaler: Scaler, panel: Panel) -> Float32[Tensor, " rows"]:
    """Scale a panel's values to standard deviations of their series.

    Raises:
        DataError: When a scaled value is so large that its square leaves single precision.
    """
    values = scaler.transform(panel)
    if len(values) and not float(values.abs().max()) < MAX_SCALED:
        row = int((~(values.abs() < MAX_SCALED)).nonzero()[0])
        series = int(torch.searchsorted(panel.offsets, row, right=True)) - 1
        own = panel.values[int(panel.offsets[series]) : int(panel.offsets[series + 1])].numpy()
        value = own[np.abs(own - np.median(own)).argmax()]
        raise DataError(
            f"series {quoted(panel.series[series])} holds {value:g}, which is {MAX_SCALED:g} standard deviations or "
            "more from its other values, or from those of the fit; correct it, or fit again"
        )
    return values


def _not_finite(values: Float32[Tensor, "series outputs"], names: Sequence[Name]) -> TrainingError:
    name = quoted(names[int((~values.isfinite()).any(1).nonzero()[0])])
    return TrainingError(f"the forecast of series {name} is not a number: weights are damaged, or diverged; fit again")
