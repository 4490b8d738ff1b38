"""What goes over the wire: requests from JSON straight to arrays, and answers back, with no frame between."""

from collections.abc import Sequence
from functools import lru_cache
from itertools import chain
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import UNSET, Meta, Struct, UnsetType

from leapts.errors import ConfigError, LeapTSError
from leapts.forecasting.arrays import ArrayForecast, Floats, Histories
from leapts.forecasting.intervals import Bound, interval_bounds, quantile_bounds
from leapts.model import ScheduleTrace
from leapts.model.network import Record
from leapts.model.scales import SCALE_NAMES
from leapts.server.limits import Limits
from leapts.server.problems import BAD_DATA, BAD_REQUEST, Problem, in_two, too_large
from leapts.server.registry import ModelRegistry, Served
from leapts.server.timestamps import Timestamp, future_texts

_BIGGEST = 2**53
_MOST_NAMES = 100  # in the description of a model
Identifier = Annotated[str, Meta(max_length=1000)] | Annotated[int, Meta(ge=-_BIGGEST, le=_BIGGEST)]
LastStamp = Annotated[str, Meta(max_length=64)] | Annotated[int, Meta(ge=-_BIGGEST, le=_BIGGEST)]

Levels = Annotated[list[Annotated[float, Meta(gt=0, lt=100)]], Meta(max_length=20)]
Quantiles = Annotated[list[Annotated[float, Meta(gt=0, lt=1)]], Meta(max_length=20)]


class SeriesIn(Struct, forbid_unknown_fields=True, frozen=True):
    """The history of one series."""

    id: Annotated[Identifier, Meta(description="Its name; a model that knows the name scales it as in the fit.")]
    values: Annotated[
        list[float | None], Meta(min_length=1, description="Oldest first; null where a value is missing.")
    ]
    last: Annotated[
        LastStamp | None, Meta(description="The timestamp of its last value, where it differs from the others'.")
    ] = None


class ForecastIn(Struct, forbid_unknown_fields=True, frozen=True):
    """What to forecast."""

    series: Annotated[list[SeriesIn], Meta(min_length=1, description="The histories.")]
    model: Annotated[str | None, Meta(description="Which model; may be left out where there is only one.")] = None
    last: Annotated[
        LastStamp | None,
        Meta(
            description="Timestamp of the last values (ISO 8601, or a step number); the forecast then has timestamps."
        ),
    ] = None
    level: Annotated[Levels | None, Meta(description="Intervals to give, in percent.")] = None
    quantiles: Annotated[Quantiles | None, Meta(description="Quantiles to give instead.")] = None
    trace: Annotated[bool, Meta(description="Whether to tell every leap the forecast was made in.")] = False


class LeapOut(Struct, frozen=True):
    """One leap: steps `start` to `end` (exclusive, counted from 0) of the horizon."""

    start: int
    end: int
    scale: str
    probabilities: dict[str, float]
    control: float
    temporal: float


class SeriesOut(Struct, frozen=True):
    """The forecast of one series."""

    id: str | int
    values: Annotated[dict[str, list[float]], Meta(description="By column, as `predict` calls them.")]
    stamps: Annotated[list[str | int] | UnsetType, Meta(description="Where the last timestamp was given.")] = UNSET
    trace: Annotated[list[LeapOut] | UnsetType, Meta(description="Where it was asked for.")] = UNSET


class ForecastOut(Struct, frozen=True):
    """The forecasts, in the order of the histories."""

    model: str
    version: str
    h: int
    freq: str | int
    forecasts: list[SeriesOut]


class ModelOut(Struct, frozen=True):
    """A model that is served."""

    name: str
    version: str
    h: int
    input_size: int
    freq: str | int
    zone: str | None
    joint: Annotated[bool, Meta(description="Whether it forecasts its own series together, and needs all of them.")]
    series: Annotated[list[str | int], Meta(description="The first of the series it was fitted on.")]
    series_count: int
    levels: Annotated[list[int], Meta(description="Which of the usual intervals it can give, in percent.")]
    id_col: str
    time_col: str
    target_col: str


class ModelsOut(Struct, frozen=True):
    """All models that are served."""

    models: list[ModelOut]


_DECODER = msgspec.json.Decoder(ForecastIn)
_ENCODER = msgspec.json.Encoder()
encode = _ENCODER.encode
_JSON_CURE = "see /docs for how a request looks"
_NULL_CURE = "write null for what is missing, and neither NaN nor Infinity"


class Asked(Struct, frozen=True):
    """A request that was understood."""

    served: Served
    request: ForecastIn
    histories: Histories
    bounds: Sequence[Bound]
    record: Record


def decode(body: bytes, registry: ModelRegistry, limits: Limits) -> Asked:
    """Understand a request.

    Raises:
        Problem: When it is no JSON, has another form, is beyond a limit, or cannot be forecast from.
    """
    try:
        request = _DECODER.decode(body)
    except msgspec.ValidationError as error:
        raise Problem(BAD_DATA, f"the request has another form than expected: {error}", _JSON_CURE) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        # Python and numpy write these, though JSON has no such numbers.
        cure = _NULL_CURE if b"NaN" in body or b"Infinity" in body else _JSON_CURE
        raise Problem(BAD_REQUEST, f"the request is not JSON: {error}", cure) from None
    except RecursionError:
        raise Problem(BAD_REQUEST, "the request is nested too deeply", _JSON_CURE) from None
    served = registry.find(request.model)
    if len(request.series) > limits.series:
        raise too_large(f"the request has {len(request.series):,} series", limits.series, "--max-series")
    values = [one.values for one in request.series]
    longest = max(map(len, values))
    if longest > limits.length:
        raise too_large(f"the request has a series of {longest:,} values", limits.length, "--max-length")
    try:
        bounds = _bounds(served, request)
        if request.trace and not served.traces:
            raise ConfigError("this model has no scheduling branch; leave trace out")
        _require_one_end(served, request)
        names = [one.id for one in request.series]
        histories = served.arrays.read(names, _arrays(values))
        served.arrays.require_levels(bounds)
    except LeapTSError as error:
        raise Problem(BAD_DATA, *in_two(str(error))) from None
    return Asked(served, request, histories, bounds, "leaps" if request.trace else "nothing")


def answer(asked: Asked, forecast: ArrayForecast) -> bytes:
    """The answer as JSON.

    Raises:
        Problem: When the last timestamp is none the model could go on from.
    """
    served, request = asked.served, asked.request
    columns = {served.model.alias: forecast.values, **served.arrays.bounds(forecast, asked.bounds)}
    tables = {name: values.tolist() for name, values in columns.items()}
    leaps = None if forecast.trace is None else _leaps(forecast.trace)
    forecasts = []
    for row, one in enumerate(request.series):
        last = one.last if one.last is not None else request.last
        forecasts.append(
            SeriesOut(
                one.id,
                {name: table[row] for name, table in tables.items()},
                UNSET if last is None else _timestamps(last, served),
                UNSET if leaps is None else leaps[row],
            )
        )
    fitted = served.arrays.fitted
    return encode(ForecastOut(served.name, served.version, fitted.config.h, fitted.tail.freq, forecasts))


def described(served: Served) -> ModelOut:
    """A model, for those who choose one."""
    fitted, model = served.arrays.fitted, served.model
    return ModelOut(
        name=served.name,
        version=served.version,
        h=fitted.config.h,
        input_size=fitted.config.input_size,
        freq=fitted.tail.freq,
        zone=fitted.tail.timezone,
        joint=fitted.is_multivariate,
        series=list(fitted.tail.series[:_MOST_NAMES]),
        series_count=len(fitted.tail.series),
        levels=[level for level in (80, 95) if served.arrays.has_level(level)],
        id_col=model.id_col,
        time_col=model.time_col,
        target_col=model.target_col,
    )


def _arrays(values: list[list[float | None]]) -> Floats | list[Floats]:
    """The histories, NaN where a value is missing: in one piece where they are of one length, which is the quickest."""
    length = len(values[0])
    if any(len(one) != length for one in values):
        return [np.array(one, dtype=np.float64) for one in values]
    flat = np.fromiter(chain.from_iterable(values), np.float64, length * len(values))
    return flat.reshape(-1, length)


def _bounds(served: Served, request: ForecastIn) -> Sequence[Bound]:
    if request.level is None and request.quantiles is None:
        return ()
    if request.level is not None and request.quantiles is not None:
        raise ConfigError("level and quantiles are both given; give one of them")
    return _known_bounds(tuple(request.level or ()), tuple(request.quantiles or ()), served.model.alias)


@lru_cache(maxsize=256)
def _known_bounds(level: tuple[float, ...], quantiles: tuple[float, ...], alias: str) -> tuple[Bound, ...]:
    return interval_bounds(level, alias) if level else quantile_bounds(quantiles, alias)


def _require_one_end(served: Served, request: ForecastIn) -> None:
    """Series that are forecast together end together; and every timestamp given must be one to go on from."""
    lasts = {request.last if one.last is None else one.last for one in request.series}
    if served.arrays.fitted.is_multivariate and len(lasts) > 1:
        raise ConfigError(
            "the model forecasts its series together, and they end at different timestamps; end them at one"
        )
    for last in lasts:
        if last is not None:
            _timestamps(last, served)


def _timestamps(last: Timestamp, served: Served) -> list[Timestamp]:
    fitted = served.arrays.fitted
    return future_texts(last, fitted.tail, fitted.config.h)


def _leaps(trace: ScheduleTrace) -> list[list[LeapOut]]:
    """The leaps of every row, as far as they were taken."""
    names = trace.scale_names
    absent = {name: 0.0 for name in SCALE_NAMES if name not in names}
    # To lists all at once: a tensor cut row by row would keep other callers waiting.
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


def schemas(limits: Limits) -> dict[str, Any]:
    """The JSON schemas of all the above, by name."""
    _, found = msgspec.json.schema_components(
        (ForecastIn, ForecastOut, ModelsOut), ref_template="#/components/schemas/{name}"
    )
    found["ForecastIn"]["properties"]["series"]["maxItems"] = limits.series
    found["SeriesIn"]["properties"]["values"]["maxItems"] = limits.length
    return dict(found)
