"""Backtest of LeapTS beside baselines, all from the same cutoffs."""

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import narwhals as nw
import numpy as np
import torch
from jaxtyping import Float64
from torch import Tensor

from leapts.data.frames import panel_frame
from leapts.data.panel import Panel
from leapts.errors import ConfigError, DataError
from leapts.forecasting.baselines import Baseline
from leapts.forecasting.cross_validation import IntervalScores, interval_scores, steps_after_cutoffs
from leapts.forecasting.estimator import LeapTS
from leapts.forecasting.evaluation import MetricName, evaluate
from leapts.forecasting.intervals import Level, interval_bounds
from leapts.forecasting.trace_frame import CUTOFF
from leapts.training.loop import Progress

_SIGN_CHANGES = 1999
_METRICS: tuple[MetricName, ...] = ("mae", "rmse", "mase")


@dataclass(frozen=True, kw_only=True)
class ModelScore:
    """Errors of one model over all windows and series, each series with the same weight."""

    name: str  # of its column
    mae: float  # mean absolute error, in the units of the data
    rmse: float  # root mean squared error, in the units of the data
    mase: float  # mean absolute error, relative to the seasonal naive error in the history
    seconds: float  # of fitting and forecasting
    p_value: float | None = None  # of the paired test over windows that its errors are those of LeapTS
    coverage: dict[Level, float]  # share of actual values inside the interval of each level; empty without intervals
    width: dict[Level, float] = field(
        default_factory=dict
    )  # mean width of the interval of each level, in the units of the data
    wql: float | None = None  # weighted quantile loss of the point forecast and the ends of the intervals


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Forecasts and errors of a comparison."""

    frame: Any  # of `LeapTS.cross_validation`, with a column for each further model
    scores: tuple[ModelScore, ...]  # of LeapTS, of its coarse forecast alone, and of the baselines in the order given
    without_scale: int  # number of series without MASE, whose history never changes from season to season


def compare(
    model: LeapTS,
    panel: Panel,
    baselines: Sequence[Baseline],
    *,
    n_windows: int,
    season: int,
    step_size: int | None = None,
    refit: bool = False,
    level: Sequence[Level] = (),
    progress: Progress | None = None,
    on_fit: Callable[[LeapTS], None] | None = None,
) -> Comparison:
    """Backtest a model and the baselines on the last windows of the data.

    A baseline that cannot be fitted to the data is left out, with a warning.

    Args:
        model: The model to fit; its own fit is not changed.
        panel: The data. Interpolated gaps are filled with the last value before them.
        baselines: Models to compare with.
        n_windows: Number of windows, counted back from the end.
        season: Steps in a season, for MASE.
        step_size: Steps between cutoffs; by default the horizon.
        refit: Whether LeapTS is fitted again before every window. The baselines always see the whole history.
        level: Intervals to give and to check, in percent.
        progress: Called after every training step.
        on_fit: Called with each LeapTS that was fitted.
    """
    h, panel = model.fit_config().h, panel.without_lookahead()
    coarse = f"{model.alias} (coarse)"
    _require_distinct(model, panel, [coarse, *(baseline.name for baseline in baselines)], level)
    fits: list[LeapTS] = []

    def keep(fitted: LeapTS) -> None:
        fits.append(fitted)
        if on_fit is not None:
            on_fit(fitted)

    started = time.perf_counter()
    result = model.cross_validation(
        panel, n_windows, step_size=step_size, refit=refit, level=list(level), progress=progress, on_fit=keep
    )
    seconds = {model.alias: time.perf_counter() - started}
    frame = nw.from_native(result, eager_only=True)
    ends = list(steps_after_cutoffs(h, n_windows, step_size or h))
    for name, forecast in _others(fits, panel, baselines, ends, h, coarse):
        started = time.perf_counter()
        try:
            parts = list(forecast)
        except DataError as error:  # the other models are compared all the same
            warnings.warn(f"not compared with {name}: {error}", stacklevel=2)
            continue
        # Rows are ordered by series, then by cutoff.
        values = torch.stack(parts, dim=1).reshape(-1).numpy()
        seconds[name] = time.perf_counter() - started
        frame = frame.with_columns(nw.new_series(name, values, nw.Float64, backend=frame.implementation))
    intervals = interval_scores(result, level, model.alias, panel.style.target_col) if level else None
    return _scored(frame, panel, seconds, season, intervals, h)


def _require_distinct(model: LeapTS, panel: Panel, compared: Sequence[str], level: Sequence[Level]) -> None:
    style = panel.style
    names = [style.id_col, style.time_col, style.target_col, CUTOFF, model.alias]
    names += [bound.column for bound in interval_bounds(level, model.alias)]
    for name in compared:
        if name in names:
            raise ConfigError(f"the baseline {name!r} has the name of another column; rename one of them")
        names.append(name)


def _others(
    fits: Sequence[LeapTS], panel: Panel, baselines: Sequence[Baseline], ends: Sequence[int], h: int, coarse: str
) -> Iterator[tuple[str, Iterator[torch.Tensor]]]:
    """Yield the names of the coarse forecast and of every baseline, with their forecasts from each cutoff."""
    fitted = [one.predictor_ for one in fits]
    if fitted[0].config.scheduling.kind != "none":

        def coarse_forecasts() -> Iterator[torch.Tensor]:
            for number, back in enumerate(ends):
                own = fitted[number] if len(fitted) > 1 else fitted[0]
                windows = own.windows(panel.slice(-back - own.config.input_size, -back))
                forecast = own.predict(windows, "schedule")
                if forecast.coarse is not None:
                    yield forecast.coarse

        yield coarse, coarse_forecasts()
    for baseline in baselines:
        # Histories are cut for one baseline at a time: all of them would be many times the data.
        histories = (panel.head(-back) for back in ends)
        yield baseline.name, (baseline.forecast(known.values, known.offsets, h) for known in histories)


def _scored(
    frame: nw.DataFrame[Any],
    panel: Panel,
    seconds: dict[str, float],
    season: int,
    intervals: IntervalScores | None,
    h: int,
) -> Comparison:
    """Compute the errors of every model; intervals are the first one's."""
    style = panel.style
    scored = evaluate(
        frame.to_native(),
        list(seconds),
        metrics=_METRICS,
        train=panel_frame(panel),
        season=season,
        id_col=style.id_col,
        time_col=style.time_col,
        target_col=style.target_col,
    )
    overall = {row["metric"]: row for row in nw.from_native(scored.overall, eager_only=True).iter_rows(named=True)}
    windows = _window_errors(frame, panel, list(seconds), h)
    scores = tuple(
        ModelScore(
            name=name,
            seconds=spent,
            p_value=_paired_p_value(windows[:, 0], windows[:, number]) if number else None,
            coverage={} if number or intervals is None else intervals.coverage,
            width={} if number or intervals is None else intervals.width,
            wql=None if number or intervals is None else intervals.wql,
            **{metric: overall[metric][name] for metric in _METRICS},
        )
        for number, (name, spent) in enumerate(seconds.items())
    )
    return Comparison(frame=frame.to_native(), scores=scores, without_scale=int(overall["mase"]["left_out"]))


def _window_errors(
    frame: nw.DataFrame[Any], panel: Panel, models: Sequence[str], h: int
) -> Float64[Tensor, "windows models"]:
    """Mean absolute error of each model in each window of a series; rows are ordered by series, then by cutoff."""
    actual, *forecasts = (
        torch.from_numpy(np.array(frame.get_column(name).to_numpy(), dtype=np.float64))
        for name in (panel.style.target_col, *models)
    )
    return torch.stack([(one - actual).abs().view(-1, h).mean(1) for one in forecasts], 1)


def _paired_p_value(ours: Float64[Tensor, " windows"], theirs: Float64[Tensor, " windows"]) -> float | None:
    """Compute the p-value of equal errors by random changes of sign; none for fewer than five windows.

    A difference counts relative to both errors of its window, so that all series have the same weight.
    """
    total = ours + theirs
    differences = ((ours - theirs) / total)[total > 0]
    if len(differences) < 5:
        return None
    signs = torch.randint(0, 2, (_SIGN_CHANGES, len(differences)), generator=torch.Generator().manual_seed(0))
    changed = ((2 * signs - 1).double() @ differences).abs()
    as_large = int((changed >= differences.sum().abs() * (1 - 1e-9)).sum())
    return (as_large + 1) / (_SIGN_CHANGES + 1)
