"""Options for reading data, for the model and for training: frozen, validated once, each spelled here only.

Estimator, command line and server take names, types, limits and descriptions of options from here. Torch is not
imported, so that the command line starts fast. `leapts.model.build` turns options into a model.
"""

import json
import math
import tomllib
import warnings
from collections.abc import Callable, Mapping
from numbers import Integral
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

import tomli_w
from pydantic import BeforeValidator, Field, SerializeAsAny, ValidationError, model_validator

from leapts.errors import ConfigError
from leapts.messages import explain, quoted
from leapts.parts import (
    ControlledState,
    CovariateChannels,
    EnsembleNetwork,
    HierarchicalScheduling,
    Mixing,
    Network,
    NoMixing,
    Options,
    OwnNetwork,
    SchedulingOptions,
    Size,
    StateOptions,
)
from leapts.registration import SCHEDULERS, STATE_CELLS, Registry

# What is removed from a window: its mean and spread, its last value and spread, its last value alone, or nothing.
NormalizationName = Literal["mean", "last", "shift", "none"]

Lookback = Annotated[int, Field(ge=1, le=100_000)]
Layout = Literal["auto", "long", "wide"]
Duplicates = Literal["error", "first", "last"]
Fill = Literal["interpolate", "ffill"] | float | int
TimeAxis = Literal["calendar", "row"]
Loss = Literal["quantile", "huber"]
Combine = Literal["auto", "none"]
Init = Literal["auto", "random", "pretrained"]
Point = Literal["median", "mean"]
SupportName = Literal["auto", "real", "positive", "count"]

# Quantiles that a network learns by default: for intervals of 20, 40, 60, 80, 90 and 95 %.
QUANTILES = (0.025, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.975)

MAX_PRETRAINED_HORIZON = 1_000


class RootOptions(Options):
    """Options that users pass directly; an error names the option and what it must be."""

    renamed: ClassVar[Mapping[str, str]] = {}  # old names of options, accepted until release 0.3

    if not TYPE_CHECKING:  # the checker keeps the signature that the fields give

        def __init__(self, **options: Any) -> None:
            try:
                super().__init__(**current_names(options, type(self).renamed))
            except ValidationError as error:
                raise ConfigError(explain(error, type(self).model_fields)) from None


def current_names(options: Mapping[str, Any], renamed: Mapping[str, str]) -> dict[str, Any]:
    """Replace old names of options by their current ones, with a warning."""
    for old in renamed.keys() & options.keys():
        text = f"{old} is now {renamed[old]}; the old name goes with release 0.3"
        warnings.warn(text, DeprecationWarning, stacklevel=3)
    return {renamed.get(name, name): value for name, value in options.items()}


def _valid_fill(value: Any) -> Any:
    """Accept the name of a method or a number, also one that a shell or a file gave as text."""
    if value is None or (isinstance(value, str) and value in ("interpolate", "ffill")):
        return value
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ValueError("must be interpolate, ffill or a number") from None
    if not math.isfinite(number):
        raise ValueError("must be a finite number, or the values would stay missing")
    return number


def _valid_freq(value: Any) -> Any:
    """Accept a pandas alias or a whole number, also one given as text."""
    if isinstance(value, Integral) or (isinstance(value, str) and value.removeprefix("-").isdecimal()):
        return int(value)
    if value is None or isinstance(value, str):
        return value
    raise ValueError("must be a pandas alias, such as 'D', or a whole number")


def _options_of(registry: Registry) -> BeforeValidator:
    """Validate a table by the options of the kind it names, which may be registered later than this."""

    def validate(value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        kind = value.get("kind")
        if not isinstance(kind, str) or kind not in registry.options:
            raise ValueError(registry.unknown(kind))
        return registry.options[kind].model_validate(value)

    return BeforeValidator(validate)


Scheduling = Annotated[SerializeAsAny[SchedulingOptions], _options_of(SCHEDULERS)]
State = Annotated[SerializeAsAny[StateOptions], _options_of(STATE_CELLS)]


def _split_names(value: Any) -> Any:
    """Split names given as one text: `price,promo`."""
    return tuple(filter(None, map(str.strip, value.split(",")))) if isinstance(value, str) else value


Names = Annotated[tuple[str, ...] | None, BeforeValidator(_split_names)]


class ReadOptions(RootOptions):
    """Options of reading a table, and of handling gaps and repeated rows."""

    id_col: str = Field(default="unique_id", description="column of series names, in a long table")
    time_col: str = Field(default="ds", description="column of timestamps")
    target_col: str = Field(default="y", description="column of values, in a long table")
    layout: Layout = Field(
        default="auto", description="one row for each series and timestamp (long), or one column for each series (wide)"
    )
    freq: Annotated[str | int | None, BeforeValidator(_valid_freq)] = Field(
        default=None, description="frequency: a pandas alias or a whole number; by default inferred from the data"
    )
    futr_exog_list: Names = Field(
        default=None,
        description="columns that are known over the horizon; by default those that continue in rows without a target",
    )
    hist_exog_list: Names = Field(default=None, description="columns that are known up to the forecast")
    stat_exog_list: Names = Field(default=None, description="columns that are constant in a series")
    is_fitted: bool = Field(default=False, description="whether the frequency is the one of a fitted model")
    fill: Annotated[Fill | None, BeforeValidator(_valid_fill)] = Field(
        default=None,
        description="imputation of missing values: interpolate, ffill or a number; by default they are errors",
    )
    duplicates: Duplicates = Field(default="error", description="row to keep of several with one series and timestamp")
    time: TimeAxis = Field(
        default="calendar", description="use the timestamps (calendar), or number the rows of each series (row)"
    )
    max_values: int | None = Field(
        default=None, description="limit on the values after imputation; by default in proportion to the data"
    )

    @property
    def asked(self) -> str:
        """Verb for an error message that proposes another option; a fitted model keeps its own."""
        return "fit the model with" if self.is_fitted else "pass"

    @model_validator(mode="after")
    def _columns_differ(self) -> Self:
        if len({self.id_col, self.time_col, self.target_col}) < 3:
            raise ValueError(
                f"id_col={quoted(self.id_col)}, time_col={quoted(self.time_col)} and "
                f"target_col={quoted(self.target_col)}: must be three different columns"
            )
        return self


class ModelConfig(RootOptions):
    """Options of the network: everything that defines a model, apart from its weights."""

    renamed: ClassVar[Mapping[str, str]] = {"variate_identity": "series_embedding"}
    h: Size = Field(description="steps to forecast")
    input_size: Lookback = Field(description="steps of history used for a forecast")
    n_series: Size | None = Field(default=None, description="series forecast together; by default univariate")
    hidden_size: Annotated[int, Field(ge=1, le=256)] = 64
    encoder_layers: Annotated[int, Field(ge=1, le=4)] = 2
    head_layers: Annotated[int, Field(ge=1, le=4)] = 1
    normalization: NormalizationName = "mean"
    mask: bool = Field(
        default=False, description="accept unknown steps (NaN) of the look-back, and show the encoder which they are"
    )
    lookback_pooling: bool = Field(
        default=False,
        description="encode the 128 latest steps in full, and older ones as means over 4, 16 and 64 steps",
    )
    linear_path: bool = Field(
        default=False, description="add a linear map from the look-back to the horizon to the coarse forecast"
    )
    series_embedding: bool = Field(default=False, description="a learned vector for each series")
    network: Network = OwnNetwork()
    mixing: Mixing = NoMixing()
    scheduling: Scheduling = HierarchicalScheduling()
    state: State = ControlledState()
    control_size: Size = 16
    summary_size: Size = 16
    mask_sharpness: Annotated[float, Field(gt=0)] = 0.5
    temporal_clip: tuple[Annotated[float, Field(ge=0)], Annotated[float, Field(gt=0, le=1e6)]] = (0.05, 1.0)
    quantiles: tuple[Annotated[float, Field(gt=0, lt=1)], ...] = Field(
        default=(), max_length=99, description="quantiles to learn, rising, with the median; none: a point forecast"
    )

    point: Point = Field(default="median", description="point forecast: the median, or the mean of the quantiles")
    covariates: CovariateChannels | None = Field(default=None, description="channels of covariates; set by a fit")

    @property
    def min_history(self) -> int | None:
        """Known steps that a look-back of validation or calibration needs; None if no step may be unknown."""
        return self.network.min_history(self.input_size, self.h, is_masked=self.mask)

    @property
    def clusters(self) -> int:
        """Number of groups of series, each with its own vector field."""
        return self.state.clusters if isinstance(self.state, ControlledState) else 1

    @model_validator(mode="after")
    def _parts_fit_together(self) -> Self:
        if self.temporal_clip[0] > self.temporal_clip[1]:
            raise ValueError(f"temporal_clip is (lowest, highest), not {self.temporal_clip}")
        if self.network.kind != "own" and self.h > MAX_PRETRAINED_HORIZON:
            raise ValueError(f"h={self.h}: the pretrained network forecasts from 1 to {MAX_PRETRAINED_HORIZON} steps")
        if isinstance(self.network, EnsembleNetwork) and self.network.lookback > self.input_size:
            raise ValueError(f"network.lookback={self.network.lookback}: is more than input_size={self.input_size}")
        is_rising = list(self.quantiles) == sorted(set(self.quantiles))
        if self.quantiles and not (0.5 in self.quantiles and is_rising and len(self.quantiles) > 1):
            raise ValueError(
                f"quantiles must rise and include the median 0.5 and others, unlike {list(self.quantiles)}"
            )
        clusters = self.clusters
        by_series = {
            "mixing": self.mixing.kind != "none",
            "series_embedding": self.series_embedding,
            "state.clusters": clusters > 1,
        }
        if self.n_series is None and any(by_series.values()):
            used = ", ".join(name for name, is_used in by_series.items() if is_used)
            raise ValueError(f"{used} needs n_series: the number of series that are forecast together")
        if self.n_series is not None and clusters > self.n_series:
            raise ValueError(f"state.clusters is {clusters}, but there are only {self.n_series} series to group")
        return self

    @classmethod
    def from_toml(cls, text: str) -> Self:
        """Read options from TOML."""
        return cls(**_parsed(tomllib.loads, text, "TOML"))

    def to_toml(self) -> str:
        """Convert options to TOML, without those that are None."""
        return tomli_w.dumps(self.model_dump(mode="json", exclude_none=True))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read options from JSON."""
        return cls(**_parsed(json.loads, text, "JSON"))

    def to_json(self) -> str:
        """Convert options to JSON."""
        return self.model_dump_json(indent=2)


class TrainingConfig(RootOptions):
    """Options of training. All random numbers follow from the seed and the step, so training can resume exactly."""

    renamed: ClassVar[Mapping[str, str]] = {"teachers": "distill_from"}
    max_steps: Size = Field(default=1000, description="training steps")
    max_rounds: Size = Field(
        default=1,
        description="rounds of max_steps while validation improves, each at half the learning rate of the one before",
    )
    batch_size: Size = Field(default=32, description="windows per training step")
    val_check_steps: Size = Field(default=50, description="training steps between validation checks")
    patience: Annotated[int, Field(ge=0)] = Field(
        default=5, description="validation checks without improvement before training stops early; 0: never"
    )
    learning_rate: Annotated[float, Field(gt=0)] = Field(default=2e-3, description="learning rate of the first step")
    huber_delta: Annotated[float, Field(gt=0)] = Field(
        default=0.1, description="where the loss turns from squared to absolute, in standardised units"
    )
    gradient_clip: Annotated[float, Field(gt=0)] = 1.0
    distill_from: Annotated[int, Field(ge=0)] = Field(
        default=0,
        description="teachers for knowledge distillation, fitted first; half of the target is their mean forecast",
    )
    random_seed: Annotated[int, Field(ge=0, lt=2**63)] = Field(default=1, description="seed of all random numbers")


class FitConfig(RootOptions):
    """Options of a fit, as a user gives them. Those that are None or left out are chosen from the data."""

    h: Size = Field(description="steps to forecast")
    input_size: Lookback | None = Field(default=None, description="steps of history used for a forecast")
    val_size: Annotated[int, Field(ge=0)] | None = Field(
        default=None, description="steps at the end of each series held out for validation and calibration; 0: none"
    )
    pad_short: bool = Field(default=True, description="accept series shorter than a window, padded with unknown steps")
    loss: Loss = Field(
        default="quantile", description="learn quantiles by the pinball loss, or a point forecast by the Huber loss"
    )
    support: SupportName | tuple[float, float] = Field(
        default="auto",
        description="values that can occur: any (real), none below 0 (positive), whole numbers from 0 (count), or two "
        "limits; auto: found for each series",
    )
    point: Point = Field(
        default="median", description="point forecast: the median, or the mean, whose totals are unbiased"
    )
    combine: Combine = Field(
        default="auto", description="combine the network with simple forecasts by their validation errors, or do not"
    )
    init: Init = Field(
        default="random",
        description="start from random weights, or fine-tune the pretrained network; auto: from random weights, then "
        "the pretrained network or the mean of both where validation prefers it",
    )
    alias: str = Field(default="LeapTS", description="name of the column of forecasts")
    model: Mapping[str, Any] = Field(default={}, description="options of ModelConfig, by name")
    training: Mapping[str, Any] = Field(default={}, description="options of TrainingConfig, by name")

    @property
    def may_use_pretrained(self) -> bool:
        """Whether the network is left open: options of a network or of its training ask for that network."""
        given = self.model or self.training.keys() - {"random_seed"} or self.input_size is not None
        is_possible = self.loss == "quantile" and self.h <= MAX_PRETRAINED_HORIZON and self.val_size != 0
        return self.init == "auto" and is_possible and not given

    @model_validator(mode="after")
    def _validation_holds_a_window(self) -> Self:
        require_val_size(self.val_size, self.h)
        if isinstance(self.support, tuple) and not self.support[0] < self.support[1]:
            raise ValueError(f"support={self.support}: the first limit must be below the second")
        return self


def require_val_size(val_size: int | None, h: int) -> None:
    """Refuse held-out steps that are too few for one window, with a ValueError."""
    if val_size and val_size < h:
        raise ValueError(f"val_size={val_size}: must be at least the horizon {h}, or 0 for no validation")


def _parsed(parse: Callable[[str], Any], text: str, language: str) -> dict[str, Any]:
    try:
        options = parse(text)
    except ValueError as error:
        raise ConfigError(f"the options are not valid {language}: {error}") from None
    if not isinstance(options, dict):
        raise ConfigError(f"the options must be a table of names and values, not {options!r}")
    return options
