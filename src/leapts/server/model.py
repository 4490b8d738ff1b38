"""A served model: reads JSON requests, forecasts them in batches, and writes the responses.

The only module of the server that calls the forecaster.
"""

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from leapts.errors import ConfigError, LeapTSError, ModelFileError
from leapts.forecasting import LeapTS
from leapts.forecasting.forecast import Forecast, ForecastWindows, Samples, require_intervals
from leapts.forecasting.intervals import Level, requested_bounds
from leapts.forecasting.predictor import Predictor
from leapts.model import ScheduleTrace
from leapts.model.network import GatedFusion, Record
from leapts.model.schedulers import SCALE_NAMES
from leapts.persistence.save import CONFIG, WEIGHTS
from leapts.server.limits import Limits
from leapts.server.problems import TOO_LARGE, Problem, from_message, too_large
from leapts.server.schemas import ForecastIn, ForecastOut, ForecastTableIn, LeapOut, ModelOut, SeriesOut
from leapts.server.timestamps import future_texts

Floats = npt.NDArray[np.float64]
Identity = tuple[int, ...]
_MEASURED_ROWS = 512
_MAX_NAMES = 100  # of series, in the description of a model


class CheckedRequest(NamedTuple):
    """A request that can be forecast."""

    request: ForecastIn
    windows: ForecastWindows
    record: Record


@dataclass(frozen=True, eq=False, kw_only=True)
class ServedModel:
    """One version of a model folder; requests that began with it end with it."""

    name: str  # name that requests use
    version: str  # first digits of a digest of the configuration
    estimator: LeapTS  # model
    identity: Identity  # inodes, sizes and modification times of the files it was read from
    row_seconds: float  # processor time of a forecast for each row of a large batch

    @classmethod
    def load(cls, name: str, folder: Path) -> "ServedModel":
        """Read a model folder.

        Raises:
            ModelFileError: If it cannot be read, is replaced while it is read, or was fitted with covariates.
        """
        identity = identity_of(folder)
        estimator = LeapTS.load(folder)
        try:
            version = hashlib.sha256((folder / CONFIG).read_bytes()).hexdigest()[:12]
        except OSError as error:
            raise ModelFileError(f"{folder} was removed while it was read; save the model again") from error
        if identity is None or identity != identity_of(folder):
            raise ModelFileError(f"{folder} was replaced while it was read; it is read again")
        if estimator.predictor_.covariates is not None:
            raise ModelFileError(
                f"{folder} was fitted with covariates, which the server does not take yet; fit without"
            )
        estimator.predictor_.model.eval()
        seconds = _measure_row_seconds(estimator.predictor_)
        return cls(name=name, version=version, estimator=estimator, identity=identity, row_seconds=seconds)

    @property
    def freq(self) -> str | int:
        """Frequency of the training data."""
        return self.predictor.tail.freq

    @property
    def predictor(self) -> Predictor:
        """The fitted network."""
        return self.estimator.predictor_

    def check(self, request: ForecastIn, limits: Limits) -> CheckedRequest:
        """Check a request against the limits and the model.

        Raises:
            Problem: If it exceeds a limit or cannot be forecast.
        """
        if len(request.series) > limits.series:
            raise too_large(f"the request has {len(request.series):,} series", limits.series, "--max-series")
        values = [one.values for one in request.series]
        longest = max(map(len, values))
        if longest > limits.length:
            raise too_large(f"the request has a series of {longest:,} values", limits.length, "--max-length")
        check_size(request, len(request.series) * self.predictor.config.h, limits)
        try:
            self._check_levels(request.level, request.quantiles, request.samples)
            if request.trace and not isinstance(self.predictor.model.fusion, GatedFusion):
                raise ConfigError("this model has no scheduling branch; leave trace out")
            self._check_ends(request)
            names = [one.id for one in request.series]
            windows = self.predictor.windows_from_arrays(names, _to_arrays(values), fill=self.estimator.fill)
        except LeapTSError as error:
            raise from_message(str(error)) from None
        return CheckedRequest(request, windows, "leaps" if request.trace else "nothing")

    def forecast(self, requests: Sequence[CheckedRequest]) -> list[Forecast]:
        """Forecast several requests with the same kind of record in one batch."""
        windows, asked = [one.windows for one in requests], [one.request for one in requests]
        needed = any(one.level or one.quantiles or one.samples for one in asked)
        forecasts = self.predictor.predict_together(windows, requests[0].record, quantiles=needed)
        # A multivariate model forecasts in its own order of the series.
        return [
            forecast.select([one.id for one in checked.request.series])
            for forecast, checked in zip(forecasts, requests, strict=True)
        ]

    def respond(self, checked: CheckedRequest, forecast: Forecast) -> ForecastOut:
        """Give each series its forecast, intervals, timestamps and leaps."""
        asked = checked.request
        samples = Samples(asked.samples, asked.random_seed) if asked.samples else None
        found = forecast.columns(asked.level, asked.quantiles, self.estimator.alias, samples)
        columns = {name: values.tolist() for name, values in found.items()}
        leaps = None if forecast.trace is None else leaps_of(forecast.trace)
        forecasts = []
        for row, one in enumerate(checked.request.series):
            last = checked.request.last if one.last is None else one.last
            forecasts.append(
                SeriesOut(
                    id=one.id,
                    values={name: values[row] for name, values in columns.items()},
                    timestamps=None if last is None else self._timestamps(last),
                    trace=None if leaps is None else leaps[row],
                )
            )
        h = self.predictor.config.h
        return ForecastOut(model=self.name, version=self.version, h=h, freq=self.freq, forecasts=forecasts)

    def describe(self) -> ModelOut:
        """Describe the model to clients."""
        fitted, estimator = self.predictor, self.estimator
        return ModelOut(
            name=self.name,
            version=self.version,
            h=fitted.config.h,
            input_size=fitted.config.input_size,
            freq=self.freq,
            timezone=fitted.tail.timezone,
            multivariate=fitted.is_multivariate,
            series=list(fitted.tail.series[:_MAX_NAMES]),
            series_count=len(fitted.tail.series),
            levels=[80, 95] if fitted.has_intervals else [],
            id_col=estimator.id_col,
            time_col=estimator.time_col,
            target_col=estimator.target_col,
        )

    def _check_levels(self, level: Sequence[Level] | None, quantiles: Sequence[float] | None, samples: int) -> None:
        """Refuse intervals and sample paths that the model cannot give, before it forecasts."""
        if requested_bounds(level, quantiles) or samples:
            require_intervals(self.predictor.levels, self.predictor.calibration)

    def _check_ends(self, request: ForecastIn) -> None:
        """Check the last timestamps; the series of a multivariate model must end together."""
        lasts = {request.last if one.last is None else one.last for one in request.series}
        if self.predictor.is_multivariate and len(lasts) > 1:
            raise ConfigError("the model is multivariate, and its series end at different timestamps; end them at one")
        for last in lasts:
            if last is not None:
                self._timestamps(last)

    def _timestamps(self, last: str | int) -> list[str | int]:
        return future_texts(last, self.predictor.tail, self.predictor.config.h)


def check_size(asked: ForecastIn | ForecastTableIn, steps: int, limits: Limits) -> None:
    """Refuse a request for `steps` forecasts whose response would have too many values.

    Raises:
        Problem: With the number.
    """
    columns = 1 + 2 * len(asked.level or ()) + len(asked.quantiles or ())
    values = {"sample paths": (asked.samples, limits.sampled), "forecasts and levels": (columns, limits.answered)}
    for what, (number, limit) in values.items():
        if steps * number > limit:
            detail = f"the {what} have {steps * number:,} values; the limit is {limit:,}"
            raise Problem(TOO_LARGE, detail, "ask for fewer samples or levels, or send fewer series at a time")


def identity_of(folder: Path) -> Identity | None:
    """Identify a version of a model folder without reading it; None if a file is missing."""
    try:
        found = [(folder / file).stat() for file in (CONFIG, WEIGHTS)]
    except OSError:
        return None
    return tuple(number for one in found for number in (one.st_dev, one.st_ino, one.st_mtime_ns, one.st_size))


def leaps_of(trace: ScheduleTrace) -> list[list[LeapOut]]:
    """List the leaps of every row."""
    names = trace.scale_names
    absent = {name: 0.0 for name in SCALE_NAMES if name not in names}
    # All tensors at once: to convert them row by row takes far longer.
    fields = (trace.start, trace.length, trace.scale, trace.probabilities, trace.control, trace.temporal)
    return [
        [
            LeapOut(
                start=start,
                end=start + length,
                scale=names[scale],
                probabilities=absent | dict(zip(names, probabilities, strict=True)),
                control=control,
                temporal=temporal,
            )
            for start, length, scale, probabilities, control, temporal in zip(*row, strict=True)
            if length
        ]
        for row in zip(*(field.tolist() for field in fields), strict=True)
    ]


def _to_arrays(values: Sequence[list[float | None]]) -> Floats | list[Floats]:
    """Convert histories, with NaN for a missing value; to one matrix if they have the same length."""
    length = len(values[0])
    if any(len(one) != length for one in values):
        return [np.array(one, dtype=np.float64) for one in values]
    return np.fromiter(chain.from_iterable(values), np.float64, length * len(values)).reshape(-1, length)


def _measure_row_seconds(predictor: Predictor) -> float:
    """Processor time of one row of a large batch: the least of several passes, since other work may interrupt any."""
    network, n_series = predictor.inference_copy, predictor.config.n_series or 1
    batch = torch.zeros(max(2, _MEASURED_ROWS // n_series), n_series, predictor.config.input_size)
    batch[..., ::2] = 1.0
    seconds = []
    for _ in range(3):
        started = time.thread_time()
        network.forecast(batch)
        seconds.append(time.thread_time() - started)
    return min(seconds) / (len(batch) * n_series)
