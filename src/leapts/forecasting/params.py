"""The options of the estimator: read and changed by name, validated, and suggested when misspelled."""

import warnings
from collections.abc import Callable, Mapping
from functools import wraps
from inspect import signature
from numbers import Real
from typing import Any, ParamSpec, Self, TypeVar

from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from leapts.config import (
    Combine,
    Duplicates,
    Fill,
    FitConfig,
    Init,
    Layout,
    Loss,
    ModelConfig,
    Point,
    ReadOptions,
    SupportName,
    TrainingConfig,
)
from leapts.data.panel import Panel
from leapts.data.validation import read_panel
from leapts.errors import ConfigError
from leapts.forecasting.trace_frame import CUTOFF
from leapts.messages import listed, nearest

P = ParamSpec("P")
R = TypeVar("R")

_READ_OPTIONS = ("id_col", "time_col", "target_col", "layout", "freq", "fill", "duplicates")
_TRAINING_OPTIONS = ("max_steps", "batch_size", "learning_rate", "random_seed")
_FIT_OPTIONS = ("h", "input_size", "val_size", "pad_short", "combine", "point", "loss", "support", "init", "alias")

# Names people type, by the name they have here.
_SYNONYMS = {
    "h": ("horizon", "forecast_horizon", "prediction_length", "pred_len", "output_chunk_length", "fh", "n_ahead"),
    "input_size": ("lookback", "look_back", "context_length", "seq_len", "input_chunk_length", "window", "window_size"),
    "max_steps": ("epochs", "max_epochs", "n_epochs", "num_epochs", "iterations", "steps"),
    "learning_rate": ("lr",),
    "random_seed": ("seed", "random_state"),
    "freq": ("frequency",),
    "level": ("levels", "confidence", "coverage", "prediction_intervals"),
    "quantiles": ("quantile", "quantile_levels"),
    "val_size": ("validation_size", "val_length"),
    "id_col": ("id_column", "item_id"),
    "time_col": ("timestamp_col", "date_col", "timestamp_column"),
    "target_col": ("target", "value_col", "y_col"),
    "n_windows": ("windows", "folds", "n_folds", "n_splits"),
    "step_size": ("stride",),
    "df": ("data", "y", "train_df"),
}
_COVARIATES = {
    *("futr_df", "static_df", "futr_exog_list", "hist_exog_list", "stat_exog_list", "X", "X_df", "exog"),
    *("past_covariates", "future_covariates", "known_covariates"),
}
_RENAMED = {"fitted_": "predictor_", "picked_": "auto_config_"}  # attributes of release 0.1.0
_MEANT = {typed: name for name, typed_names in _SYNONYMS.items() for typed in typed_names}


def suggest_names(method: Callable[P, R]) -> Callable[P, R]:
    """Make a method answer an unknown option with the name that was probably meant."""
    known = [name for name in signature(method).parameters if name != "self"]
    where = "LeapTS" if method.__name__ == "__init__" else f"LeapTS.{method.__name__}"

    @wraps(method)
    def call(*args: P.args, **options: P.kwargs) -> R:
        for name in options:
            if name not in known:
                raise ConfigError(f"{where} has no option {name!r}; {_suggestion(name, known)}")
        return method(*args, **options)

    return call


def _suggestion(name: str, known: list[str]) -> str:
    if name in _COVARIATES:
        return "LeapTS does not use covariates; leave it out"
    meant = _MEANT.get(name) or nearest(name, known)
    if meant in known:
        return f"did you mean {meant}?"
    if meant is not None:
        return f"did you mean LeapTS({meant}=...), an option of the model?"
    return f"there are {', '.join(known)}"


class Params:
    """The options of `LeapTS`, kept as given until a fit validates them."""

    @suggest_names
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
        pad_short: bool = True,
        loss: Loss = "quantile",
        support: SupportName | tuple[float, float] = "auto",
        combine: Combine = "auto",
        init: Init = "random",
        point: Point = "median",
        val_size: int | None = None,
        max_steps: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        random_seed: int = 1,
        model: Mapping[str, Any] | ModelConfig | None = None,
        training: Mapping[str, Any] | TrainingConfig | None = None,
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
        self.loss = loss
        self.support = support
        self.combine = combine
        self.init = init
        self.point = point
        self.val_size = val_size
        self.max_steps = max_steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.random_seed = random_seed
        self.model = model
        self.training = training
        self.alias = alias

    def __getattr__(self, name: str) -> Any:
        # Reached only for names that are not there.
        if name not in _RENAMED:
            raise AttributeError(f"LeapTS has no attribute {name!r}")
        text = f"{name} is now {_RENAMED[name]}; the old name goes with release 0.3"
        warnings.warn(text, DeprecationWarning, stacklevel=2)
        return getattr(self, _RENAMED[name])

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002 - scikit-learn's signature
        """Return the options as given."""
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}

    def set_params(self, **params: Any) -> Self:
        """Change options, for the next fit."""
        known = list(self.get_params())
        for name, value in params.items():
            if name not in known:
                raise ConfigError(f"LeapTS has no option {name!r}; {_suggestion(name, known)}")
            setattr(self, name, value)
        return self

    def fit_config(self) -> FitConfig:
        """Validate the options of a fit.

        Raises:
            ConfigError: With the option and its value.
        """
        if self.alias in (self.id_col, self.time_col, self.target_col, CUTOFF):
            raise ConfigError(f"alias={self.alias!r} is the name of another column; choose another")
        direct = {"max_steps": self.max_steps, "batch_size": self.batch_size, "learning_rate": self.learning_rate}
        given = {name: value for name, value in direct.items() if value is not None}
        training = {"random_seed": self.random_seed, **given_options("training", self.training), **given}
        options = {name: getattr(self, name) for name in _FIT_OPTIONS}
        return FitConfig(**options, model=given_options("model", self.model), training=training)

    def read_options(self, freq: str | int | None = None) -> ReadOptions:
        """Validate the options of reading; a frequency given here is that of the fitted model.

        Raises:
            ConfigError: With the option and its value.
        """
        given = {name: getattr(self, name) for name in _READ_OPTIONS}
        return ReadOptions(**(given if freq is None else {**given, "freq": freq, "is_fitted": True}))

    def plain_params(self) -> dict[str, Any]:
        """Return the options as files can hold them: numbers, text, and tables of these.

        Raises:
            ConfigError: When an option is impossible.
        """
        params, config = self.get_params(), self.fit_config()
        training = TrainingConfig(**config.training)
        params |= {name: getattr(training, name) for name in _TRAINING_OPTIONS if params[name] is not None}
        params |= config.model_dump(include=set(_FIT_OPTIONS))
        params |= self.read_options().model_dump(include=set(_READ_OPTIONS))
        params |= {name: given_options(name, params[name]) or None for name in ("model", "training")}
        plain: dict[str, Any] = to_jsonable_python(params, fallback=lambda number: number.item())
        return plain

    def _panel(self, df: Any, freq: str | int | None) -> Panel:
        if isinstance(df, Panel):
            return df
        panel = read_panel(df, self.read_options(freq))
        if self.alias == panel.style.time_col:  # which may have been found by another name than `time_col`
            raise ConfigError(f"alias={self.alias!r} is the name of another column; choose another")
        return panel

    def _input(self, df: Any, freq: str | int | None = None) -> Panel:
        """Read the data a method was called with, and warn about columns that are not used."""
        panel = self._panel(df, freq)
        if panel is not df and panel.unused:
            warnings.warn(f"columns not used: {listed(panel.unused)}", UserWarning, stacklevel=4)
        return panel


def given_options(name: str, options: Mapping[str, Any] | BaseModel | None) -> dict[str, Any]:
    """Options that a user set, from a mapping or from a config object."""
    if isinstance(options, BaseModel):
        return {name: getattr(options, name) for name in sorted(options.model_fields_set)}
    if options is not None and not isinstance(options, Mapping):
        raise ConfigError(f"{name}={options!r}: must be a table of options, or a config object")
    return dict(options or {})


def whole_number(name: str, value: Any) -> int:
    """Convert a whole number of any type, such as 7.0 or numpy's 7, to an integer."""
    if not isinstance(value, Real) or not float(value).is_integer():
        raise ConfigError(f"{name}={value!r} is not a whole number")
    return int(float(value))
