"""`leapts backtest`.

Examples:
  leapts backtest sales.csv --horizon 24 --windows 5
  leapts backtest RetailPromotions --horizon 14 --windows 3 --level 80,95 -o cv.csv
  leapts backtest sales.csv --horizon 24 --baselines stats,neural
"""

import math
import warnings
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leapts.cli import options
from leapts.cli.terminal import Interrupted, note, say, say_files, show_table, write_json
from leapts.errors import ConfigError
from leapts.messages import counted, quoted

if TYPE_CHECKING:
    from leapts.data.panel import Panel
    from leapts.forecasting.baselines import Baseline
    from leapts.forecasting.comparison import Comparison, ModelScore
    from leapts.forecasting.estimator import LeapTS

CLOSE = 0.01  # relative difference of two errors that are called about the same
BASELINES = ("naive", "stats", "neural", "all")
_BASELINES = (
    "Baselines: naive (naive forecasts, drift and mean only), stats (also AutoETS and AutoTheta), neural (also DLinear "
    "and N-HiTS, slow) or all; several as stats,neural. [naive]"
)


@options.shared_options
def backtest(
    data: options.Data,
    prepare: options.Prepare,
    windows: Annotated[int, typer.Option(min=1, help="Number of cutoffs, counted back from the end.")] = 3,
    step_size: options.StepSize = None,
    refit: Annotated[bool, typer.Option("--refit", help="Fit again before every cutoff.")] = False,
    level: options.Levels = None,
    season_length: Annotated[int | None, typer.Option(min=1, help="Steps in a season. [by the frequency]")] = None,
    baselines: Annotated[list[str] | None, typer.Option("--baselines", help=_BASELINES)] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="CSV or Parquet file for all forecasts.")] = None,
    escape_formulas: options.EscapeFormulas = False,
    report: options.Page = None,
    threads: options.Threads = 1,
    json: options.Json = False,
) -> None:
    """Forecast from several past cutoffs, and compare the errors with those of baselines."""
    from leapts.data.frames import write_frame

    kinds = _kinds(baselines)
    options.require_output(out, data=data)
    options.require_output(report, options.PAGE_SUFFIXES, data=data)
    model, panel, usual_season = prepare(data, threads)
    season = season_length or usual_season
    compared, notes = _baselines(season, kinds)
    if model.fill == "interpolate":
        notes.append("missing values are filled with the last value, since interpolation would use later values")
    settings = {"n_windows": windows, "season": season, "step_size": step_size, "refit": refit, "level": level}
    comparison, first = _compare(model, panel, compared, notes, settings)
    if comparison.without_scale:
        notes.append(
            f"MASE leaves out {counted(comparison.without_scale, 'series')}: their history does not change over a "
            f"season of {season}, or is shorter; set --season-length"
        )
    if out is not None:
        write_frame(comparison.frame, out, escape_formulas=escape_formulas)
    if report is not None:
        from leapts.report.collect import LEVELS
        from leapts.report.page import write_report

        # The model fitted before the first cutoff has seen none of the windows.
        write_report(first, panel, report, cutoffs=windows + 1, step_size=step_size, level=level or LEVELS)
    scores, result = comparison.scores, verdict(comparison.scores)
    if json:
        used = {"horizon": model.h, "windows": windows, "step_size": step_size or model.h, "season": season}
        models = [{**asdict(score), "seconds": round(score.seconds, 3)} for score in scores]
        write_json({**used, "models": models, "verdict": result, "file": out, "report": report, "notes": notes})
        return
    _show(scores)
    for text in notes:
        note(f"note: {text}")
    say_files(forecasts=out, report=report)
    say(result)


def verdict(scores: Sequence["ModelScore"]) -> str:
    """Say in words how the errors of LeapTS compare with those of the best baseline."""
    ours, coarse = scores[0], f"{scores[0].name} (coarse)"
    baselines = [score for score in scores[1:] if score.name != coarse]
    if not baselines:
        return f"{ours.name} was compared with no baseline"
    best = min(baselines, key=lambda score: score.mae)
    difference = ours.mae / best.mae - 1 if best.mae > 0 else math.inf * ours.mae
    sure = _sureness(best.p_value)
    if not abs(difference) >= CLOSE:  # also for two errors of zero
        text = f"{ours.name} and {best.name} have about the same MAE{sure}"
    elif difference < 0:
        text = f"{ours.name} has the lowest MAE: {-difference:.0%} below {best.name}{sure}"
    else:
        above = f"{difference:.0%} above" if math.isfinite(difference) else "above the zero of"
        better = [score.name for score in baselines if score.mae < ours.mae]
        others = f"; better are {', '.join(better)}" if len(better) > 1 else ""
        text = f"{ours.name} does not have the lowest MAE: {above} {best.name}{sure}{others}; use {best.name}"
    by_mase = min([ours, *baselines], key=lambda score: score.mase if math.isfinite(score.mase) else math.inf)
    if by_mase.name == (ours.name if difference < 0 else best.name) or not math.isfinite(by_mase.mase):
        return text
    return f"{text}. {by_mase.name} has the lowest MASE, which weighs all series alike"


def _sureness(p_value: float | None) -> str:
    """Say how sure a difference is, by the paired test over windows."""
    if p_value is None:
        return ""
    words = "sure" if p_value < 0.05 else "not sure, it may be chance"
    return f" ({words}: p = {p_value:.2g} in a paired test over windows)"


def _kinds(given: Sequence[str] | None) -> set[str]:
    kinds = {kind for text in given or () for kind in text.split(",")}
    if unknown := sorted(kinds.difference(BASELINES)):
        raise ConfigError(f"--baselines {quoted(unknown[0])}: must be one of {', '.join(BASELINES)}")
    return set(BASELINES) if "all" in kinds else kinds


def _baselines(season: int, kinds: set[str]) -> tuple[list["Baseline"], list[str]]:
    """Make the baselines, and a note on each kind that is not installed."""
    from leapts.forecasting.baselines import (
        Drift,
        HistoricMean,
        Naive,
        SeasonalNaive,
        neural_baselines,
        statistical_baselines,
    )

    found: list[Baseline] = [SeasonalNaive(season), *([Naive()] if season > 1 else []), Drift(), HistoricMean()]
    notes = []
    for kind, make in (("stats", statistical_baselines), ("neural", neural_baselines)):
        try:
            found.extend(make(season) if kind in kinds else ())
        except ImportError as error:
            # The cause tells a library that is missing from one that is broken.
            notes.append(f"no {kind} baselines: {error} ({error.__cause__})")
    return found, notes


def _compare(
    model: "LeapTS", panel: "Panel", baselines: Sequence["Baseline"], notes: list[str], settings: dict[str, Any]
) -> tuple["Comparison", "LeapTS"]:
    """Run the comparison with a progress bar, note its warnings, and return it with the first model fitted."""
    from leapts.forecasting.comparison import compare
    from leapts.forecasting.progress import TrainingBar

    fitted: list[LeapTS] = []
    fits = settings["n_windows"] if settings["refit"] else 1
    try:
        with warnings.catch_warnings(record=True) as caught, TrainingBar(fits) as bar:
            warnings.simplefilter("always")
            arrow = panel.in_frames_of("pyarrow")
            comparison = compare(model, arrow, baselines, progress=bar, on_fit=fitted.append, **settings)
    except KeyboardInterrupt:
        raise Interrupted("interrupted; a backtest keeps nothing, run it again") from None
    notes += [str(warning.message) for warning in caught if warning.category is UserWarning]
    return comparison, fitted[0]


def _show(scores: Sequence["ModelScore"]) -> None:
    levels, rows = list(scores[0].coverage), []
    for score in scores:
        mase = score.mase if math.isfinite(score.mase) else None  # no series has a scale
        inside = [f"{100 * score.coverage[level]:.1f} %" if level in score.coverage else None for level in levels]
        widths = [score.width.get(level) for level in levels]
        rows.append([score.name, score.mae, score.rmse, mase, f"{score.seconds:.2f}", *inside, *widths])
        if levels:
            rows[-1].append(score.wql)
    intervals = [*(f"inside {level} %" for level in levels), *(f"width {level} %" for level in levels)]
    show_table(["model", "MAE", "RMSE", "MASE", "seconds", *intervals, *(["WQL"] if levels else [])], rows)
