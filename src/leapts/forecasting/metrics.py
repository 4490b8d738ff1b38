"""Metrics on arrays and tensors."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from torch import Tensor

from leapts.errors import ConfigError, DataError

FloatArray = npt.NDArray[np.float64]
Values = npt.ArrayLike | Tensor

ROUNDING = 1e-12  # what is below this share of a series' values is rounding noise


def mse(actual: Values, forecast: Values) -> float:
    """Mean squared error."""
    return float(np.square(np.subtract(*_pair(actual, forecast))).mean())


def mae(actual: Values, forecast: Values) -> float:
    """Mean absolute error."""
    return float(np.abs(np.subtract(*_pair(actual, forecast))).mean())


def rmse(actual: Values, forecast: Values) -> float:
    """Root of the mean squared error over all values."""
    return float(np.sqrt(mse(actual, forecast)))


def smape(actual: Values, forecast: Values) -> float:
    """Symmetric mean absolute percentage error, from 0 to 200: `200 |y - f| / (|y| + |f|)`, where 0 / 0 = 0."""
    y, f = _pair(actual, forecast)
    return float(200 * over_scale(np.abs(y - f), np.abs(y) + np.abs(f)).mean())


def mape(actual: Values, forecast: Values) -> float:
    """Mean absolute percentage error over the actuals that are not zero; `inf` when all are."""
    y, f = _pair(actual, forecast)
    nonzero = y != 0
    return float(100 * np.abs(1 - f[nonzero] / y[nonzero]).mean()) if nonzero.any() else float("inf")


def mase(actual: Values, forecast: Values, insample_scale: Values) -> float:
    """Mean absolute scaled error: each series' absolute error in units of its in-sample seasonal naive error.

    Args:
        actual: [series, h], or [h] for a single series.
        forecast: The same.
        insample_scale: One for each series, from `naive_scale`. A series of scale 0 that is not forecast exactly has an
            infinite error.
    """
    y, f = _pair(actual, forecast)
    scale = _float64(insample_scale)
    if y.shape[:-1] != scale.shape:
        raise DataError(
            f"{list(y.shape[:-1])} series are scored with {list(scale.shape)} in-sample scales; "
            "pass one scale for each row of the actuals"
        )
    if not (np.isfinite(scale) & (scale >= 0)).all():
        raise DataError("an in-sample scale is negative or not a number; compute the scales with naive_scale")
    return float(over_scale(np.abs(y - f).mean(axis=-1), scale).mean())


def owa(smape: float, mase: float, naive2_smape: float, naive2_mase: float) -> float:
    """Overall weighted average of the M4 competition: mean of SMAPE and MASE over all series, relative to Naive2's."""
    if not (0 < naive2_smape < np.inf and 0 < naive2_mase < np.inf):
        raise DataError(
            f"Naive2 scores SMAPE {naive2_smape:g} and MASE {naive2_mase:g}, and nothing is relative to that; "
            "compare SMAPE and MASE themselves"
        )
    return (smape / naive2_smape + mase / naive2_mase) / 2


def pinball(actual: Values, forecast: Values, quantile: float) -> float:
    """Mean pinball loss of the forecasts of one quantile: `max(q (y - f), (q - 1) (y - f))`."""
    return float(_pinball(*_pair(actual, forecast), quantile).mean())


def weighted_quantile_loss(actual: Values, forecasts: Mapping[float, Values]) -> float:
    """Twice the pinball loss over the sum of absolute actuals, averaged over quantiles: an approximation of the CRPS.

    Args:
        actual: Of any shape.
        forecasts: Forecasts by quantile, each of the same shape.
    """
    losses = [2 * _pinball(*_pair(actual, values), quantile).sum() for quantile, values in forecasts.items()]
    return float(over_scale(np.mean(losses), np.abs(_float64(actual)).sum()))


def scaled_quantile_loss(actual: Values, forecasts: Mapping[float, Values], insample_scale: Values) -> float:
    """Pinball loss in units of the in-sample seasonal naive error, averaged over quantiles and series.

    Args:
        actual: [series, h].
        forecasts: Forecasts by quantile, each the same.
        insample_scale: One for each series, from `naive_scale`.
    """
    losses = [_pinball(*_pair(actual, values), quantile).mean(axis=-1) for quantile, values in forecasts.items()]
    return float(over_scale(np.mean(losses, axis=0), _float64(insample_scale)).mean())


def coverage(actual: Values, lower: Values, upper: Values) -> float:
    """Share of the actuals inside their interval, ends included."""
    y, low = _pair(actual, lower)
    return float(((low <= y) & (y <= _pair(actual, upper)[1])).mean())


def width(lower: Values, upper: Values) -> float:
    """Mean width of intervals."""
    return float(np.subtract(*_pair(upper, lower)).mean())


def _pinball(actual: FloatArray, forecast: FloatArray, quantile: float) -> FloatArray:
    if not 0 < quantile < 1:
        raise ConfigError(f"quantile {quantile!r} is not between 0 and 1")
    error = actual - forecast
    return np.maximum(quantile * error, (quantile - 1) * error)


def naive_scale(values: Values, offsets: Values, season: int) -> FloatArray:
    """Each series' in-sample seasonal naive error, the mean of `|x[t] - x[t - season]|`, for MASE.

    Args:
        values: All series one after the other, as a panel holds them.
        offsets: Where each series starts, and at the end where the last one stops.
        season: Steps to a season; 1 for none.

    Returns:
        One scale for each series: 0 for a series that repeats its season but for rounding, or is no longer than one.
    """
    if season < 1:
        raise ConfigError(f"season={season} is not a number of steps; use 1 where there is no season")
    x, edges = _float64(values), _float64(offsets).astype(np.int64)
    if edges.size < 1 or edges[0] != 0 or edges[-1] != x.size or (np.diff(edges) < 0).any():
        raise DataError(f"the offsets do not cut {x.size} values into series; they rise from 0 to {x.size}")
    lengths = np.diff(edges)
    # A difference over a season belongs to the series its later value lies in, if its earlier one lies there too.
    owner = np.repeat(np.arange(lengths.size), lengths)
    inside = owner[season:] == owner[:-season]
    differences = np.abs(x[season:] - x[:-season])[inside]
    totals = np.bincount(owner[season:][inside], weights=differences, minlength=lengths.size)
    scale = totals / np.maximum(lengths - season, 1)
    size = np.bincount(owner, weights=np.abs(x), minlength=lengths.size) / np.maximum(lengths, 1)
    return np.where(scale > ROUNDING * size, scale, 0.0)


def over_scale(error: npt.ArrayLike, scale: npt.ArrayLike) -> FloatArray:
    """`error / scale`, where 0 / 0 is 0 and anything else over 0 is infinite."""
    unmeasured = np.where(np.equal(error, 0), 0.0, np.inf)
    return np.divide(error, scale, out=unmeasured, where=np.not_equal(scale, 0))


def _pair(actual: Values, forecast: Values) -> tuple[FloatArray, FloatArray]:
    y, f = _float64(actual), _float64(forecast)
    # Shapes that merely broadcast would score every forecast against every actual.
    if y.shape != f.shape:
        raise DataError(f"actuals of shape {list(y.shape)} and forecasts of shape {list(f.shape)}; make them the same")
    if y.size == 0:
        raise DataError(f"there is nothing to score: the actuals have shape {list(y.shape)}")
    for what, values in (("an actual", y), ("a forecast", f)):
        if not np.isfinite(values).all():
            place = [int(axis) for axis in np.argwhere(~np.isfinite(values))[0]]
            raise DataError(f"{what} is missing or infinite, at {place}; score only what is known and forecast")
    return y, f


def _float64(values: Values) -> FloatArray:
    if isinstance(values, Tensor):
        values = values.detach().cpu().numpy()
    return np.asarray(values, dtype=np.float64)
