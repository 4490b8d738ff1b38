"""`leapts tune`."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leapts.cli import options
from leapts.cli.options import NewModel, shared_options
from leapts.cli.sources import read_source, require_output
from leapts.cli.terminal import Interrupted, note, say, show_table, write_bytes, write_json
from leapts.config import ReadOptions
from leapts.errors import ConfigError
from leapts.messages import counted

if TYPE_CHECKING:
    from leapts.integrations.tuning import Engine, Trial, Tuned

EXAMPLE = """\b
Examples:
  leapts tune sales.csv --horizon 24 --trials 20 --out best.toml
  leapts tune sales.csv --horizon 24 --study search.db --out best.toml
  leapts tune sales.csv --horizon 24 --engine ray --address auto --study search.db --out best.toml
  leapts fit sales.csv --config best.toml --out model/
"""


@shared_options
def tune(
    data: options.Data,
    new_model: NewModel,
    read: ReadOptions,
    trials: Annotated[int, typer.Option(min=1, help="Number of trials, including those in --study.")] = 20,
    study: Annotated[
        Path | None, typer.Option(help="SQLite file for the trials; the same command continues the search.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="TOML file for the best options. [standard output]")
    ] = None,
    engine: Annotated[
        options.Engine, typer.Option(help="Fit here, one after the other, or on a Ray cluster, one trial per core.")
    ] = "local",
    address: options.Address = None,
    threads: options.Threads = 1,
    json: options.Json = False,
) -> None:
    """Search hyperparameters by validation error. Options you give are kept, all others are searched."""
    if out is not None and out.is_dir():
        raise ConfigError(f"--out {out} is a folder; name a file, such as {out / 'best.toml'}")
    require_output(out, (".toml",), data=data)
    if engine == "local" and address is not None:
        raise ConfigError(f"--address {address} needs --engine ray")
    if engine == "ray" and threads > 1:
        raise ConfigError(f"--threads {threads}: with --engine ray every trial has one core; leave it out")
    from leapts.forecasting.progress import TrainingBar
    from leapts.integrations import tuning

    options.use_threads(threads)
    panel = read_source(data, read).panel
    started = time.perf_counter()
    try:
        with TrainingBar(fits=trials) as bar:
            found = tuning.tune(
                new_model(),
                panel,
                trials,
                study=study,
                progress=bar,
                on_trial=bar.at_fit,
                engine=_cluster(address) if engine == "ray" else None,
            )
    except KeyboardInterrupt:
        kept = f"the trials are in {study}: run the same command to continue" if study else "nothing is kept"
        hint = "" if study else " (add --study FILE to be able to continue)"
        raise Interrupted(f"interrupted; {kept}{hint}") from None
    if out is not None:
        from leapts.files import write_file

        write_file(out, found.to_toml().encode())
    _show(found, out, time.perf_counter() - started, as_json=json)


def _cluster(address: str | None) -> "Engine":
    from leapts.integrations.ray.tuning import RayEngine

    return RayEngine(address)


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
    line = f"searched  {counted(len(found.trials), 'trial')}, {pruned} pruned, in {seconds:.1f} s"
    first = found.trials[0].validation
    line += f"; best validation MAE {found.validation:.4g} (scaled)"
    line += f"; {first:.4g} without a search" if first is not None else ""
    if out is None:
        note(line)
        write_bytes(found.to_toml().encode())
        return
    names = list(found.trials[0].options)
    rows = [
        [trial.number, *(trial.options[name] for name in names), trial.validation, _remark(trial)]
        for trial in found.trials
    ]
    show_table(["trial", *names, "validation MAE", ""], rows)
    say(line)
    say(f"config    {out}")


def _remark(trial: "Trial") -> str:
    if trial.pruned:
        return "pruned"
    return "diverged" if trial.validation is None else ""
