"""`leapts fit`."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leapts import launch
from leapts.cli import options
from leapts.cli.options import Fitting, Reading
from leapts.cli.report import Page, require_page
from leapts.cli.sources import read_source
from leapts.cli.terminal import Interrupted, TrainingBar, note, say, show_table, write_json
from leapts.errors import ConfigError, TrainingError, WorkerLostError

if TYPE_CHECKING:
    from leapts import LeapTS
    from leapts.data.panel import Panel
    from leapts.forecaster.picking import Pick

EXAMPLE = """\b
Examples:
  leapts fit sales.csv --horizon 24 --out model/
  leapts fit SeattleWeather --horizon 28 --out weather/
  leapts fit sales.csv --config run.toml --out model/ --checkpoint run/ --resume
  torchrun --nproc-per-node 2 -m leapts fit sales.csv --horizon 24 --out model/
"""


def fit(
    context: typer.Context,
    data: options.Data,
    horizon: options.Horizon,
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder to write the model to.")],
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
    checkpoint: Annotated[
        Path | None, typer.Option(help="A folder to keep the state of training in, to go on from later.")
    ] = None,
    report: Page = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from what --checkpoint holds.")] = False,
    threads: options.Threads = 1,
    config: options.FitConfig = None,  # noqa: ARG001 - read before the others
    json: options.Json = False,
    debug: options.Debug = False,  # noqa: ARG001 - looked at where errors are caught
) -> None:
    """Fit a model and write it to a folder. What you leave out is picked from the data, and shown with the reason."""
    if resume and checkpoint is None:
        raise ConfigError("--resume needs --checkpoint: the folder the interrupted run kept its state in")
    if checkpoint is not None and out.resolve() in (checkpoint.resolve(), *checkpoint.resolve().parents):
        raise ConfigError(f"--checkpoint {checkpoint} is in --out {out}, which holds the model alone; put it elsewhere")
    if report is not None and out.resolve() in report.resolve().parents:
        raise ConfigError(f"--report {report} is inside --out {out}, which holds the model alone; put it elsewhere")
    from leapts.files import claimed
    from leapts.forecaster.folder import require_place

    writes = launch.is_first()
    if writes:
        require_place(out)
        require_page(report)
        context.with_resource(claimed(out))
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
    fitting = Fitting(
        horizon=horizon,
        input_size=input_size,
        val_size=val_size,
        max_steps=max_steps,
        learning_rate=learning_rate,
        seed=seed,
        tables=options.config_tables(context),
    )
    panel = read_source(data, reading).panel
    model = fitting.forecaster(reading)
    if writes and resume and checkpoint is not None and not _holds_state(checkpoint):
        note(f"there is no state in {checkpoint} yet; starting afresh")
    try:
        seconds = fit_with_bar(model, panel, checkpoint=checkpoint, resume=resume)
    except TrainingError as error:
        if writes:
            model.save(out)
        raise TrainingError(f"{error}; the model with those weights is in {out}") from error
    if not writes:
        return
    model.save(out)
    if report is not None:
        from leapts.report import write_report

        write_report(model, panel, report)
    if json:
        write_json(_summary(model, out, checkpoint, seconds, report))
        return
    show_picks(model.picked_)
    say(describe_training(model, seconds))
    say(f"model     {out}")
    if report is not None:
        say(f"report    {report}")


def fit_with_bar(model: "LeapTS", panel: "Panel", *, checkpoint: Path | None = None, resume: bool = False) -> float:
    """Fit, show how it goes, and say what is kept when the user stops it or another process is gone.

    Returns:
        The seconds it took.
    """
    from leapts.training.workers import joined_workers

    started = time.perf_counter()
    try:
        with joined_workers() as workers, TrainingBar() as bar:
            shown = bar if workers.rank == 0 else None
            model.fit(panel, progress=shown, checkpoint_dir=checkpoint, resume=resume, workers=workers)
    except KeyboardInterrupt:
        raise Interrupted(_what_is_kept("interrupted", checkpoint)) from None
    except WorkerLostError as error:
        raise WorkerLostError(_what_is_kept(str(error), checkpoint)) from error
    return time.perf_counter() - started


def show_picks(picks: Sequence["Pick"]) -> None:
    """What was picked, and why."""
    if picks:
        show_table(["picked", "value", "because"], [(pick.name, str(pick.value), pick.reason) for pick in picks])


def describe_training(model: "LeapTS", seconds: float) -> str:
    """One line on how training went."""
    report, teachers = model.report_, model.fitted_.training.teachers
    text = f"trained   {report.steps:,} steps{f' after {teachers} teachers' if teachers else ''} in {seconds:.1f} s"
    if report.stopped_early:
        text += ", then stopped: no further improvement"
    if report.best_validation is not None:
        text += f"; best at step {report.best_step:,}: off by {report.best_validation:.3g} deviations on held-out steps"
    return text


def _summary(model: "LeapTS", out: Path, checkpoint: Path | None, seconds: float, page: Path | None) -> dict[str, Any]:
    fitted, report = model.fitted_, model.report_
    return {
        "model": str(out),
        "checkpoint": None if checkpoint is None else str(checkpoint),
        "report": None if page is None else str(page),
        "horizon": model.h,
        "input_size": fitted.config.input_size,
        "freq": fitted.tail.freq,
        "series": len(fitted.tail),
        "picked": [vars(pick) for pick in model.picked_],
        "training": {
            "steps": report.steps,
            "best_step": report.best_step,
            "best_validation": report.best_validation,
            "stopped_early": report.stopped_early,
            "seconds": round(seconds, 3),
        },
    }


def _holds_state(folder: Path) -> bool:
    from leapts.training.checkpoint import kept_files

    return bool(kept_files(folder))


def _what_is_kept(what: str, checkpoint: Path | None) -> str:
    if checkpoint is None:
        return f"{what}; nothing is kept (with --checkpoint FOLDER it could be resumed)"
    if _holds_state(checkpoint):
        return f"{what}; the state is in {checkpoint}: run the same command with --resume to go on"
    return f"{what} before the first state was kept in {checkpoint}; run the same command again"
