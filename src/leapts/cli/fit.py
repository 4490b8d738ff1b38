"""`leapts fit`."""

import time
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leapts.cli import options
from leapts.cli.options import NewModel, shared_options
from leapts.cli.report import Page
from leapts.cli.sources import PAGE, read_source, require_output
from leapts.cli.terminal import Interrupted, note, say, say_files, show_table, write_json
from leapts.config import ReadOptions
from leapts.errors import ConfigError, TrainingError, WorkerLostError
from leapts.messages import counted
from leapts.training import launcher

if TYPE_CHECKING:
    from leapts import LeapTS
    from leapts.data.panel import Panel
    from leapts.forecasting.auto_config import AutoOption

EXAMPLE = """\b
Examples:
  leapts fit sales.csv --horizon 24 --out model/
  leapts fit ShopSales --horizon 12 --out model/
  leapts fit sales.csv --config run.toml --out model/ --checkpoint run/ --resume
  torchrun --nproc-per-node 2 -m leapts fit sales.csv --horizon 24 --out model/
"""


@shared_options
def fit(
    data: options.Data,
    new_model: NewModel,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder to write the model to.")],
    read: ReadOptions,
    checkpoint: Annotated[Path | None, typer.Option(help="Folder for checkpoints, to resume training later.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Resume training from --checkpoint.")] = False,
    report: Page = None,
    threads: options.Threads = 1,
    json: options.Json = False,
) -> None:
    """Fit a model and save it. Options you leave out are chosen from the data and shown with the reason."""
    _require_separate(out, checkpoint, report)
    if resume and checkpoint is None:
        raise ConfigError("--resume needs --checkpoint: the folder with the checkpoints of the interrupted run")
    from leapts.files import claimed
    from leapts.persistence.save import require_place

    writes = launcher.is_first()
    if writes:
        require_place(out)
        require_output(report, PAGE)
    with claimed(out) if writes else nullcontext():
        options.use_threads(threads)
        panel = read_source(data, read).panel
        model = new_model()
        if writes and resume and checkpoint is not None and not _holds_state(checkpoint):
            note(f"there is no checkpoint in {checkpoint} yet; training starts at step 0")
        try:
            seconds = fit_with_bar(model, panel, checkpoint=checkpoint, resume=resume)
        except TrainingError as error:
            if writes:
                model.save(out)
            raise TrainingError(f"{error}; the model with the last good weights is in {out}") from error
        if not writes:
            return
        model.save(out)
    if report is not None:
        from leapts.report import write_report

        write_report(model, panel, report)
    if json:
        write_json(_summary(model, out, checkpoint, seconds, report))
        return
    show_auto_config(model.auto_config_)
    say(describe_training(model, seconds))
    say_files(model=out, report=report)


def _require_separate(out: Path, checkpoint: Path | None, report: Path | None) -> None:
    """Refuse other outputs inside the model folder."""
    for flag, path in (("--checkpoint", checkpoint), ("--report", report)):
        if path is not None and out.resolve() in (path.resolve(), *path.resolve().parents):
            raise ConfigError(f"{flag} {path} is inside --out {out}, the model folder; choose another place")


def fit_with_bar(model: "LeapTS", panel: "Panel", *, checkpoint: Path | None = None, resume: bool = False) -> float:
    """Fit with a progress bar, and return the seconds it took.

    Raises:
        Interrupted: When the user stops it; the message says which checkpoint is kept.
        WorkerLostError: When another process of the run is gone; the message says the same.
    """
    from leapts.forecasting.progress import TrainingBar
    from leapts.training.distributed import joined_workers

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


def show_auto_config(chosen: Sequence["AutoOption"]) -> None:
    """Show the options that were chosen from the data, each with the reason."""
    if chosen:
        show_table(["option", "value", "reason"], [(one.option, str(one.value), one.reason) for one in chosen])


def describe_training(model: "LeapTS", seconds: float) -> str:
    """Sum up training in one line: steps, time, and the validation error beside that of seasonal naive."""
    report, teachers = model.report_, model.predictor_.training.distill_from
    after = f" after knowledge distillation from {counted(teachers, 'model')}" if teachers else ""
    text = f"trained   {counted(report.steps, 'step')}{after} in {seconds:.1f} s"
    if report.stopped_early:
        text += ", stopped early"
    return f"{text}; best at step {report.best_step:,}: {report.quality}" if report.quality else text


def _summary(model: "LeapTS", out: Path, checkpoint: Path | None, seconds: float, page: Path | None) -> dict[str, Any]:
    fitted, report, chosen = model.predictor_, model.report_, model.auto_config_
    return {
        "model": str(out),
        "checkpoint": None if checkpoint is None else str(checkpoint),
        "report": None if page is None else str(page),
        "horizon": model.h,
        "input_size": fitted.config.input_size,
        "freq": fitted.tail.freq,
        "series": len(fitted.tail),
        "auto_config": [vars(one) for one in chosen],
        # The old name of the field, until release 0.3.
        "training": {
            "steps": report.steps,
            "best_step": report.best_step,
            "best_validation": report.best_validation,
            "naive_mae": report.naive_mae,
            "stopped_early": report.stopped_early,
            "seconds": round(seconds, 3),
        },
    }


def _holds_state(folder: Path) -> bool:
    from leapts.training.checkpoint import kept_files

    return bool(kept_files(folder))


def _what_is_kept(what: str, checkpoint: Path | None) -> str:
    if checkpoint is None:
        return f"{what}; nothing is kept (add --checkpoint FOLDER to be able to resume)"
    if _holds_state(checkpoint):
        return f"{what}; the checkpoint is in {checkpoint}: run the same command with --resume to continue"
    return f"{what} before the first checkpoint was written to {checkpoint}; run the same command again"
