"""JSON schemas of requests and responses."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, FailFast, Field

from leapts.config import Layout

MAX_INTEGER = 2**53  # the largest that every JSON parser reads exactly
MAX_SAMPLES = 1000  # sample paths in one request
_Integer = Annotated[int, Field(ge=-MAX_INTEGER, le=MAX_INTEGER)]
_Value = Annotated[float, Field(allow_inf_nan=False)]

Identifier = Annotated[str, Field(max_length=1000)] | _Integer
Timestamp = Annotated[str, Field(max_length=64)] | _Integer
Level = Annotated[float, Field(gt=0, lt=100)]
ColumnName = Annotated[str, Field(max_length=1000)] | None
Quantile = Annotated[float, Field(gt=0, lt=1)]


class _Strict(BaseModel):
    """Accepts no other types and no other fields."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class SeriesIn(_Strict):
    """The history of one series."""

    id: Annotated[Identifier, Field(description="Name; a series of the training data is scaled as in the fit.")]
    values: Annotated[
        list[_Value | None], FailFast(), Field(min_length=1, description="Oldest first; null for a missing value.")
    ]
    last: Annotated[
        Timestamp | None, Field(description="Timestamp of its last value, if it differs from the other series.")
    ] = None


class ForecastIn(_Strict):
    """A request for forecasts."""

    series: Annotated[list[SeriesIn], FailFast(), Field(min_length=1, description="The histories.")]
    model: Annotated[str | None, Field(description="Name of the model; needed if several are served.")] = None
    last: Annotated[
        Timestamp | None,
        Field(
            description="Timestamp of the last values (ISO 8601, or a step number); the forecast then has timestamps."
        ),
    ] = None
    level: Annotated[
        list[Level] | None, FailFast(), Field(max_length=20, description="Prediction intervals, in percent.")
    ] = None
    quantiles: Annotated[
        list[Quantile] | None, FailFast(), Field(max_length=20, description="Quantiles; instead of level.")
    ] = None
    samples: Annotated[int, Field(ge=0, le=MAX_SAMPLES, description="Number of sample paths.")] = 0
    random_seed: Annotated[int, Field(ge=0, le=MAX_INTEGER, description="Seed of the sample paths.")] = 1
    trace: Annotated[bool, Field(description="Whether to return every leap of the forecast.")] = False


class TableIn(BaseModel):
    """Query of a request with a CSV table."""

    model: Annotated[ColumnName, Field(description="Name of the model; needed if several are served.")] = None
    id_col: Annotated[ColumnName, Field(description="Column of series names. [as in the fit]")] = None
    time_col: Annotated[ColumnName, Field(description="Column of timestamps. [as in the fit]")] = None
    target_col: Annotated[ColumnName, Field(description="Column of values. [as in the fit]")] = None
    layout: Annotated[
        Layout, Field(description="One row for each value (long), or one column for each series (wide).")
    ] = "auto"


class ForecastTableIn(TableIn):
    """Query of a forecast from a CSV table."""

    level: Annotated[list[Level], Field(max_length=20, description="Prediction intervals, in percent.")] = []
    quantiles: Annotated[list[Quantile], Field(max_length=20, description="Quantiles; instead of level.")] = []
    samples: Annotated[int, Field(ge=0, le=MAX_SAMPLES, description="Number of sample paths.")] = 0
    random_seed: Annotated[int, Field(ge=0, le=MAX_INTEGER, description="Seed of the sample paths.")] = 1
    escape_formulas: Annotated[
        bool, Field(description="Put an apostrophe before names that a spreadsheet would take for formulas.")
    ] = False


class LeapOut(BaseModel):
    """One leap: steps `start` to `end` (exclusive, counted from 0) of the horizon."""

    start: int
    end: int
    scale: str
    probabilities: dict[str, float]
    control: float
    temporal: float


class SeriesOut(BaseModel):
    """The forecast of one series."""

    id: str | int
    values: Annotated[dict[str, list[float]], Field(description="By column, with the names that `predict` gives.")]
    timestamps: Annotated[list[str | int] | None, Field(description="If the last timestamp was given.")] = None
    trace: Annotated[list[LeapOut] | None, Field(description="If it was requested.")] = None


class ForecastOut(BaseModel):
    """The forecasts, in the order of the request."""

    model: str
    version: str
    h: int
    freq: str | int
    forecasts: list[SeriesOut]


class ModelOut(BaseModel):
    """A served model."""

    name: str
    version: str
    h: int
    input_size: int
    freq: str | int
    timezone: str | None
    multivariate: Annotated[bool, Field(description="Whether it forecasts its series together, and needs all of them.")]
    series: Annotated[list[str | int], Field(description="The first 100 series of the training data.")]
    series_count: int
    levels: Annotated[list[int], Field(description="Which of the usual prediction intervals it can give, in percent.")]
    id_col: str
    time_col: str
    target_col: str


class ModelsOut(BaseModel):
    """All served models."""

    models: list[ModelOut]


class StatusOut(BaseModel):
    """The state of the server."""

    status: str
