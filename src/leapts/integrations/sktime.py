"""LeapTS as a forecaster of sktime: univariate, multivariate, panel and hierarchical data, with intervals."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch

from leapts.data.panel import Panel
from leapts.errors import ConfigError, DataError
from leapts.forecasting import LeapTS
from leapts.forecasting.forecast import Forecast

try:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from sktime.datatypes import update_data
        from sktime.forecasting.base import BaseForecaster, ForecastingHorizon
except ImportError as error:
    raise ImportError("the sktime integration needs: pip install 'leapts[sktime]'") from error

Values = npt.NDArray[np.float64]


class LeapTSForecaster(BaseForecaster):
    """LeapTS for sktime: one model for all series and variables, with the largest step of `fh` as its horizon.

    Series may have different lengths and ends; each is forecast from its own end. Options that are not given are chosen
    from the data. Time is counted in steps, so the only seasons are those that the data show; where these are too few,
    give `input_size`.

    Intervals and quantiles are learned, and calibrated on windows held out of training (`val_size`). If the series are
    too short for that, they are calibrated on training windows and are too narrow; `intervals_from_` says which. After
    the fit, `forecaster_` is the `leapts.LeapTS`.

    The options are those of `leapts.LeapTS`; `update_steps` is the number of training steps of an update, by default a
    fifth of those of the fit.

    Examples:
        >>> from leapts.integrations.sktime import LeapTSForecaster
        >>> from sktime.datasets import load_airline
        >>> forecaster = LeapTSForecaster(input_size=24, max_steps=20)
        >>> forecaster.fit(load_airline(), fh=[1, 2, 3]).predict().shape
        (3,)
    """

    _tags = {  # noqa: RUF012
        "authors": "the LeapTS authors",
        "python_dependencies": ["torch"],
        "capability:multivariate": True,
        "capability:exogenous": False,
        "capability:insample": False,
        "capability:pred_int": True,
        "capability:pred_int:insample": False,
        "capability:missing_values": False,
        "capability:update": True,
        "requires-fh-in-fit": True,
        "y_inner_mtype": ["pd.DataFrame", "pd-multiindex", "pd_multiindex_hier"],
        "X_inner_mtype": ["pd.DataFrame", "pd-multiindex", "pd_multiindex_hier"],
    }

    def __init__(
        self,
        input_size: int | None = None,
        val_size: int | None = None,
        max_steps: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        update_steps: int | None = None,
        random_seed: int = 1,
        model: Mapping[str, Any] | None = None,
        training: Mapping[str, Any] | None = None,
    ) -> None:
        # sktime requires an attribute for each parameter, with the value as it was given.
        self.__dict__.update({name: value for name, value in locals().items() if name not in ("self", "__class__")})
        super().__init__()

    def _fit(self, y: pd.DataFrame, X: Any, fh: ForecastingHorizon) -> "LeapTSForecaster":  # noqa: ARG002, N803
        instances = _instances(y)
        if fh.is_relative:
            _refuse_timestamps_without_frequency(instances)
        options = {name: value for name, value in self.get_params(deep=False).items() if name != "update_steps"}
        h = max(int(_steps(fh, part).max()) for _, part in instances)
        self.forecaster_ = LeapTS(h, pad_short=True, **options)
        panel = _panel(instances)
        self.forecaster_.fit(panel)
        self.intervals_from_ = "held-out windows"
        if self.forecaster_.predictor_.calibration is None:
            self.intervals_from_ = "training windows"
            self.forecaster_.calibrate(panel)
        self._history = y
        return self

    def _update(self, y: pd.DataFrame, X: Any = None, update_params: bool = True) -> "LeapTSForecaster":  # noqa: ARG002, N803
        self._history = update_data(self._history, y)
        if update_params:
            self.forecaster_.update(_panel(_instances(self._history)), max_steps=self.update_steps)
            if self.forecaster_.report_.best_validation is not None:
                self.intervals_from_ = "held-out windows"
        return self

    def _predict(self, fh: ForecastingHorizon, X: Any) -> pd.DataFrame:  # noqa: ARG002, N803
        return self._framed(fh, self._history.columns, self._forecast().values[:, None].numpy())

    def _predict_quantiles(self, fh: ForecastingHorizon, X: Any, alpha: Sequence[float]) -> pd.DataFrame:  # noqa: ARG002, N803
        forecast = self._forecast()
        # sktime computes alpha from levels, with rounding errors in the last digit, and may repeat one.
        wanted = [round(each, 11) for each in alpha]
        distinct = list(dict.fromkeys(wanted))
        _, *values = forecast.columns(quantiles=distinct).values()
        by_alpha = dict(zip(distinct, values, strict=True))
        columns = pd.MultiIndex.from_product([self._get_varnames(), alpha])
        return self._framed(fh, columns, np.stack([by_alpha[each] for each in wanted], 1))

    def _forecast(self) -> Forecast:
        """Forecast in the order of the history; a multivariate model forecasts in its own order."""
        panel = _panel(_instances(self._history))
        predictor = self.forecaster_.predictor_
        return predictor.predict(predictor.windows(panel)).select(panel.series)

    def _framed(self, fh: ForecastingHorizon, columns: pd.Index, values: Values) -> pd.DataFrame:
        """Convert forecasts [series, kinds, steps] to a frame with columns (variable, kind)."""
        instances = _instances(self._history)
        blocks = values.reshape(len(instances), len(columns), -1)
        frames = []
        for (_, part), block in zip(instances, blocks, strict=True):
            steps = _steps(fh, part)
            if steps.min() < 1 or steps.max() > block.shape[1]:
                raise ConfigError(
                    f"fh has steps {steps.min()} to {steps.max()} after the end of a series, and the model was "
                    f"fitted for steps 1 to {block.shape[1]}; fit again with this fh"
                )
            index = fh.to_absolute_index(_cutoff(part))
            frames.append(pd.DataFrame(block[:, steps - 1].T, index=index, columns=columns))
        if not isinstance(self._history.index, pd.MultiIndex):
            return frames[0]
        joined = pd.concat(frames, keys=[key for key, _ in instances])
        joined.index.names = self._history.index.names
        return joined

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:  # noqa: ARG003
        """Return options of small models for the tests of sktime."""
        return [
            {"input_size": 4, "max_steps": 2, "update_steps": 1, "model": {"hidden_size": 4}},
            {"max_steps": 2, "val_size": 0, "learning_rate": 1e-3, "model": {"hidden_size": 4, "scheduling": "flat"}},
        ]


Instances = list[tuple[Any, pd.DataFrame]]


def _instances(y: pd.DataFrame) -> Instances:
    """Return all instances of a panel or hierarchy with their names; a single one has the name ()."""
    if not isinstance(y.index, pd.MultiIndex):
        return [((), y)]
    levels = list(range(y.index.nlevels - 1))
    # For a list of one level, some versions of pandas return names as tuples.
    groups = y.groupby(level=levels if len(levels) > 1 else 0, sort=False, observed=True)
    return [(key, part.droplevel([*levels])) for key, part in groups]


def _panel(instances: Instances) -> Panel:
    """Convert each variable of each instance to a series, with time counted in steps."""
    times = instances[0][1].index
    for _, part in instances[1:]:
        times = times.union(part.index)
    for key, part in instances:
        steps = np.diff(part.index.asi8) if isinstance(part.index, pd.PeriodIndex) else np.ones(1)
        if (steps != 1).any():  # an integer index is read as consecutive steps
            before = part.index[int(np.argmax(steps != 1))]
            raise DataError(f"{_named(key)} has no value for {before + 1}; add it, for example with an Imputer")
    starts = [times.get_loc(part.index[0]) for _, part in instances]
    columns = instances[0][1].columns
    values = [part.to_numpy(dtype=np.float64).T.reshape(-1) for _, part in instances]
    lengths = np.repeat([len(part) for _, part in instances], len(columns))
    return Panel(
        values=torch.from_numpy(np.concatenate(values)),
        offsets=torch.from_numpy(np.append(0, lengths.cumsum())),
        series=tuple(repr((key, column)) for key, _ in instances for column in columns),
        first=np.repeat(np.array(starts, dtype=np.int64), len(columns)),
        freq=1,
    )


def _refuse_timestamps_without_frequency(instances: Instances) -> None:
    """Refuse timestamps without a frequency, for which forecasts would have no timestamps."""
    for key, part in instances:
        last = _cutoff(part)
        if isinstance(last, pd.DatetimeIndex) and last.freq is None:
            raise DataError(
                f"the timestamps of {_named(key)} have no frequency; add missing ones, for daily data with "
                "y.asfreq('D') and an Imputer, or use an integer index"
            )


def _named(key: Any) -> str:
    return f"instance {key!r}" if key != () else "the series"


def _cutoff(part: pd.DataFrame) -> pd.Index:
    """Return the last timestamp as an index with its frequency."""
    index = part.index
    if isinstance(index, pd.DatetimeIndex) and index.freq is None:
        index = pd.DatetimeIndex(index, freq="infer")
    return index[-1:]


def _steps(fh: ForecastingHorizon, part: pd.DataFrame) -> npt.NDArray[np.int64]:
    """Return the horizon as steps after the end of a series."""
    steps: npt.NDArray[np.int64] = fh.to_relative(_cutoff(part)).to_numpy().astype(np.int64)
    return steps
