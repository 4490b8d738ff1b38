"""`leapts backtest`."""

import math
import warnings
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leapts.cli import options
from leapts.cli.options import NewModel, shared_options
from leapts.cli.report import Page
from leapts.cli.sources import PAGE, read_source, require_output
from leapts.cli.terminal import Interrupted, note, say, say_files, show_table, write_json
from leapts.config import ReadOptions
from leapts.errors import ConfigError
from leapts.messages import counted, quoted

if TYPE_CHECKING:
    from leapts import LeapTS
    from leapts.forecasting.baselines import Baseline
    from leapts.forecasting.comparison import Comparison, ModelScore

CLOSE = 0.01  # relative difference of two errors that are called about the same
BASELINES = ("naive", "stats", "neural", "all")
BaselineKinds = Annotated[
    list[str] | None,
    typer.Option(
        "--baselines",
        help="Baselines: naive (naive forecasts only), stats (also AutoETS and AutoTheta), neural (also DLinear and "
        "N-HiTS, slow) or all; several as stats,neural. [naive]",
    ),
]
EXAMPLE = """\b
Examples:
  leapts backtest sales.csv --horizon 24 --windows 5
  leapts backtest RetailPromotions --horizon 14 --windows 3 --level 80,95 -o cv.csv
  leapts backtest sales.csv --horizon 24 --baselines stats,neural
"""


@shared_options
def backtest(
    data: options.Data,
    new_model: NewModel,
    read: ReadOptions,
    windows: Annotated[int, typer.Option(min=1, help="Number of cutoffs, counted back from the end.")] = 3,
    step_size: Annotated[int | None, typer.Option(min=1, help="Steps between cutoffs. [the horizon]")] = None,
    refit: Annotated[bool, typer.Option("--refit", help="Fit again before every cutoff.")] = False,
    level: options.Levels = None,
    season_length: Annotated[int | None, typer.Option(min=1, help="Steps in a season. [by the frequency]")] = None,
    baselines: BaselineKinds = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="CSV or Parquet file for all forecasts.")] = None,
    escape_formulas: options.EscapeFormulas = False,
    report: Page = None,
    threads: options.Threads = 1,
    json: options.Json = False,
) -> None:
    """Forecast from several past cutoffs, and compare the errors with those of baselines."""
    from leapts.data.frames import write_frame

    kinds, levels = _kinds(baselines), options.parse_levels(level)
    require_output(out, data=data)
    require_output(report, PAGE, data=data)
    options.use_threads(threads)
    source = read_source(data, read)
    season = season_length or source.season
    compared, notes = _baselines(season, kinds)
    if read.fill == "interpolate":
        notes.append("missing values are filled with the last value, since interpolation would use later values")
    fits: list[LeapTS] = []
    settings = {"n_windows": windows, "season": season, "step_size": step_size, "refit": refit, "level": levels}
    comparison = _compare(new_model(), source.panel.in_frames_of("pyarrow"), compared, settings, fits, notes)
    written = None if out is None else str(write_frame(comparison.frame, out, escape_formulas=escape_formulas))
    if report is not None:
        from leapts.report.collect import LEVELS
        from leapts.report.page import write_report

        # The model fitted before the first cutoff has seen none of the windows.
        shown = levels or LEVELS
        write_report(fits[0], source.panel, report, cutoffs=windows + 1, step_size=step_size, level=shown)
    files = {"file": written, "report": None if report is None else str(report)}
    if json:
        h = fits[0].h
        asked = {"horizon": h, "windows": windows, "step_size": step_size or h, "season": season}
        models = [{**asdict(score), "seconds": round(score.seconds, 3)} for score in comparison.scores]
        write_json({**asked, "models": models, "verdict": verdict(comparison.scores), **files, "notes": notes})
        return
    _show(comparison.scores)
    for text in notes:
        note(f"note: {text}")
    say_files(forecasts=written, report=report)
    say(verdict(comparison.scores))


def verdict(scores: Sequence["ModelScore"]) -> str:
    """Say in words how the errors of LeapTS compare with those of the best baseline."""
    ours, coarse = scores[0], f"{scores[0].name} (coarse)"
    baselines = [score for score in scores[1:] if score.name != coarse]
    if not baselines:
        return f"{ours.name} was compared with no baseline"
    best = min(baselines, key=lambda score: score.mae)
    difference = ours.mae / best.mae - 1 if best.mae > 0 else math.inf * ours.mae
    if not abs(difference) >= CLOSE:  # also for two errors of zero
        text = f"{ours.name} and {best.name} have about the same MAE"
    elif difference < 0:
        text = f"{ours.name} has the lowest MAE: {-difference:.0%} below {best.name}"
    else:
        above = f"{difference:.0%} above" if math.isfinite(difference) else "above the zero of"
        better = [score.name for score in baselines if score.mae < ours.mae]
        others = f"; better are {', '.join(better)}" if len(better) > 1 else ""
        text = f"{ours.name} does not have the lowest MAE: {above} {best.name}{others}"
    by_mase = min([ours, *baselines], key=lambda score: score.mase if math.isfinite(score.mase) else math.inf)
    if by_mase.name == (ours.name if difference < 0 else best.name) or not math.isfinite(by_mase.mase):
        return text
    return f"{text}. {by_mase.name} has the lowest MASE, which weighs all series alike"


def _kinds(given: Sequence[str] | None) -> set[str]:
    kinds = {kind for text in given or () for kind in text.split(",")}
    if unknown := sorted(kinds.difference(BASELINES)):
        raise ConfigError(f"--baselines {quoted(unknown[0])}: must be one of {', '.join(BASELINES)}")
    return set(BASELINES) if "all" in kinds else kinds


def _baselines(season: int, kinds: set[str]) -> tuple[list["Baseline"], list[str]]:
    """Make the baselines, and a note on each kind that is not installed."""
    from leapts.forecasting.baselines import Naive, SeasonalNaive, neural_baselines, statistical_baselines

    found: list[Baseline] = [SeasonalNaive(season), *([Naive()] if season > 1 else [])]
    notes = []
    for kind, make in (("stats", statistical_baselines), ("neural", neural_baselines)):
        try:
            found.extend(make(season) if kind in kinds else ())
        except ImportError as error:
            # The cause tells a library that is missing from one that is broken.
            notes.append(f"no {kind} baselines: {error} ({error.__cause__})")
    return found, notes


def _compare(
    model: "LeapTS",
    panel: Any,
    baselines: Sequence["Baseline"],
    settings: dict[str, Any],
    fits: "list[LeapTS]",
    notes: list[str],
) -> "Comparison":
    """Run the comparison with a progress bar; collect the fitted models and the notes."""
    from leapts.forecasting.comparison import compare
    from leapts.forecasting.progress import TrainingBar

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            with TrainingBar(settings["n_windows"] if settings["refit"] else 1) as bar:
                comparison = compare(model, panel, baselines, **settings, progress=bar, on_fit=fits.append)
        except KeyboardInterrupt:
            raise Interrupted("interrupted; a backtest keeps nothing, run it again") from None
    notes += [str(warning.message) for warning in caught if warning.category is UserWarning]
    if comparison.without_scale:
        notes.append(
            f"MASE leaves out {counted(comparison.without_scale, 'series')}: their history does not change over a "
            f"season of {settings['season']}, or is shorter; set --season-length"
        )
    return comparison


def _show(scores: Sequence["ModelScore"]) -> None:
    levels = list(scores[0].coverage)
    show_table(
        ["model", "MAE", "RMSE", "MASE", "seconds", *(f"inside {level} %" for level in levels)],
        [
            (
                score.name,
                score.mae,
                score.rmse,
                score.mase if math.isfinite(score.mase) else None,  # no series has a scale
                f"{score.seconds:.2f}",
                *(f"{100 * score.coverage[level]:.1f} %" if level in score.coverage else None for level in levels),
            )
            for score in scores
        ],
    )
