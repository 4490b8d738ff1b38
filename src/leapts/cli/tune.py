"""`leapts tune`."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leapts.cli import options
from leapts.cli.options import Fitting, Reading
from leapts.cli.sources import read_source
from leapts.cli.terminal import Interrupted, TrainingBar, note, say, show_table, write_bytes, write_json
from leapts.errors import ConfigError

if TYPE_CHECKING:
    from leapts.tuning import Engine, Trial, Tuned

EXAMPLE = """\b
Examples:
  leapts tune sales.csv --horizon 24 --trials 20 --out best.toml
  leapts tune sales.csv --horizon 24 --study search.db --out best.toml
  leapts tune sales.csv --horizon 24 --engine ray --address auto --study search.db --out best.toml
  leapts fit sales.csv --config best.toml --out model/
"""


def tune(
    context: typer.Context,
    data: options.Data,
    horizon: options.Horizon,
    trials: Annotated[
        int, typer.Option(min=1, help="Sets of options to try, counting those --study holds already.")
    ] = 20,
    study: Annotated[
        Path | None, typer.Option(help="A SQLite file to keep the trials in; with it, the same command goes on.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The TOML file to write the best options to. [standard output]")
    ] = None,
    engine: Annotated[
        options.Engine, typer.Option(help="Where to fit: here, one by one, or on a Ray cluster, a trial a processor.")
    ] = "local",
    address: options.Address = None,
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
    """Search for options that do better on held-out steps. What you give stays; what you leave out is searched."""
    if out is not None:
        from leapts.data.writing import require_writable

        if out.is_dir():
            raise ConfigError(f"--out {out} is a folder; name a file for the options, such as {out / 'best.toml'}")
        require_writable(out, (".toml",))
    if engine == "local" and address is not None:
        raise ConfigError("--address goes with --engine ray; leave it out, or add it")
    if engine == "ray" and threads > 1:
        raise ConfigError("with --engine ray every trial has one processor; leave out --threads")
    from leapts import tuning

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
    started = time.perf_counter()
    try:
        with TrainingBar(fits=trials) as bar:
            found = tuning.tune(
                fitting.forecaster(reading),
                panel,
                trials,
                study=study,
                progress=bar,
                on_trial=bar.at_fit,
                engine=_cluster(address) if engine == "ray" else None,
            )
    except KeyboardInterrupt:
        kept = f"the trials are in {study}: run the same command to go on" if study else "nothing is kept"
        hint = "" if study else " (with --study FILE it could be resumed)"
        raise Interrupted(f"interrupted; {kept}{hint}") from None
    if out is not None:
        from leapts.files import write_file

        write_file(out, found.to_toml().encode())
    _show(found, out, time.perf_counter() - started, as_json=json)


def _cluster(address: str | None) -> "Engine":
    from leapts.scaleout.trials import FitOnCluster

    return FitOnCluster(address)


def _show(found: "Tuned", out: Path | None, seconds: float, *, as_json: bool) -> None:
    if as_json:
        write_json(
            {
                "config": None if out is None else str(out),
                "best": found.best.get_params(),
                "validation": found.validation,
                "trials": [vars(trial) for trial in found.trials],
                "seconds": round(seconds, 3),
            }
        )
        return
    pruned = sum(trial.pruned for trial in found.trials)
    line = f"tried     {len(found.trials)} sets of options, {pruned} of them cut short, in {seconds:.1f} s"
    first, best = found.trials[0].validation, found.validation
    line += f"; off by {best:.4g} deviations on held-out steps"
    line += f" ({first:.4g} without a search)" if first is not None else ""
    if out is None:
        note(line)
        write_bytes(found.to_toml().encode())
        return
    names = list(found.trials[0].options)
    rows = [
        [trial.number, *(trial.options[name] for name in names), trial.validation, _remark(trial)]
        for trial in found.trials
    ]
    show_table(["trial", *names, "off by", ""], rows)
    say(line)
    say(f"config    {out}")


def _remark(trial: "Trial") -> str:
    if trial.pruned:
        return "cut short"
    return "diverged" if trial.validation is None else ""
