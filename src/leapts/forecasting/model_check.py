"""Check a fitted model on newer data: errors, coverage, drift since the fit, and a verdict by fixed rules.

- "fit again": the model's error has more than doubled since the fit (`MAX_GROWTH`); or relative to the seasonal naive
  forecast's it has grown by more than a fifth (`MAX_RELATIVE_GROWTH`), or is above 1 where it was not.
- "recalibrate": the share of values inside a prediction interval differs from its level by more than
  `MAX_COVERAGE_GAP`.
- "still good": neither.

A difference counts only if it is larger than chance explains: one-sided tests at 5 %, of at least `MIN_WINDOWS`
windows, taken as independent.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from html import escape
from typing import Any, Literal

import narwhals as nw
import numpy as np
import torch
from jaxtyping import Float64, Int64
from torch import Tensor

from leapts.data.frames import long_frame, panel_frame
from leapts.data.frequency import seasonal_period
from leapts.data.panel import Panel
from leapts.errors import ConfigError, DataError
from leapts.forecasting.evaluation import evaluate
from leapts.forecasting.intervals import Level, interval_bounds, quantile_bounds
from leapts.forecasting.metrics import pinball
from leapts.forecasting.predictor import Predictor
from leapts.forecasting.rolling import Cutoffs, forecasts_at, targets
from leapts.forecasting.trace_frame import CUTOFF
from leapts.messages import counted

Verdict = Literal["still good", "recalibrate", "fit again"]

MAX_GROWTH = 2.0
MAX_RELATIVE_GROWTH = 1.2
MAX_COVERAGE_GAP = 0.05
MIN_WINDOWS = 5
NAIVE = "SeasonalNaive"
_DECILES = tuple(number / 10 for number in range(1, 10))
_SURE = 1.645  # standard errors of a one-sided test at 5 %


@dataclass(frozen=True, kw_only=True)
class Drift:
    """Changes since the fit; None where no windows were held out, or no series was fitted."""

    growth: float | None  # MAE on the new data over that in validation, in standard deviations of the series
    relative_mae: float | None  # MAE over that of the seasonal naive forecast, on the new data
    relative_mae_at_fit: float | None  # the same in validation
    level: float | None  # median change of the mean of a fitted series, in its standard deviations
    spread: float | None  # median ratio of the new standard deviation of a fitted series to that of the fit


@dataclass(frozen=True, kw_only=True)
class ModelCheck:
    """Errors of a model on newer data, and the verdict."""

    verdict: Verdict
    reason: str
    windows: int
    errors: dict[str, dict[str, float | None]]  # mae, mase and pinball of the model and of the seasonal naive forecast
    coverage: dict[Level, float]  # share of values inside the interval of each level
    drift: Drift
    frame: Any  # the forecasts, with the columns of a backtest

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the forecasts as plain values."""
        return {name: value for name, value in asdict(self).items() if name != "frame"}

    def rows(self) -> list[tuple[str, str]]:
        """Describe each figure by a name and a text."""
        found = [("verdict", f"{self.verdict}: {self.reason}"), ("windows", str(self.windows))]
        for name, errors in self.errors.items():
            found.append((name, ", ".join(f"{key} {_text(value)}" for key, value in errors.items())))
        inside = ", ".join(f"{share:.1%} of {level} %" for level, share in self.coverage.items())
        drift = ", ".join(f"{name.replace('_', ' ')} {_text(value)}" for name, value in asdict(self.drift).items())
        return [*found, *([("coverage", inside)] if inside else []), ("drift", drift)]

    def __repr__(self) -> str:
        return "\n".join(f"{name:<13} {text}" for name, text in self.rows())

    def _repr_html_(self) -> str:
        cells = "".join(f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in self.rows())
        return f"<table>{cells}</table>"


def check_model(
    predictor: Predictor,
    panel: Panel,
    first: Int64[Tensor, " series"],
    *,
    n_windows: int | None,
    step: int,
    levels: Sequence[Level],
    alias: str,
) -> ModelCheck:
    """Forecast the windows after the `first` values of each series, and judge the model.

    Raises:
        DataError: When no series has a horizon of values after those.
    """
    h, season, panel = predictor.config.h, seasonal_period(panel.freq), panel.without_lookahead()
    if step < 1 or (n_windows is not None and n_windows < 1):
        raise ConfigError(f"n_windows={n_windows} and step_size={step} must be at least 1")
    cutoffs = Cutoffs.every(step, first, panel.lengths - h, n_windows)
    if not len(cutoffs):
        raise DataError(
            f"no series has {h} values after the end of the fit's data and a history of {int(first.min())} before "
            "them; give newer data, together with its history"
        )
    columns = _forecasts(predictor, panel, cutoffs, levels, alias)
    columns |= {NAIVE: _seasonal_naive(panel, cutoffs, season, h)}
    actual = targets(panel, cutoffs, h)
    bounds = interval_bounds(levels if predictor.has_intervals else [], alias)
    kept = {name: columns[name] for name in (alias, *(bound.column for bound in bounds), NAIVE)}
    frame = _frame(panel, cutoffs, {panel.style.target_col: actual, **kept})
    beyond = {(one.level, one.side): one.side * (actual - columns[one.column]) > 0 for one in bounds}
    coverage = {
        level: 1 - float((beyond[level, -1] | beyond[level, 1]).double().mean())
        for level in sorted({level for level, _ in beyond})
    }
    # The validation error of the fit is beside a naive forecast whose season fits into the look-back.
    period = season if season <= predictor.config.input_size else 1
    naive = columns[NAIVE] if period == season else _seasonal_naive(panel, cutoffs, period, h)
    scale = predictor.scaling(panel)[0].std[cutoffs.series]
    own, its = (((one - actual).abs().mean(1) / scale) for one in (columns[alias], naive))
    growth, relative = _Ratio.of(own, torch.full_like(own, _mae_at_fit(predictor))), _Ratio.of(own, its)
    drift = Drift(
        growth=growth.value,
        relative_mae=relative.value,
        relative_mae_at_fit=_relative_at_fit(predictor),
        **_changes(predictor, panel, first),
    )
    verdict, reason = _verdict(drift, growth, relative, coverage, len(cutoffs))
    return ModelCheck(
        verdict=verdict,
        reason=reason,
        windows=len(cutoffs),
        errors=_errors(frame, panel, columns, actual, alias, season),
        coverage=coverage,
        drift=drift,
        frame=frame,
    )


def _forecasts(
    predictor: Predictor, panel: Panel, cutoffs: Cutoffs, levels: Sequence[Level], alias: str
) -> dict[str, Tensor]:
    """Forecast from each cutoff; columns of the point forecast and, where there are any, of quantiles."""
    wanted = sorted({*_DECILES, *(bound.quantile for bound in interval_bounds(levels, alias))})
    found: dict[str, Tensor] = {}
    for index, forecast in forecasts_at(predictor, panel, cutoffs):
        columns = forecast.columns(quantiles=wanted if predictor.has_intervals else None, alias=alias)
        for name, values in columns.items():
            every = found.setdefault(name, torch.empty(len(cutoffs), predictor.config.h, dtype=torch.float64))
            every[index] = torch.from_numpy(values)
    return found


def _seasonal_naive(panel: Panel, cutoffs: Cutoffs, season: int, h: int) -> Float64[Tensor, "cutoffs h"]:
    period = torch.where(cutoffs.steps >= season, season, 1)[:, None]
    ends = cutoffs.rows(panel, 1)
    return panel.values[ends - period + torch.arange(h) % period]


def _frame(panel: Panel, cutoffs: Cutoffs, columns: dict[str, Tensor]) -> Any:
    rows, timestamps = cutoffs.rows(panel, next(iter(columns.values())).shape[1]), panel.timestamps()
    cutoff = {CUTOFF: np.repeat(timestamps[rows[:, 0].numpy() - 1], rows.shape[1])}
    flat = {name: values.flatten().numpy() for name, values in columns.items()}
    series = cutoffs.series.repeat_interleave(rows.shape[1])
    return long_frame(panel, series.numpy(), timestamps[rows.flatten().numpy()], cutoff | flat)


def _errors(
    frame: Any, panel: Panel, columns: dict[str, Tensor], actual: Tensor, alias: str, season: int
) -> dict[str, dict[str, float | None]]:
    """Compute the errors of the model and of the seasonal naive forecast, which is each of its own quantiles."""
    style = panel.style
    names = {"id_col": style.id_col, "time_col": style.time_col, "target_col": style.target_col}
    scored = evaluate(frame, [alias, NAIVE], metrics=("mae", "mase"), train=panel_frame(panel), season=season, **names)
    errors: dict[str, dict[str, float | None]] = {alias: {}, NAIVE: {}}
    for row in nw.from_native(scored.overall, eager_only=True).iter_rows(named=True):
        for name, found in errors.items():
            found[row["metric"]] = row[name] if math.isfinite(row[name]) else None
    for name, found in errors.items():
        quantiles = {
            bound.column: decile for bound, decile in zip(quantile_bounds(_DECILES, name), _DECILES, strict=True)
        }
        losses = [pinball(actual, columns.get(column, columns[name]), q) for column, q in quantiles.items()]
        found["pinball"] = float(np.mean(losses))
    return errors


@dataclass(frozen=True)
class _Ratio:
    """Ratio of two mean errors; None if the second is zero or not known."""

    value: float | None
    least: float  # lower limit of its one-sided confidence interval at 95 %

    @classmethod
    def of(cls, errors: Float64[Tensor, " windows"], others: Float64[Tensor, " windows"]) -> "_Ratio":
        total, number = float(others.sum()), len(errors)
        if not total > 0:
            return cls(None, -math.inf)
        ratio = float(errors.sum()) / total
        residuals = float((errors - ratio * others).square().sum())
        error = math.sqrt(residuals * number / max(number - 1, 1)) / total
        return cls(ratio, ratio - _SURE * error)


def _mae_at_fit(predictor: Predictor) -> float:
    report = predictor.report
    found = report.best_validation if report.combined_mae is None else report.combined_mae
    return math.nan if found is None else found


def _relative_at_fit(predictor: Predictor) -> float | None:
    naive = predictor.report.naive_mae
    return _mae_at_fit(predictor) / naive if naive else None


def _changes(predictor: Predictor, panel: Panel, known: Int64[Tensor, " series"]) -> dict[str, float | None]:
    """Compare mean and standard deviation of the new values of fitted series with those of the fit."""
    levels, spreads = [], []
    fitted, places = predictor.scaler, predictor.places_of(panel.series)
    for series in (places >= 0).nonzero().flatten().tolist():
        new = panel.values[int(panel.offsets[series] + known[series]) : int(panel.offsets[series + 1])]
        place = int(places[series])
        if len(new) and not bool(fitted.constant[place]):
            levels.append(float((new.mean() - fitted.mean[place]).abs() / fitted.std[place]))
            spreads.append(float(new.std(correction=0) / fitted.std[place]))
    return {
        name: float(np.median(found)) if found else None for name, found in (("level", levels), ("spread", spreads))
    }


def _verdict(
    drift: Drift, growth: _Ratio, relative: _Ratio, coverage: dict[Level, float], windows: int
) -> tuple[Verdict, str]:
    before = drift.relative_mae_at_fit
    if windows < MIN_WINDOWS:
        return "still good", f"no change can be shown by {counted(windows, 'window')}; it takes {MIN_WINDOWS}"
    if growth.value is not None and growth.value > MAX_GROWTH and growth.least > 1:
        return "fit again", f"MAE is {growth.value:.2f} times that of the fit (limit: {MAX_GROWTH:g})"
    if relative.value is not None:
        text = f"MAE is {relative.value:.2f} times that of the seasonal naive forecast"
        if before and relative.value > MAX_RELATIVE_GROWTH * before and relative.least > before:
            return "fit again", f"{text}, and was {before:.2f} at the fit (limit: {MAX_RELATIVE_GROWTH * before:.2f})"
        if relative.least > 1 and not (before and before > 1):
            return "fit again", f"{text} (limit: 1)"
    gaps = {level: share - level / 100 for level, share in coverage.items()}
    for level, gap in sorted(gaps.items(), key=lambda one: -abs(one[1])):
        chance = _SURE * math.sqrt(level / 100 * (1 - level / 100) / windows)
        if abs(gap) > max(MAX_COVERAGE_GAP, chance):
            limit = f"limit: {100 * MAX_COVERAGE_GAP:g} points"
            return "recalibrate", f"{coverage[level]:.1%} of the values are in the {level} % intervals ({limit})"
    return "still good", f"errors and coverage are within the limits on {counted(windows, 'window')}"


def _text(value: float | None) -> str:
    return "not known" if value is None else f"{value:.3g}"
