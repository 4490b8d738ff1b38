"""The options of the estimator: read and changed by name, validated, and suggested when misspelled."""

import warnings
from collections.abc import Callable, Mapping, Sequence
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
from leapts.data.covariate_channels import ROLES
from leapts.data.covariate_tables import with_future_rows, with_static, with_static_of
from leapts.data.panel import Panel
from leapts.data.validation import read_panel
from leapts.errors import ConfigError
from leapts.forecasting.predictor import Predictor
from leapts.forecasting.trace_frame import CUTOFF
from leapts.messages import listed, nearest

P = ParamSpec("P")
R = TypeVar("R")

_COVARIATE_LISTS = ("futr_exog_list", "hist_exog_list", "stat_exog_list")
_READ_OPTIONS = ("id_col", "time_col", "target_col", "layout", "freq", "fill", "duplicates", *_COVARIATE_LISTS)
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
    "futr_df": ("X", "X_df", "exog", "known_covariates", "future_covariates"),
    "futr_exog_list": ("futr_exog", "exog_list", "known_covariates_names"),
    "hist_exog_list": ("hist_exog", "past_covariates"),
    "stat_exog_list": ("stat_exog", "static_covariates"),
    "static_df": ("static_features",),
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
    meant = _MEANT.get(name) or nearest(name, known)
    if meant in known:
        return f"did you mean {meant}?"
    if meant is not None:
        return f"did you mean LeapTS({meant}=...), an option of the model?"
    return f"there are {', '.join(known)}"


class Params:
    """The options of `LeapTS`, kept as given until a fit validates them."""

    _predictor: Predictor

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
        futr_exog_list: Sequence[str] | None = None,
        hist_exog_list: Sequence[str] | None = None,
        stat_exog_list: Sequence[str] | None = None,
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
        self.futr_exog_list = futr_exog_list
        self.hist_exog_list = hist_exog_list
        self.stat_exog_list = stat_exog_list
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

    def read_options(self, fitted: Predictor | None = None) -> ReadOptions:
        """Validate the options of reading; frequency and covariates are those of the fitted model, if there is one.

        Raises:
            ConfigError: With the option and its value.
        """
        given = {name: getattr(self, name) for name in _READ_OPTIONS}
        if fitted is not None:
            used = fitted.covariates
            names = [() if used is None else used.names(role) for role in ROLES]
            given |= {"freq": fitted.tail.freq, "is_fitted": True, **dict(zip(_COVARIATE_LISTS, names, strict=True))}
        return ReadOptions(**given)

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

    def read(self, df: Any) -> Panel:
        """Read data as this model does: validated, in the order of time.

        Args:
            df: As for `fit`; a panel is returned unchanged.
        """
        return self._panel(df, getattr(self, "_predictor", None))

    def _input(self, df: Any, fitted: Predictor | None = None, *, static_df: Any = None, futr_df: Any = None) -> Panel:
        """Read the data a method was called with, and warn about columns that are not used."""
        panel = self._panel(df, fitted, with_static=static_df is None)
        if panel is not df and panel.unused:
            warnings.warn(f"columns not used: {listed(panel.unused)}", UserWarning, stacklevel=4)
        if static_df is not None:
            names = self.read_options(fitted).stat_exog_list
            panel = with_static(panel, static_df, names)
        elif fitted is not None and fitted.covariates is not None:
            panel = with_static_of(panel, fitted.tail, fitted.places_of(panel.series))
        return panel if futr_df is None else with_future_rows(panel, futr_df, self.h)

    def _panel(self, df: Any, fitted: Predictor | None, *, with_static: bool = True) -> Panel:
        if isinstance(df, Panel):
            return df
        options = self.read_options(fitted)
        panel = read_panel(df, options if with_static else options.model_copy(update={"stat_exog_list": ()}))
        if self.alias == panel.style.time_col:  # which may have been found by another name than `time_col`
            raise ConfigError(f"alias={self.alias!r} is the name of another column; choose another")
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
