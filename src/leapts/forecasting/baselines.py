"""Baselines of a backtest: naive forecasts, and models of statsforecast and neuralforecast.

A baseline forecasts all series of a panel at once, from its flat values and offsets.
"""

import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float64, Int64
from torch import Tensor

from leapts.errors import ConfigError, DataError

STATISTICAL_MODELS = ("AutoETS", "AutoTheta")
NEURAL_MODELS = ("DLinear", "NHITS")

Values = Float64[Tensor, " rows"]  # of all series, one after the other, as in a panel
Offsets = Int64[Tensor, " offsets"]  # the first position of each series, and the end of the last one


class Baseline(Protocol):
    """A model that forecasts from the history alone."""

    @property
    def name(self) -> str:
        """Name of the column."""

    def forecast(self, values: Values, offsets: Offsets, h: int) -> Float64[Tensor, "series h"]:
        """Forecast the `h` steps after the end of each series.

        Raises:
            DataError: When a series is empty.
        """


@dataclass(frozen=True)
class SeasonalNaive:
    """Repeat the last season; the last value, for a series shorter than a season."""

    season: int  # in steps
    name: str = "SeasonalNaive"

    def __post_init__(self) -> None:
        if self.season < 1:
            raise ConfigError(f"season={self.season}: must be at least 1; use 1 where there is no season")

    def forecast(self, values: Values, offsets: Offsets, h: int) -> Float64[Tensor, "series h"]:
        """Forecast the `h` steps after the end of each series."""
        _check(values, offsets, h)
        ends = offsets[1:, None]
        has_season = offsets.diff()[:, None] >= self.season
        places = torch.where(has_season, ends - self.season + torch.arange(h) % self.season, ends - 1)
        return values[places]


@dataclass(frozen=True)
class Naive:
    """Repeat the last value."""

    name: str = "Naive"

    def forecast(self, values: Values, offsets: Offsets, h: int) -> Float64[Tensor, "series h"]:
        """Forecast the `h` steps after the end of each series."""
        return SeasonalNaive(1).forecast(values, offsets, h)


@dataclass(frozen=True)
class Drift:
    """Continue the line from the first value to the last."""

    name: str = "Drift"

    def forecast(self, values: Values, offsets: Offsets, h: int) -> Float64[Tensor, "series h"]:
        """Forecast the `h` steps after the end of each series."""
        _check(values, offsets, h)
        first, last = values[offsets[:-1]], values[offsets[1:] - 1]
        slope = (last - first) / (offsets.diff() - 1).clamp(min=1)
        return last[:, None] + slope[:, None] * torch.arange(1, h + 1)


@dataclass(frozen=True)
class HistoricMean:
    """Repeat the mean of all values."""

    name: str = "HistoricMean"

    def forecast(self, values: Values, offsets: Offsets, h: int) -> Float64[Tensor, "series h"]:
        """Forecast the `h` steps after the end of each series."""
        _check(values, offsets, h)
        return torch.segment_reduce(values, "mean", offsets=offsets)[:, None].expand(-1, h)


@dataclass(frozen=True, eq=False)
class StatisticalBaseline:
    """A model of statsforecast, fitted to one series after the other.

    A series that the model cannot be fitted to, such as a very short one, gets the seasonal naive forecast; a warning
    counts such series.
    """

    model: Any
    season: int  # in steps
    name: str

    def forecast(self, values: Values, offsets: Offsets, h: int) -> Float64[Tensor, "series h"]:
        """Forecast the `h` steps after the end of each series.

        Raises:
            DataError: When a series is empty, or the model can be fitted to none.
        """
        result = SeasonalNaive(self.season).forecast(values, offsets, h)
        refused: dict[int, str] = {}
        for index, history in enumerate(values.tensor_split(offsets[1:-1])):
            try:
                result[index] = self._forecast_one(history, h)
            except Exception as error:  # short series raise errors of many types, even IndexError
                refused[index] = str(error)
        if refused:
            first, reason = next(iter(refused.items()))
            found = f"{self.name} cannot be fitted to {len(refused)} of {len(result)} series, first to series {first}"
            if len(refused) == len(result):
                raise DataError(f"{found} (counted from 0; {reason}); give it longer ones, or leave it out")
            warnings.warn(f"{found} (counted from 0; {reason}); they get the seasonal naive forecast", stacklevel=2)
        return result

    def _forecast_one(self, history: Values, h: int) -> Float64[Tensor, " h"]:
        # Constant and short series cause divisions by zero; only the forecast has to be finite.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            mean = np.asarray(self.model.forecast(y=history.numpy(), h=h)["mean"], dtype=np.float64)
        if not np.isfinite(mean).all():
            raise ArithmeticError("its forecast is not finite")
        return torch.from_numpy(mean)


@dataclass(frozen=True, eq=False)
class NeuralBaseline:
    """A model of neuralforecast, trained on all series together before every forecast."""

    model: Any  # the class
    season: int  # in steps; the look-back is four seasons or twice the horizon
    name: str
    max_steps: int = 300

    def forecast(  # pragma: no cover (make peers has neuralforecast, and runs it)
        self, values: Values, offsets: Offsets, h: int
    ) -> Float64[Tensor, "series h"]:
        """Forecast the `h` steps after the end of each series."""
        from neuralforecast import NeuralForecast
        from pytorch_lightning.utilities.seed import isolate_rng

        _check(values, offsets, h)
        lengths = offsets.diff()
        series = torch.arange(len(lengths)).repeat_interleave(lengths)
        steps = torch.arange(len(values)) - offsets[series]
        frame = pd.DataFrame({"unique_id": series.numpy(), "ds": steps.numpy(), "y": values.numpy()})
        # Keeps the trainer from printing and from writing logs and checkpoints.
        quiet = dict.fromkeys(("logger", "enable_progress_bar", "enable_model_summary", "enable_checkpointing"), False)
        # neuralforecast seeds the global random generators.
        with warnings.catch_warnings(), _silenced_logs(), isolate_rng(include_cuda=False):
            warnings.simplefilter("ignore")
            model = self.model(
                h=h,
                input_size=max(2 * h, min(4 * self.season, 192)),
                max_steps=self.max_steps,
                scaler_type="standard",
                start_padding_enabled=True,
                accelerator="cpu",
                alias=self.name,
                **quiet,
            )
            trained = NeuralForecast(models=[model], freq=1)
            trained.fit(frame)
            forecast = trained.predict().sort_values(["unique_id", "ds"], kind="stable")
        return torch.from_numpy(forecast[self.name].to_numpy(np.float64)).view(len(lengths), h)


def statistical_baselines(season: int, models: Sequence[str] = STATISTICAL_MODELS) -> tuple[StatisticalBaseline, ...]:
    """Make the models AutoETS and AutoTheta of statsforecast; a season of 1 is none.

    Raises:
        ImportError: When statsforecast is not installed.
        ConfigError: When there is no such model.
    """
    found = _classes(models, STATISTICAL_MODELS, _import_statsforecast, "stats")
    return tuple(StatisticalBaseline(model(season_length=season), season, name) for name, model in found.items())


def neural_baselines(season: int, models: Sequence[str] = NEURAL_MODELS) -> tuple[NeuralBaseline, ...]:
    """Make the models DLinear and N-HiTS of neuralforecast; a season of 1 is none.

    Raises:
        ImportError: When neuralforecast is not installed.
        ConfigError: When there is no such model.
    """
    found = _classes(models, NEURAL_MODELS, _import_neuralforecast, "neural")
    return tuple(NeuralBaseline(model, season, name) for name, model in found.items())


def _import_statsforecast() -> Any:
    from statsforecast import models

    return models


def _import_neuralforecast() -> Any:
    from neuralforecast import models

    return models


def _classes(names: Sequence[str], known: Sequence[str], load: Callable[[], Any], extra: str) -> dict[str, Any]:
    """Import the classes of these models from a library."""
    if unknown := [name for name in names if name not in known]:
        raise ConfigError(f"there is no baseline {unknown[0]!r} of this kind; there are {', '.join(known)}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = load()
    except ImportError as error:
        raise ImportError(f"these baselines need: pip install 'leapts[{extra}]'") from error
    return {name: getattr(module, name) for name in names}


@contextmanager
def _silenced_logs() -> Iterator[None]:  # pragma: no cover (make peers runs it)
    """Suppress messages below errors from the loggers of Lightning."""
    names = ("lightning_fabric", "pytorch_lightning", "pytorch_lightning.utilities.rank_zero")
    loggers = {logger: logger.level for logger in map(logging.getLogger, names)}
    try:
        for logger in loggers:
            logger.setLevel(logging.ERROR)
        yield
    finally:
        for logger, level in loggers.items():
            logger.setLevel(level)


def _check(values: Values, offsets: Offsets, h: int) -> None:
    if h < 1:
        raise ConfigError(f"h={h}: the horizon must be at least 1")
    if int(offsets[0]) != 0 or int(offsets[-1]) != len(values):
        raise DataError(f"offsets: must rise from 0 to {len(values)}, the number of values")
    empty = torch.nonzero(offsets.diff() <= 0).flatten()
    if len(empty):
        raise DataError(
            f"{len(empty)} of {len(offsets) - 1} series have no value to forecast from, first series "
            f"{int(empty[0])} (counted from 0); drop them"
        )
