"""`leapts backtest`."""

import math
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leapts.cli import options
from leapts.cli.options import Fitting, Reading
from leapts.cli.report import Page, require_page
from leapts.cli.sources import read_source, require_apart
from leapts.cli.terminal import Interrupted, TrainingBar, note, say, show_table, write_json
from leapts.wording import counted

if TYPE_CHECKING:
    from leapts import LeapTS
    from leapts.baselines import Baseline
    from leapts.forecaster.comparison import Comparison

EXAMPLE = """\b
Examples:
  leapts backtest sales.csv --horizon 24 --windows 5
  leapts backtest SeattleWeather --horizon 28 --windows 3 --level 80 --level 95 -o cv.csv
"""


def backtest(
    context: typer.Context,
    data: options.Data,
    horizon: options.Horizon,
    windows: Annotated[int, typer.Option(min=1, help="How many cutoffs, counted back from the end.")] = 3,
    step_size: Annotated[
        int | None, typer.Option(min=1, help="Steps from one cutoff to the next. [the horizon]")
    ] = None,
    refit: Annotated[bool, typer.Option("--refit", help="Fit anew before every window.")] = False,
    level: options.Levels = None,
    season: Annotated[int | None, typer.Option(min=1, help="Steps to a season. [by the frequency]")] = None,
    statistical: Annotated[
        bool, typer.Option(help="Compare with exponential smoothing and Theta, if leapts[stats] is installed.")
    ] = True,
    neural: Annotated[
        bool, typer.Option(help="Compare with DLinear and N-HiTS, if leapts[neural] is installed.")
    ] = True,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A CSV or Parquet file for all forecasts.")
    ] = None,
    safe_cells: options.SafeCells = False,
    report: Page = None,
    input_size: options.InputSize = None,
    freq: options.Freq = None,
    id_col: options.IdCol = "unique_id",
    time_col: options.TimeCol = "ds",
    target_col: options.TargetCol = "y",
    layout: options.LayoutOption = "auto",
    fill: options.FillOption = None,
    duplicates: options.DuplicatesOption = "error",
    val_size: options.ValSize = None,
    max_steps: options.MaxSteps = None,
    learning_rate: options.LearningRate = None,
    seed: options.Seed = 1,
    threads: options.Threads = 1,
    config: options.FitConfig = None,  # noqa: ARG001 - read before the others
    json: options.Json = False,
    debug: options.Debug = False,  # noqa: ARG001 - looked at where errors are caught
) -> None:
    """Forecast the past from several cutoffs, and compare with baselines."""
    from leapts.data.writing import require_writable, write_frame
    from leapts.forecaster.comparison import compare

    if output is not None:
        require_writable(output)
        require_apart(output, data)
    require_page(report)
    options.use_threads(threads)
    reading = Reading(
        id_col=id_col,
        time_col=time_col,
        target_col=target_col,
        layout=layout,
        freq=freq,
        fill=fill,
        duplicates=duplicates,
    )
    if fill == "interpolate":
        note("note: gaps are filled with the last value before them, since interpolation looks ahead of a cutoff")
    fitting = Fitting(
        horizon=horizon,
        input_size=input_size,
        val_size=val_size,
        max_steps=max_steps,
        learning_rate=learning_rate,
        seed=seed,
        tables=options.config_tables(context),
    )
    source = read_source(data, reading)
    season = season or source.season
    baselines, missing = _baselines(season, statistical=statistical, neural=neural)
    fits: list[LeapTS] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            with TrainingBar(windows if refit else 1) as bar:
                comparison = compare(
                    fitting.forecaster(reading),
                    source.panel.in_frames_of("pyarrow"),
                    baselines,
                    n_windows=windows,
                    season=season,
                    step_size=step_size,
                    refit=refit,
                    level=options.whole_levels(level),
                    progress=bar,
                    on_fit=fits.append,
                )
        except KeyboardInterrupt:
            raise Interrupted("interrupted; a back-test keeps nothing, so run it again") from None
    remarks = [*missing, *(str(warning.message) for warning in caught if warning.category is UserWarning)]
    if comparison.without_scale:
        left_out = counted(comparison.without_scale, "series")
        remarks.append(
            f"MASE leaves out {left_out}, whose history has no change over a season of {season}, or is no longer than "
            "that; --season gives another"
        )
    written = None if output is None else str(write_frame(comparison.frame, output, safe_cells=safe_cells))
    if report is not None:
        from leapts.report import write_report
        from leapts.report.contents import LEVELS

        # Of the model fitted before the first window: all the windows are new to it.
        levels = options.whole_levels(level) or LEVELS
        write_report(fits[0], source.panel, report, cutoffs=windows + 1, step_size=step_size, level=levels)
    if json:
        write_json(_summary(comparison, horizon, windows, step_size or horizon, season, written, report, remarks))
        return
    _show(comparison)
    for remark in remarks:
        note(f"note: {remark}")
    if written is not None:
        say(f"forecasts {written}")
    if report is not None:
        say(f"report    {report}")


def _baselines(season: int, *, statistical: bool, neural: bool) -> tuple[list["Baseline"], list[str]]:
    """What to compare with, and a remark on each kind that is not installed."""
    from leapts.baselines import SeasonalNaive, neural_baselines, statistical_baselines

    found: list[Baseline] = [SeasonalNaive(season)]
    missing = []
    for kind, wanted, make in (
        ("statistical", statistical, statistical_baselines),
        ("neural", neural, neural_baselines),
    ):
        try:
            found.extend(make(season) if wanted else ())
        except ImportError as error:
            # The cause tells a library that is not there from one that is broken.
            missing.append(f"not compared with {kind} models: {error} ({error.__cause__})")
    return found, missing


def _show(comparison: "Comparison") -> None:
    levels = list(comparison.scores[0].coverage)
    show_table(
        ["model", "MAE", "RMSE", "MASE", "seconds", *(f"inside {level} %" for level in levels)],
        [
            (
                score.name,
                score.mae,
                score.rmse,
                score.mase if math.isfinite(score.mase) else None,  # none of the series has a scale
                f"{score.seconds:.2f}",
                *(f"{100 * score.coverage[level]:.1f} %" if level in score.coverage else None for level in levels),
            )
            for score in comparison.scores
        ],
    )


def _summary(
    comparison: "Comparison",
    horizon: int,
    windows: int,
    step_size: int,
    season: int,
    written: str | None,
    report: Path | None,
    remarks: list[str],
) -> dict[str, object]:
    return {
        "horizon": horizon,
        "windows": windows,
        "step_size": step_size,
        "season": season,
        "models": [
            {
                "name": score.name,
                "mae": score.mae,
                "rmse": score.rmse,
                "mase": score.mase,
                "seconds": round(score.seconds, 3),
                "coverage": score.coverage,
            }
            for score in comparison.scores
        ],
        "file": written,
        "report": None if report is None else str(report),
        "notes": remarks,
    }
