"""`LeapTS`: from a table of data to a forecast."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from numbers import Real
from pathlib import Path
from typing import Any, Self

import numpy as np
from pydantic import ValidationError, validate_call
from pydantic_core import to_jsonable_python

from leapts.config import Duplicates, Fill, Layout, ReadOptions
from leapts.data.frames import forecast_frame
from leapts.data.panel import Panel
from leapts.data.validation import read_panel, require_length
from leapts.errors import ConfigError, ModelFileError, NotFittedError
from leapts.forecasting.auto_config import Pick
from leapts.forecasting.cross_validation import CUTOFF, backtest, coverage_reached
from leapts.forecasting.fit import FitOptions, calibrated, continue_fit, fit_panel
from leapts.forecasting.intervals import Level, interval_bounds, quantile_bounds
from leapts.forecasting.predictor import Fitted, PanelForecast
from leapts.forecasting.trace_frame import trace_of
from leapts.messages import counted, explain
from leapts.persistence import save as folder
from leapts.training.distributed import Workers
from leapts.training.early_stopping import TrainingReport
from leapts.training.loop import Progress


class LeapTS:
    """Forecasts many series many steps ahead, and shows how it got there.

    Only `h` is needed: what is left out is picked from the data, and `picked_` says what and why.

    Args:
        h: Steps to forecast.
        input_size: Steps of history a forecast looks back on.
        freq: The data's frequency, a pandas alias or an integer step; found from the timestamps if left out.
        id_col: The column of series names.
        time_col: The column of timestamps.
        target_col: The column of values.
        layout: `long`, `wide`, or `auto`: by the columns.
        fill: What to do with gaps and missing values: nothing (they are errors), `interpolate`, `ffill`, or a number.
        duplicates: What to do with rows that repeat a series and timestamp: `error`, `first` or `last`.
        pad_short: Whether to take series shorter than a window, with their first value repeated in front.
        val_size: Steps at the end of every series held out to choose the weights and calibrate intervals by.
        max_steps: Steps of training.
        batch_size: Windows in a step.
        learning_rate: Of the first step; it falls from there.
        random_seed: The same seed, the same forecast.
        model: Further options of the model, see `leapts.config.ModelConfig`.
        training: Further options of the training, see `leapts.config.TrainingConfig`.
        alias: What the forecast's columns are called.
    """

    def __init__(
        self,
        h: int,
        input_size: int | None = None,
        freq: str | int | None = None,
        *,
        id_col: str = "unique_id",
        time_col: str = "ds",
        target_col: str = "y",
        layout: Layout = "auto",
        fill: Fill | None = None,
        duplicates: Duplicates = "error",
        pad_short: bool = False,
        val_size: int | None = None,
        max_steps: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        random_seed: int = 1,
        model: Mapping[str, Any] | None = None,
        training: Mapping[str, Any] | None = None,
        alias: str = "LeapTS",
    ) -> None:
        self.h = h
        self.input_size = input_size
        self.freq = freq
        self.id_col = id_col
        self.time_col = time_col
        self.target_col = target_col
        self.layout = layout
        self.fill = fill
        self.duplicates = duplicates
        self.pad_short = pad_short
        self.val_size = val_size
        self.max_steps = max_steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.random_seed = random_seed
        self.model = model
        self.training = training
        self.alias = alias

    def fit(
        self,
        df: Any,
        *,
        progress: Progress | None = None,
        checkpoint_dir: str | Path | None = None,
        resume: bool = False,
        workers: Workers | None = None,
    ) -> Self:
        """Fit a fresh model.

        Args:
            df: A frame (pandas, polars, pyarrow), or the path of a CSV or Parquet file, or `-` for standard input.
            progress: Called after every step of training.
            checkpoint_dir: A folder to keep the state of training in, so that it can go on after a crash.
            resume: Whether to go on from what is in that folder.
            workers: The processes to train with. By default those of torch's process group, if this process is in one:
                all of them call `fit` alike, and all end with the same model. `SingleProcess()` fits apart.

        Raises:
            DataError: When the data cannot be used, naming the place and the cure.
            TrainingError: When training diverged; the last good weights are kept, and can forecast.
            FolderInUseError: When another fit keeps its state in that folder.
            WorkerLostError: When one of the other processes is gone; `resume` goes on from the checkpoint.
        """
        if resume and checkpoint_dir is None:
            raise ConfigError("resume=True needs checkpoint_dir: the folder the interrupted run kept its state in")
        self._fitted = fit_panel(
            self._read(df),
            self._fit_options(),
            progress=progress,
            checkpoint_dir=checkpoint_dir,
            resume=resume,
            on_failure=self._keep,
            workers=workers,
        )
        return self

    def predict(
        self,
        df: Any = None,
        *,
        level: Sequence[Level] | None = None,
        quantiles: Sequence[float] | None = None,
        return_trace: bool = False,
    ) -> Any:
        """Forecast the `h` steps after the end of every series.

        Args:
            df: History to forecast from, of the fitted series or of others; by default the data of the fit. A model
                that mixes its series needs just those.
            level: Intervals to give, in percent: `[80, 95]`.
            quantiles: Quantiles to give instead of intervals: `[0.1, 0.9]`.
            return_trace: Whether to give the trace too: one row for each leap; `trace.to_frame()` is a frame of them.

        Returns:
            A frame of the kind that came in, with a row for each series and step; with the trace, both.
        """
        fitted = self._require_fitted()
        panel = fitted.tail if df is None else self._read(df, freq=fitted.tail.freq)
        forecast = fitted.forecast(panel, "leaps" if return_trace else "nothing")
        frame = forecast_frame(forecast.panel, self._columns(fitted, forecast, level, quantiles), fitted.config.h)
        return (frame, trace_of(forecast)) if return_trace else frame

    def cross_validation(
        self,
        df: Any,
        n_windows: int = 1,
        *,
        step_size: int | None = None,
        refit: bool = False,
        level: Sequence[Level] | None = None,
        return_coverage: bool = False,
        progress: Progress | None = None,
        on_fit: Callable[["LeapTS"], None] | None = None,
    ) -> Any:
        """Forecast the last windows of the data as if they were not known yet. The fitted model is not touched.

        Args:
            df: The data. Gaps that `fill` would interpolate are filled with the last value before them.
            n_windows: How many windows, counted back from the end.
            step_size: How far apart they are; by default `h`, so that they do not overlap.
            refit: Whether to fit anew before every window, instead of once before the first.
            level: Intervals to give, in percent.
            return_coverage: Whether to say too how much of the actual values the intervals of each level held.
            progress: Called after every step of training.
            on_fit: Given each model that was fitted, before it forecasts.

        Returns:
            A frame with the columns of a forecast, the cutoff, and the actual values; with the coverage, both, the
            latter as `{80: 0.79, 95: 0.94}`.
        """
        h = self.checked().h
        n_windows, step = _whole("n_windows", n_windows), h if step_size is None else _whole("step_size", step_size)
        if n_windows < 1 or step < 1:
            raise ConfigError(f"n_windows={n_windows} and step_size={step} must be at least 1")
        panel = self._read(df).without_lookahead()
        if CUTOFF in (panel.style.id_col, panel.style.time_col, panel.style.target_col):
            raise ConfigError(f"a back-test has a column {CUTOFF!r} of its own; give the data's another name")
        levels = _listed("level", level)
        interval_bounds(levels, self.alias)  # refuses what cannot be, before the fit
        held_out = h + step * (n_windows - 1)
        purpose = f"a back-test with {counted(n_windows, 'window')} of {h} steps, and something to fit on,"
        require_length(panel, held_out + h + 2, purpose, hint="ask for fewer windows or a shorter horizon")

        def fit(known: Panel) -> Fitted:
            fitted = fit_panel(known, self._fit_options(), progress=progress, levels=levels)
            if on_fit is not None:
                twin = LeapTS(**self.get_params())
                twin._keep(fitted)
                on_fit(twin)
            return fitted

        def columns(fitted: Fitted, forecast: PanelForecast) -> dict[str, np.ndarray[Any, Any]]:
            return self._columns(fitted, forecast, level, None)

        frame = backtest(panel, h, n_windows, step, fit=fit, refit=refit, columns=columns)
        if not return_coverage:
            return frame
        return frame, coverage_reached(frame, levels, self.alias, panel.style.target_col)

    def update(self, df: Any, *, max_steps: int | None = None, progress: Progress | None = None) -> Self:
        """Go on training from the present weights on newer data; the scaling of known series stays, if they had moved.

        The end of every series is held out as by `fit`, to choose the weights and measure the intervals by.

        Args:
            df: The data, as for `fit`.
            max_steps: Steps of training; by default a fifth of the first fit's.
            progress: Called after every step.
        """
        fitted = self._require_fitted()
        self._fitted = continue_fit(
            fitted,
            self._read(df, freq=fitted.tail.freq),
            val_size=self.checked().val_size,
            max_steps=None if max_steps is None else _whole("max_steps", max_steps),
            progress=progress,
        )
        return self

    def calibrate(self, df: Any) -> Self:
        """Measure the intervals anew, on data the model was not fitted on.

        Args:
            df: History with windows of `input_size + h` steps: those of any series count, but a model that mixes its
                series needs one in each.
        """
        fitted = self._require_fitted()
        panel = fitted.accepted(self._read(df, freq=fitted.tail.freq).without_lookahead())
        self._fitted = replace(fitted, scores=calibrated(fitted, panel))
        return self

    def save(self, path: str | Path) -> None:
        """Write the model as a folder: `config.json`, `model.safetensors` and a model card, in one move."""
        folder.save(self._require_fitted(), self.plain_params(), Path(path))

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a model folder.

        Raises:
            ModelFileError: When it is not one, is damaged, or was written by a newer version.
        """
        fitted, params = folder.load(Path(path))
        model = cls.__new__(cls)
        try:
            # The signature says what each option may be; a folder may say anything.
            _typed(is_strict=True)(model, **params)
        except (ValidationError, TypeError) as error:
            why = " ".join(str(error).split())[:200]
            raise ModelFileError(f"{path} does not hold options of a model ({why}); fit or copy it again") from error
        model._fitted = fitted
        return model

    def read(self, df: Any) -> Panel:
        """Data as this model reads it: validated, in the order of time.

        Args:
            df: As for `fit`; a panel is taken as it is.
        """
        freq = self._fitted.tail.freq if hasattr(self, "_fitted") else None
        return self._read(df, freq=freq)

    @property
    def fitted_(self) -> Fitted:
        """Everything the fit left behind."""
        return self._require_fitted()

    @property
    def picked_(self) -> tuple[Pick, ...]:
        """What was picked automatically, and why."""
        return self._require_fitted().picks

    @property
    def report_(self) -> TrainingReport:
        """How training went."""
        return self._require_fitted().report

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002
        """The options as given."""
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}

    def set_params(self, **params: Any) -> Self:
        """Change options; takes effect with the next fit."""
        for name, value in params.items():
            if name not in self.get_params():
                raise ConfigError(f"there is no option {name!r}; there are {', '.join(self.get_params())}")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        state = "fitted" if hasattr(self, "_fitted") else "not fitted"
        return f"LeapTS(h={self.h}, input_size={self.input_size}, freq={self.freq!r}; {state})"

    def checked(self) -> "LeapTS":
        """The same options, each of the type that the signature says: 7 where 7.0 or numpy's 7 was given.

        Raises:
            ConfigError: Naming the option that cannot be.
        """
        twin = object.__new__(LeapTS)
        try:
            _typed(is_strict=False)(twin, **self.get_params())
        except ValidationError as error:
            raise ConfigError(explain(error)) from None
        return twin

    def plain_params(self) -> dict[str, Any]:
        """The options as files can hold them: numbers, text, and tables of such.

        Raises:
            ConfigError: Naming the option that cannot be.
        """
        plain: dict[str, Any] = to_jsonable_python(self.checked().get_params(), fallback=lambda number: number.item())
        return plain

    def _keep(self, fitted: Fitted) -> None:
        self._fitted = fitted

    def _require_fitted(self) -> Fitted:
        if not hasattr(self, "_fitted"):
            raise NotFittedError("this LeapTS is not fitted yet; call fit first, or load a saved model")
        return self._fitted

    def _read(self, df: Any, *, freq: str | int | None = None) -> Panel:
        if isinstance(df, Panel):
            return df
        given = self.checked()
        options = ReadOptions(
            id_col=given.id_col,
            time_col=given.time_col,
            target_col=given.target_col,
            layout=given.layout,
            freq=given.freq if freq is None else freq,
            is_fitted=freq is not None,
            fill=given.fill,
            duplicates=given.duplicates,
        )
        panel = read_panel(df, options)
        if given.alias == panel.style.time_col:  # which may have been found by another name than `time_col`
            raise ConfigError(_alias_taken(given.alias))
        return panel

    def _fit_options(self) -> FitOptions:
        given = self.checked()
        taken = {given.id_col, given.time_col, given.target_col, CUTOFF}
        if given.alias in taken:
            raise ConfigError(_alias_taken(given.alias))
        training = {"max_steps": given.max_steps, "batch_size": given.batch_size, "learning_rate": given.learning_rate}
        return FitOptions(
            h=given.h,
            input_size=given.input_size,
            val_size=given.val_size,
            pad_short=given.pad_short,
            model=dict(given.model or {}),
            training={
                "random_seed": given.random_seed,
                **(given.training or {}),
                **{name: value for name, value in training.items() if value is not None},
            },
        )

    def _columns(
        self,
        fitted: Fitted,
        forecast: PanelForecast,
        level: Sequence[Level] | None,
        quantiles: Sequence[float] | None,
    ) -> dict[str, np.ndarray[Any, Any]]:
        columns = {self.alias: forecast.values}
        if level is not None and quantiles is not None:
            raise ConfigError("give level or quantiles, not both")
        bounds = (
            interval_bounds(_listed("level", level), self.alias)
            if quantiles is None
            else quantile_bounds(_listed("quantiles", quantiles), self.alias)
        )
        if bounds:
            groups = fitted.score_groups(forecast.panel)
            columns |= fitted.require_scores().around(forecast.values, forecast.scale, bounds, groups)
        return {name: values.numpy() for name, values in columns.items()}


@cache
def _typed(*, is_strict: bool) -> Callable[..., None]:
    """The constructor, with every option checked against its annotation; made into it first, unless strict."""
    return validate_call(config={"strict": is_strict})(LeapTS.__init__)


def _alias_taken(alias: str) -> str:
    return f"alias={alias!r} is the name of another column; choose another"


def _whole(name: str, value: Any) -> int:
    """A whole number, whatever holds it: 7 where 7.0 or numpy's 7 was given."""
    if not isinstance(value, Real) or not float(value).is_integer():
        raise ConfigError(f"{name}={value!r} is not a whole number")
    return int(float(value))


def _listed(name: str, values: Any) -> list[Level]:
    """Levels or quantiles as a list, whatever holds them."""
    if isinstance(values, Real):
        raise ConfigError(f"{name}={values} is a single number; give a list of them: {name}=[{values}]")
    if values is None:
        return []
    # By way of its text, a number of single precision is the one that was written: 0.1, not 0.10000000149011612.
    plain = [float(str(one)) if isinstance(one, np.floating) else one for one in values]
    return [one.item() if isinstance(one, np.generic) else one for one in plain]
