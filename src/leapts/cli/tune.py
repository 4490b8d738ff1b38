"""`leapts tune`.

Examples:
  leapts tune sales.csv --horizon 24 --trials 20 --out best.toml
  leapts tune sales.csv --horizon 24 --study search.db --out best.toml
  leapts tune sales.csv --horizon 24 --engine ray --address auto --study search.db --out best.toml
  leapts fit sales.csv --config best.toml --out model/
"""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leapts.cli import options
from leapts.cli.terminal import Interrupted, note, say, say_files, show_table, write_bytes, write_json
from leapts.errors import ConfigError
from leapts.messages import counted

if TYPE_CHECKING:
    from leapts.integrations.tuning import Tuned

_STUDY = "SQLite file for the trials; the same command continues the search."
_OUT = "TOML file for the best options. [standard output]"
_ENGINE = "Fit here, one after the other, or on a Ray cluster, one trial per core."


@options.shared_options
def tune(
    data: options.Data,
    prepare: options.Prepare,
    trials: Annotated[int, typer.Option(min=1, help="Number of trials, including those in --study.")] = 20,
    study: Annotated[Path | None, typer.Option(help=_STUDY)] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help=_OUT)] = None,
    engine: Annotated[options.Engine, typer.Option(help=_ENGINE)] = "local",
    address: options.Address = None,
    threads: options.Threads = 1,
    json: options.Json = False,
) -> None:
    """Search hyperparameters by validation error. Options you give are kept, all others are searched."""
    if out is not None and out.is_dir():
        raise ConfigError(f"--out {out} is a folder; name a file, such as {out / 'best.toml'}")
    options.require_output(out, (".toml",), data=data)
    if engine == "local" and address is not None:
        raise ConfigError(f"--address {address} needs --engine ray")
    if engine == "ray" and threads > 1:
        raise ConfigError(f"--threads {threads}: with --engine ray every trial has one core; leave it out")
    from leapts.files import write_file
    from leapts.forecasting.progress import TrainingBar
    from leapts.integrations import tuning

    cluster = None
    if engine == "ray":
        from leapts.integrations.ray.tuning import RayEngine

        cluster = RayEngine(address)
    model, panel, _ = prepare(data, threads)
    started = time.perf_counter()
    try:
        with TrainingBar(trials) as bar:
            found = tuning.tune(model, panel, trials, study=study, progress=bar, on_trial=bar.at_fit, engine=cluster)
    except KeyboardInterrupt:
        kept = f"the trials are in {study}: run the same command to continue" if study else "nothing is kept"
        hint = "" if study else " (add --study FILE to be able to continue)"
        raise Interrupted(f"interrupted; {kept}{hint}") from None
    seconds = time.perf_counter() - started
    if out is not None:
        write_file(out, found.to_toml().encode())
    if json:
        best = {"best": found.best.get_params(), "validation": found.validation}
        rest = {"trials": [vars(trial) for trial in found.trials], "seconds": round(seconds, 3)}
        write_json({"config": out, **best, **rest})
    else:
        _show(found, out, seconds)


def _show(found: "Tuned", out: Path | None, seconds: float) -> None:
    pruned = sum(trial.pruned for trial in found.trials)
    line = f"searched  {counted(len(found.trials), 'trial')}, {pruned} pruned, in {seconds:.1f} s"
    line += f"; best validation MAE {found.validation:.4g} (scaled)"
    first = found.trials[0].validation
    line += f"; {first:.4g} without a search" if first is not None else ""
    if out is None:
        note(line)
        write_bytes(found.to_toml().encode())
        return
    names, rows = list(found.trials[0].options), []
    for trial in found.trials:
        remark = "pruned" if trial.pruned else "diverged" if trial.validation is None else ""
        rows.append([trial.number, *(trial.options[name] for name in names), trial.validation, remark])
    show_table(["trial", *names, "validation MAE", ""], rows)
    say(line)
    say_files(config=out)
