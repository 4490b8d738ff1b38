"""Scores of the forecasts in a long frame, series by series and overall."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from utilsforecast import losses

from leapts.errors import ConfigError, DataError
from leapts.forecasting.metrics import FloatArray, IntArray, naive_scale, over_scale, owa
from leapts.messages import listed, quoted

MetricName = Literal["mse", "mae", "rmse", "smape", "mape", "mase", "owa"]


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """Scores of every model, as frames of the kind that came in.

    Attributes:
        series: One row for each metric and series: the name of the series, `metric`, and a column for each model.
        overall: One row for each metric: `metric`, a column for each model with the mean over series, and `left_out`,
            how many series the mean leaves out because they have no scale to be measured by.
    """

    series: Any
    overall: Any


def evaluate(
    frame: Any,
    models: Sequence[str],
    *,
    metrics: Sequence[MetricName] = ("mse", "mae", "smape"),
    train: Any = None,
    season: int | None = None,
    baseline: str | None = None,
    id_col: str = "unique_id",
    time_col: str = "ds",
    target_col: str = "y",
) -> Evaluation:
    """Scores forecasts in a long frame, series by series.

    Every series weighs the same in the overall figures, however many rows it has. All windows of a cross-validation
    count together. OWA compares overall figures and so has none for single series.

    Args:
        frame: A pandas, polars or pyarrow frame with actuals and a column of forecasts for each model.
        models: The columns to score.
        metrics: Which metrics, in the order of the result.
        train: For MASE and OWA, the history. Only rows before a series' first scored row count, so that it may be
            the whole data.
        season: For MASE and OWA, steps to a season.
        baseline: For OWA, the column of the Naive2 forecasts.
        id_col: The column of series names.
        time_col: The column of timestamps.
        target_col: The column of actual values.

    Raises:
        ConfigError: When an option is wrong or missing.
        DataError: When a column or the history of a series is missing, or not all values are numbers.
    """
    _check_choice(models, metrics, train is not None, season, baseline)
    table = _eager(frame, "the frame")
    scored = list(dict.fromkeys([*models, *([baseline] if baseline is not None else [])]))
    _require(table, [id_col, target_col, *scored], "the frame")
    actual = _numbers(table, target_col, "the frame")
    names, codes = _encoded(_arrow(table, id_col))
    scale = None
    if train is not None and season is not None and {"mase", "owa"} & set(metrics):
        history = _eager(train, "the training frame")
        _require(table, [time_col], "the frame")
        _require(history, [id_col, time_col, target_col], "the training frame")
        scale = _history_scale(table, history, names, codes, season, id_col, time_col, target_col)
    scores = {
        model: _SeriesScores.of(actual, _numbers(table, model, "the frame"), codes, len(names), scale)
        for model in scored
    }
    backend = table.implementation
    return Evaluation(
        series=_native(_series_table(scores, models, metrics, names, id_col), backend),
        overall=_native(_overall_table(scores, models, metrics, baseline), backend),
    )


# Errors that utilsforecast computes, and the factor to our units. MASE with its history, and OWA, are computed here.
_LOSSES = {
    "mse": (losses.mse, 1.0),
    "mae": (losses.mae, 1.0),
    "rmse": (losses.rmse, 1.0),
    "smape": (losses.smape, 200.0),
    "mape": (losses.mape, 100.0),
}


@dataclass(frozen=True)
class _SeriesScores:
    """One model's scores for each series, and which series count in the overall mean."""

    by_metric: dict[str, FloatArray]
    counted: dict[str, npt.NDArray[np.bool_]]

    @classmethod
    def of(
        cls, actual: FloatArray, forecast: FloatArray, codes: IntArray, count: int, scale: FloatArray | None
    ) -> "_SeriesScores":
        frame = pd.DataFrame({"unique_id": codes, "y": actual, "model": forecast})
        by_metric = {}
        for name, (loss, factor) in _LOSSES.items():
            scored = frame[actual != 0] if name == "mape" else frame  # a percentage of zero is undefined
            found = loss(scored, ["model"]).set_index("unique_id")["model"].reindex(range(count), fill_value=np.inf)
            by_metric[name] = factor * found.to_numpy()
        counted = {name: np.isfinite(values) | (name != "mape") for name, values in by_metric.items()}
        if scale is not None:
            by_metric["mase"] = over_scale(by_metric["mae"], scale)
            counted["mase"] = scale > 0
        return cls(by_metric, counted)

    def overall(self, metric: str) -> float:
        counted = self.counted[metric]
        return float(self.by_metric[metric][counted].mean()) if counted.any() else float("inf")

    def left_out(self, metric: str) -> int:
        return int((~self.counted[metric]).sum())


def _series_table(
    scores: dict[str, _SeriesScores], models: Sequence[str], metrics: Sequence[str], names: pa.Array, id_col: str
) -> pa.Table:
    shown = [metric for metric in metrics if metric != "owa"]
    positions = np.tile(np.arange(len(names)), len(shown))
    columns: dict[str, Any] = {
        id_col: names.take(pa.array(positions)),
        "metric": pa.array(np.repeat(np.array(shown, dtype=object), len(names)), type=pa.string()),
    }
    for model in models:
        blocks = [scores[model].by_metric[metric] for metric in shown]
        columns[model] = pa.array(np.concatenate(blocks) if blocks else np.empty(0))
    return pa.table(columns)


def _overall_table(
    scores: dict[str, _SeriesScores], models: Sequence[str], metrics: Sequence[str], baseline: str | None
) -> pa.Table:
    def figure(model: str, metric: str) -> float:
        if metric != "owa" or baseline is None:
            return scores[model].overall(metric)
        smape, mase = (scores[model].overall(part) for part in ("smape", "mase"))
        return owa(smape, mase, scores[baseline].overall("smape"), scores[baseline].overall("mase"))

    # What is left out depends on the actuals and their history alone, so any model can tell.
    anyone = scores[models[0]]
    columns: dict[str, Any] = {"metric": pa.array(list(metrics), type=pa.string())}
    for model in models:
        columns[model] = pa.array([figure(model, metric) for metric in metrics], type=pa.float64())
    left_out = [anyone.left_out("mase" if metric == "owa" else metric) for metric in metrics]
    columns["left_out"] = pa.array(left_out, type=pa.int64())
    return pa.table(columns)


def _check_choice(
    models: Sequence[str], metrics: Sequence[str], has_train: bool, season: int | None, baseline: str | None
) -> None:
    known = get_args(MetricName)
    for option, chosen in (("models", models), ("metrics", metrics)):
        if isinstance(chosen, str):
            raise ConfigError(f"{option}={chosen!r} is a single name; pass a list: {option}=[{chosen!r}]")
        if not chosen:
            raise ConfigError(f"{option} is empty; name at least one")
        repeated = [name for name in dict.fromkeys(chosen) if list(chosen).count(name) > 1]
        if repeated:
            raise ConfigError(f"{option} names {repeated[0]!r} twice; name each once")
    for reserved in ("metric", "left_out"):
        if reserved in models:
            raise ConfigError(f"a model cannot be called {reserved!r}, a column of the result; rename it")
    unknown = [name for name in metrics if name not in known]
    if unknown:
        raise ConfigError(f"there is no metric {unknown[0]!r}; there are {', '.join(known)}")
    scaled = [name for name in metrics if name in ("mase", "owa")]
    if scaled and (not has_train or season is None):
        raise ConfigError(f"{scaled[0]} is relative to the error on the history; pass train= and season=")
    if "owa" in metrics and baseline is None:
        raise ConfigError("owa is relative to Naive2; pass baseline= with the column of its forecasts")


def _history_scale(
    table: nw.DataFrame[Any],
    history: nw.DataFrame[Any],
    names: pa.Array,
    codes: IntArray,
    season: int,
    id_col: str,
    time_col: str,
    target_col: str,
) -> FloatArray:
    """The in-sample scale of each scored series, from its history before the first scored row."""
    timestamps, past = _comparable(_arrow(table, time_col), _arrow(history, time_col), time_col)
    owner = _codes_among(_arrow(history, id_col), names, id_col)
    first = np.full(len(names), np.iinfo(np.int64).max)
    np.minimum.at(first, codes, timestamps)
    kept = np.flatnonzero((owner >= 0) & (past < first[owner]))
    owner, past = owner[kept], past[kept]
    lengths = np.bincount(owner, minlength=len(names))
    if not lengths.all():
        missing = np.flatnonzero(lengths == 0)
        raise DataError(
            f"the training frame holds no row of {missing.size} of {len(names)} series, such as "
            f"{names[int(missing[0])].as_py()!r}, from before its first scored {time_col}; pass the history of every "
            f"series, with {time_col} counted as in the scored frame"
        )
    values = _numbers(history, target_col, "the training frame", kept)
    if not _is_ordered(owner, past):
        order = np.lexsort((past, owner))
        owner, past, values = owner[order], past[order], values[order]
    repeats = np.flatnonzero((np.diff(owner) == 0) & (np.diff(past) == 0))
    if repeats.size:
        raise DataError(
            f"the training frame repeats {repeats.size} rows, such as one of series "
            f"{names[int(owner[repeats[0]])].as_py()!r}; keep one row for each series and {time_col}"
        )
    return naive_scale(values, np.concatenate([[0], np.cumsum(lengths)]), season)


def _is_ordered(owner: IntArray, timestamps: IntArray) -> bool:
    step = np.diff(owner)
    return bool(((step > 0) | ((step == 0) & (np.diff(timestamps) >= 0))).all())


def _eager(frame: Any, what: str) -> nw.DataFrame[Any]:
    try:
        return nw.from_native(frame, eager_only=True)
    except TypeError:
        raise DataError(
            f"{what} is {type(frame).__name__!r}; pass a pandas, polars or pyarrow frame (a lazy one collected)"
        ) from None


def _require(table: nw.DataFrame[Any], columns: Sequence[str], what: str) -> None:
    for column in columns:
        if column not in table.columns:
            raise DataError(f"{what} has no column {quoted(column)}; it has {listed(table.columns)}")
    if len(table) == 0:
        raise DataError(f"{what} has no rows; there is nothing to score")


def _arrow(table: nw.DataFrame[Any], column: str) -> pa.Array:
    """A column as one Arrow array, categories as what they stand for, without missing values."""
    data = table.get_column(column).to_arrow()
    array = data.combine_chunks() if isinstance(data, pa.ChunkedArray) else data
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if array.null_count:
        raise DataError(f"column {column!r} has {array.null_count} missing values; drop those rows")
    return array


def _numbers(table: nw.DataFrame[Any], column: str, what: str, rows: IntArray | None = None) -> FloatArray:
    series = table.get_column(column)
    if not series.dtype.is_numeric():
        raise DataError(f"{what}: column {column!r} holds {series.dtype}, not numbers; convert it")
    values = series.cast(nw.Float64).to_numpy()
    values = values if rows is None else values[rows]
    bad = int((~np.isfinite(values)).sum())
    if bad:
        raise DataError(f"{what}: column {column!r} has {bad} missing or infinite values; drop or fill those rows")
    return np.asarray(values, dtype=np.float64)


def _encoded(ids: pa.Array) -> tuple[pa.Array, IntArray]:
    """The distinct names in the order of first appearance, and for each row which of them it has."""
    encoded = ids.dictionary_encode()
    return encoded.dictionary, encoded.indices.to_numpy().astype(np.int64)


def _codes_among(ids: pa.Array, names: pa.Array, id_col: str) -> IntArray:
    """For each row which of the names it has; -1 for none."""
    present, codes = _encoded(ids)
    try:
        found = pc.index_in(present.cast(names.type), value_set=names)
    except pa.ArrowException:
        raise DataError(
            f"column {id_col!r} holds {names.type} in the frame and {present.type} in the training frame; "
            "make them the same type"
        ) from None
    places: IntArray = found.fill_null(-1).to_numpy().astype(np.int64)
    return places[codes]


def _comparable(scored: pa.Array, past: pa.Array, time_col: str) -> tuple[IntArray, IntArray]:
    """Both columns of timestamps as integers that are ordered alike."""
    if pa.types.is_temporal(scored.type) and pa.types.is_temporal(past.type):
        # To Arrow a timezone is a way of showing timestamps; one with and one without do not compare.
        zones = [getattr(array.type, "tz", None) for array in (scored, past)]
        if (zones[0] is None) == (zones[1] is None):
            common = pa.timestamp("us", tz=zones[0])
            return _microseconds(scored, common), _microseconds(past, common)
    elif pa.types.is_integer(scored.type) and pa.types.is_integer(past.type):
        return scored.cast(pa.int64()).to_numpy(), past.cast(pa.int64()).to_numpy()
    raise DataError(
        f"column {time_col!r} holds {scored.type} in the frame and {past.type} in the training frame; "
        "make both timestamps (both with a timezone, or none), or both integers"
    )


def _microseconds(timestamps: pa.Array, common: pa.DataType) -> IntArray:
    counts: IntArray = timestamps.cast(common, safe=False).cast(pa.int64()).to_numpy()
    return counts


def _native(table: pa.Table, like: nw.Implementation) -> Any:
    if like.is_pyarrow():
        return table
    return nw.DataFrame.from_arrow(table, backend="polars" if like.is_polars() else "pandas").to_native()
