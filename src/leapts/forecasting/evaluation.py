"""Errors of the forecasts in a long frame, for each series and overall.

MSE, MAE, RMSE, SMAPE and MAPE are those of utilsforecast, over all windows of a series together. MASE and OWA are
computed here: utilsforecast needs a sorted training frame without the scored rows, and has no OWA.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Literal, get_args

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pandas as pd
from utilsforecast import losses

from leapts.errors import ConfigError, DataError
from leapts.forecasting.metrics import naive_scale, over_scale, owa
from leapts.messages import listed, quoted

Errors = npt.NDArray[np.float64]
MetricName = Literal["mse", "mae", "rmse", "smape", "mape", "mase", "owa"]
# The function of utilsforecast, and the factor to percent where there is one.
_LOSSES = {
    "mse": (losses.mse, 1.0),
    "mae": (losses.mae, 1.0),
    "rmse": (losses.rmse, 1.0),
    "smape": (losses.smape, 200.0),
    "mape": (losses.mape, 100.0),
}


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """Errors of every model, as frames of the same kind as the input.

    Attributes:
        series: One row for each metric and series: the name of the series, `metric`, and a column for each model.
        overall: One row for each metric: `metric`, a column for each model with the mean over series, and `left_out`,
            the number of series without such an error: MASE of a constant history, MAPE of actual values all zero.
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
    """Compute errors of forecasts in a long frame.

    Every series has the same weight in the overall figures, whatever its number of rows. OWA compares overall figures
    and so has no rows for single series.

    Args:
        frame: A pandas, polars or pyarrow frame with actual values and a column of forecasts for each model.
        models: The columns of forecasts.
        metrics: The metrics, in the order of the result.
        train: For MASE and OWA, the history. Rows from a series' first scored timestamp on are ignored, so that it
            may be the whole data.
        season: For MASE and OWA, steps in a season.
        baseline: For OWA, the column of the Naive2 forecasts.
        id_col: Column of series names.
        time_col: Column of timestamps.
        target_col: Column of actual values.

    Raises:
        ConfigError: When an option is wrong or missing.
        DataError: When a column or the history of a series is missing, or a value is not a number.
    """
    _check_options(models, metrics, train is not None, season, baseline)
    scored = list(dict.fromkeys([*models, *([baseline] if baseline is not None else [])]))
    is_scaled = bool({"mase", "owa"} & set(metrics))
    table = _table(frame, "the frame", [id_col, target_col, *scored, *([time_col] if is_scaled else [])])
    codes, names = pd.factorize(table[id_col])
    scores = pd.DataFrame({"unique_id": codes, "y": _numbers(table, target_col, "the frame")})
    columns = {model: f"model-{place}" for place, model in enumerate(scored)}
    scores = scores.assign(**{column: _numbers(table, model, "the frame") for model, column in columns.items()})
    found = {name: _by_series(scores, name, list(columns.values()), len(names)) for name in _LOSSES}
    counted = {name: np.asarray(np.isfinite(values).all(axis=1) | (name != "mape")) for name, values in found.items()}
    if is_scaled and season is not None:
        history = _table(train, "the training frame", [id_col, time_col, target_col])
        scale = _history_scale(table.assign(series=codes), history, names, season, id_col, time_col, target_col)
        found["mase"] = over_scale(found["mae"], np.repeat(scale[:, None], len(columns), axis=1))
        counted["mase"] = scale > 0
    like = nw.from_native(frame, eager_only=True).implementation
    errors = _Errors(found, counted)
    return Evaluation(
        series=_native(errors.by_series(models, metrics, id_col, names), like),
        overall=_native(errors.overall(models, metrics, scored.index(baseline) if baseline else None), like),
    )


@dataclass(frozen=True)
class _Errors:
    """Errors by metric, as [series, models], and which series count in the overall mean."""

    found: dict[str, Errors]
    counted: dict[str, npt.NDArray[np.bool_]]

    def by_series(self, models: Sequence[str], metrics: Sequence[str], id_col: str, names: pd.Index) -> pd.DataFrame:
        shown = [metric for metric in metrics if metric != "owa"]
        blocks = [
            {id_col: names, "metric": metric, **dict(zip(models, self.found[metric].T, strict=False))}
            for metric in shown
        ]
        return pd.concat([pd.DataFrame(block, columns=[id_col, "metric", *models]) for block in blocks or [{}]])

    def overall(self, models: Sequence[str], metrics: Sequence[str], baseline: int | None) -> pd.DataFrame:
        rows = []
        for metric in metrics:
            figures = self._owa(baseline) if metric == "owa" and baseline is not None else self._mean(metric)
            left_out = int((~self.counted["mase" if metric == "owa" else metric]).sum())
            rows.append({"metric": metric, **dict(zip(models, figures, strict=False)), "left_out": left_out})
        return pd.DataFrame(rows)

    def _mean(self, metric: str) -> Errors:
        found, counts = self.found[metric], self.counted[metric]
        return np.asarray(found[counts].mean(axis=0)) if counts.any() else np.full(found.shape[1], np.inf)

    def _owa(self, baseline: int) -> Errors:
        smapes, mases = self._mean("smape"), self._mean("mase")
        pairs = zip(smapes.tolist(), mases.tolist(), strict=True)
        return np.array([owa(*pair, float(smapes[baseline]), float(mases[baseline])) for pair in pairs])


def _check_options(
    models: Sequence[str], metrics: Sequence[str], has_train: bool, season: int | None, baseline: str | None
) -> None:
    for option, chosen in (("models", models), ("metrics", metrics)):
        if isinstance(chosen, str):
            raise ConfigError(f"{option}={chosen!r} is a single name; pass a list: {option}=[{chosen!r}]")
        if not chosen:
            raise ConfigError(f"{option} is empty; name at least one")
        repeated = [name for name in dict.fromkeys(chosen) if list(chosen).count(name) > 1]
        if repeated:
            raise ConfigError(f"{option} names {repeated[0]!r} twice; name each once")
    reserved = next((name for name in ("metric", "left_out") if name in models), None)
    if reserved is not None:
        raise ConfigError(f"a model cannot be called {reserved!r}, a column of the result; rename it")
    unknown = [name for name in metrics if name not in get_args(MetricName)]
    if unknown:
        raise ConfigError(f"there is no metric {unknown[0]!r}; there are {', '.join(get_args(MetricName))}")
    scaled = [name for name in metrics if name in ("mase", "owa")]
    if scaled and (not has_train or season is None):
        raise ConfigError(f"{scaled[0]} is relative to the error on the history; pass train= and season=")
    if "owa" in metrics and baseline is None:
        raise ConfigError("owa is relative to Naive2; pass baseline= with the column of its forecasts")


def _by_series(scores: pd.DataFrame, metric: str, models: list[str], count: int) -> Errors:
    """Compute a metric for each series and model; infinite for a series without any term."""
    loss, factor = _LOSSES[metric]
    rows = scores[scores["y"] != 0] if metric == "mape" else scores  # a percentage of zero is undefined
    found = loss(rows, models).set_index("unique_id").reindex(range(count), fill_value=np.inf)
    return np.asarray(factor * found[models].to_numpy(), dtype=np.float64)


def _history_scale(
    scored: pd.DataFrame, train: pd.DataFrame, names: pd.Index, season: int, id_col: str, time_col: str, target_col: str
) -> Errors:
    """In-sample seasonal naive error of each series, from its history before the first scored row."""
    series = train[id_col].map({name: code for code, name in enumerate(names)}).fillna(-1).astype(int)
    first = scored.groupby("series")[time_col].min()
    try:
        kept = (series >= 0) & (train[time_col] < series.map(first))
    except TypeError:
        raise DataError(
            f"column {time_col!r} of the frame does not compare with that of the training frame; make both timestamps "
            "(both with a timezone, or none), or both integers"
        ) from None
    past = train[kept].assign(series=series[kept]).sort_values(["series", time_col])
    missing = sorted(set(range(len(names))) - set(past["series"]))
    if missing:
        raise DataError(
            f"the training frame holds no row of {len(missing)} of {len(names)} series, such as "
            f"{quoted(names[missing[0]])}, from before its first scored {time_col}; pass the history of every series, "
            f"with {id_col} and {time_col} as in the scored frame"
        )
    repeats = past[past.duplicated(["series", time_col])]
    if len(repeats):
        raise DataError(
            f"the training frame repeats {len(repeats)} rows, such as one of series {quoted(repeats[id_col].iloc[0])}; "
            f"keep one row for each series and {time_col}"
        )
    offsets = np.concatenate([[0], np.cumsum(past.groupby("series").size())])
    return naive_scale(_numbers(past, target_col, "the training frame"), offsets, season)


def _table(frame: Any, what: str, columns: Sequence[str]) -> pd.DataFrame:
    """Select columns as a pandas frame: categories as their values, dates as timestamps."""
    try:
        table = nw.from_native(frame, eager_only=True)
    except TypeError:
        kind = type(frame).__name__
        raise DataError(f"{what} is {kind!r}; pass a pandas, polars or pyarrow frame (a lazy one collected)") from None
    absent = [column for column in columns if column not in table.columns]
    if absent:
        raise DataError(f"{what} has no column {quoted(absent[0])}; it has {listed(table.columns)}")
    if len(table) == 0:
        raise DataError(f"{what} has no rows; there is nothing to score")
    found = table.select(columns).to_pandas()
    id_col = columns[0]
    if isinstance(found[id_col].dtype, pd.CategoricalDtype):
        found[id_col] = found[id_col].astype(found[id_col].cat.categories.dtype)
    if found[id_col].isna().any():
        raise DataError(f"column {id_col!r} has {int(found[id_col].isna().sum())} missing values; drop those rows")
    has_dates = [name for name in columns if isinstance(found[name].iloc[0], date)]
    selected: pd.DataFrame = found.assign(**{name: pd.to_datetime(found[name]) for name in has_dates})
    return selected


def _numbers(table: pd.DataFrame, column: str, what: str) -> Errors:
    values = table[column]
    if not pd.api.types.is_numeric_dtype(values):
        raise DataError(f"{what}: column {column!r} holds {values.dtype}, not numbers; convert it")
    numbers = values.to_numpy(dtype=np.float64, na_value=np.nan)
    bad = int((~np.isfinite(numbers)).sum())
    if bad:
        raise DataError(f"{what}: column {column!r} has {bad} missing or infinite values; drop or fill those rows")
    return numbers


def _native(table: pd.DataFrame, like: nw.Implementation) -> Any:
    if like.is_pandas():
        return table.reset_index(drop=True)
    arrow = nw.from_native(table.reset_index(drop=True), eager_only=True).to_arrow()
    return nw.DataFrame.from_arrow(arrow, backend="polars").to_native() if like.is_polars() else arrow
