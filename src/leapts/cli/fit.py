"""`leapts fit`.

Examples:
  leapts fit sales.csv --horizon 24 --out model/
  leapts fit ShopSales --horizon 12 --out model/
  leapts fit sales.csv --config run.toml --out model/ --checkpoint run/ --resume
  torchrun --nproc-per-node 2 -m leapts fit sales.csv --horizon 24 --out model/
"""

import time
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leapts.cli import options
from leapts.cli.terminal import Interrupted, note, say, say_files, show_table, write_json
from leapts.errors import ConfigError, TrainingError, WorkerLostError
from leapts.messages import counted
from leapts.training import launcher

if TYPE_CHECKING:
    from leapts.data.panel import Panel
    from leapts.forecasting.estimator import LeapTS


@options.shared_options
def fit(
    data: options.Data,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder to write the model to.")],
    prepare: options.Prepare,
    checkpoint: Annotated[Path | None, typer.Option(help="Folder for checkpoints, to resume training later.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Resume training from --checkpoint.")] = False,
    report: options.Page = None,
    threads: options.Threads = 1,
    json: options.Json = False,
) -> None:
    """Fit a model and save it. Options you leave out are chosen from the data and shown with the reason."""
    for flag, path in (("--checkpoint", checkpoint), ("--report", report)):
        if path is not None and out.resolve() in (path.resolve(), *path.resolve().parents):
            raise ConfigError(f"{flag} {path} is inside --out {out}, the model folder; choose another place")
    if resume and checkpoint is None:
        raise ConfigError("--resume needs --checkpoint: the folder with the checkpoints of the interrupted run")
    from leapts.files import claimed
    from leapts.persistence.save import require_place

    writes = launcher.is_first()
    if writes:
        require_place(out)
        options.require_output(report, options.PAGE_SUFFIXES)
    with claimed(out) if writes else nullcontext():
        model, panel, _ = prepare(data, threads)
        if writes and resume and not _holds_state(checkpoint):
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
        write_json({"model": out, "checkpoint": checkpoint, "report": report, **_summary(model, seconds)})
        return
    show_training(model, seconds)
    say_files(model=out, report=report)


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


def show_training(model: "LeapTS", seconds: float) -> None:
    """Show the options chosen from the data, steps and time, and the validation error beside seasonal naive's."""
    if chosen := model.auto_config_:
        show_table(["option", "value", "reason"], [(one.option, str(one.value), one.reason) for one in chosen])
    report, teachers = model.report_, model.predictor_.training.distill_from
    after = f" after knowledge distillation from {counted(teachers, 'model')}" if teachers else ""
    early = ", stopped early" if report.stopped_early else ""
    best = f"; best at step {report.best_step:,}: {report.quality}" if report.quality else ""
    say(f"trained   {counted(report.steps, 'step')}{after} in {seconds:.1f} s{early}{best}")


def _summary(model: "LeapTS", seconds: float) -> dict[str, Any]:
    fitted, report, chosen = model.predictor_, model.report_, model.auto_config_
    measured = ("steps", "best_step", "best_validation", "naive_mae", "stopped_early")
    return {
        "horizon": model.h,
        "input_size": fitted.config.input_size,
        "freq": fitted.tail.freq,
        "series": len(fitted.tail),
        "auto_config": [vars(one) for one in chosen],
        "training": {**{name: getattr(report, name) for name in measured}, "seconds": round(seconds, 3)},
    }


def _holds_state(checkpoint: Path | None) -> bool:
    from leapts.training.checkpoint import kept_files

    return checkpoint is not None and bool(kept_files(checkpoint))


def _what_is_kept(what: str, checkpoint: Path | None) -> str:
    if checkpoint is None:
        return f"{what}; nothing is kept (add --checkpoint FOLDER to be able to resume)"
    if _holds_state(checkpoint):
        return f"{what}; the checkpoint is in {checkpoint}: run the same command with --resume to continue"
    return f"{what} before the first checkpoint was written to {checkpoint}; run the same command again"
