"""A back-test of LeapTS beside baselines, all of them from the same cutoffs."""

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import torch

from leapts.baselines import Baseline
from leapts.data.frames import panel_frame
from leapts.data.panel import Panel
from leapts.errors import ConfigError, DataError
from leapts.forecaster.backtest import CUTOFF, coverage_reached, cutoffs
from leapts.forecaster.facade import LeapTS
from leapts.intervals import Level, column_names
from leapts.metrics import evaluate
from leapts.training import Progress


@dataclass(frozen=True, kw_only=True)
class ModelScore:
    """How one model did over all windows and series, every series weighing the same.

    Attributes:
        name: The model's column.
        mae: Mean absolute error, in the data's units.
        rmse: Root mean squared error, in the data's units.
        mase: Mean absolute error, relative to the seasonal naive error in the history.
        seconds: What fitting and forecasting took.
        coverage: For each level, the share of actual values inside the interval; empty without intervals.
    """

    name: str
    mae: float
    rmse: float
    mase: float
    seconds: float
    coverage: dict[Level, float]


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """What came of a comparison.

    Attributes:
        frame: The frame of `LeapTS.cross_validation`, with a column more for each baseline.
        scores: LeapTS first, then the baselines in the order given.
        without_scale: How many series MASE leaves out, because their history never changes from season to season.
    """

    frame: Any
    scores: tuple[ModelScore, ...]
    without_scale: int


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
    """Back-test a model and the baselines on the last windows of the data.

    A baseline that can make nothing of the data is left out, with a warning.

    Args:
        model: What to fit; what it may have been fitted to before is not touched.
        panel: The data. Gaps that were interpolated are filled with the last value before them.
        baselines: What to compare with.
        n_windows: How many windows, counted back from the end.
        season: Steps to a season, for MASE.
        step_size: How far apart the windows are; by default the horizon.
        refit: Whether LeapTS is fitted anew before every window. The baselines always see all that is known.
        level: Intervals to give and to check, in percent.
        progress: Called after every step of training.
        on_fit: Given each LeapTS that was fitted.
    """
    model, panel = model.checked(), panel.without_lookahead()
    style = panel.style
    names = [style.id_col, style.time_col, style.target_col, CUTOFF, model.alias, *column_names(level, model.alias)]
    for baseline in baselines:
        if baseline.name in names:
            raise ConfigError(f"the baseline {baseline.name!r} has the name of another column; choose another for one")
        names.append(baseline.name)
    started = time.perf_counter()
    result = model.cross_validation(
        panel, n_windows, step_size=step_size, refit=refit, level=list(level), progress=progress, on_fit=on_fit
    )
    seconds = {model.alias: time.perf_counter() - started}
    frame = nw.from_native(result, eager_only=True)
    for baseline in baselines:
        started = time.perf_counter()
        # Cut anew for each: kept, the histories of all windows would be as many times the data.
        windows = (panel.head(-back) for back in cutoffs(model.h, n_windows, step_size or model.h))
        try:
            parts = [baseline.forecast(known.values, known.offsets, model.h) for known in windows]
        except DataError as error:  # what others make of the data is worth seeing all the same
            warnings.warn(f"not compared with {baseline.name}: {error}", stacklevel=2)
            continue
        # The frame goes series by series, and in each from cutoff to cutoff.
        values = torch.stack(parts, dim=1).reshape(-1).numpy()
        seconds[baseline.name] = time.perf_counter() - started
        column = nw.new_series(baseline.name, values, nw.Float64, backend=frame.implementation)
        frame = frame.with_columns(column)
    scored = evaluate(
        frame.to_native(),
        list(seconds),
        metrics=("mae", "rmse", "mase"),
        train=panel_frame(panel),
        season=season,
        id_col=style.id_col,
        time_col=style.time_col,
        target_col=style.target_col,
    )
    overall = {row["metric"]: row for row in nw.from_native(scored.overall, eager_only=True).iter_rows(named=True)}
    reached = coverage_reached(frame.to_native(), level, model.alias, style.target_col)
    return Comparison(
        frame=frame.to_native(),
        scores=tuple(
            ModelScore(
                name=name,
                mae=overall["mae"][name],
                rmse=overall["rmse"][name],
                mase=overall["mase"][name],
                seconds=spent,
                coverage=reached if name == model.alias else {},
            )
            for name, spent in seconds.items()
        ),
        without_scale=int(overall["mase"]["left_out"]),
    )
