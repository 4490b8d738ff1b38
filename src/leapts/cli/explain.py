"""`leapts explain`.

Examples:
  leapts explain model/
  leapts explain model/ newer.csv -o parts.csv
  leapts explain model/ --do scale=long --do 'gate={"0": 0}'
  leapts explain model/ --do 'schedule=[6, ["short", 2], 20]' --json
"""

import json as json_module
from pathlib import Path
from typing import Annotated, Any

import typer

from leapts.cli import options
from leapts.cli.terminal import say, say_files, show_table, write_json
from leapts.errors import ConfigError
from leapts.messages import quoted

_DATA = "History: a file, - for standard input, or a data set. [data of the fit]"
_DO = 'Decision to change, others replayed: scale=long, length=6, gate=0, or JSON by leap: length={"0": 6}; repeatable.'
_OUT = "CSV or Parquet file for the parts of every value."


@options.shared_options
def explain(
    model: options.Model,
    data: Annotated[str | None, typer.Argument(metavar="DATA", help=_DATA)] = None,
    do: Annotated[list[str] | None, typer.Option(metavar="KEY=VALUE", help=_DO)] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help=_OUT)] = None,
    threads: options.Threads = 1,
    json: options.Json = False,
) -> None:
    """Show what each forecast is made of, and what it would be with another decision."""
    from leapts.explanation.interventions import predict_under

    changed = dict(map(parse_do, do or ()))
    options.require_output(out, data=data, model=model)
    forecaster, panel = options.load(model, data, threads)
    found = forecaster.explain(panel)
    means = found.values.mean(1)
    fitted = forecaster.predictor_
    effects = predict_under(fitted, changed, fitted.windows(panel)).values.mean(1) - means
    if out is not None:
        from leapts.data.frames import write_frame

        write_frame(found.to_frame(), out)
    if json:
        series = [{**one, "effect": effect} for one, effect in zip(found.to_dict(), effects.tolist(), strict=True)]
        write_json({"model": model, "do": changed, "series": series, "files": {"parts": out} if out else {}})
        return
    shown = found.panel.series
    if changed:
        columns = zip(shown, means.tolist(), effects.tolist(), strict=False)
        rows = [[str(name), f"{mean:.4g}", f"{mean + more:.4g}", f"{more:+.4g}"] for name, mean, more in columns]
        show_table(["series", "mean forecast", "with --do", "effect"], rows)
    else:
        for name in shown:
            say(found.summary(name))
    say_files(parts=out)


def parse_do(entry: str) -> tuple[str, Any]:
    """Read one decision: text, or JSON where it is JSON.

    Raises:
        ConfigError: When it is not KEY=VALUE.
    """
    key, _, value = entry.partition("=")
    if not value:
        raise ConfigError(f"--do {quoted(entry)}: must be KEY=VALUE, such as scale=long or gate=0")
    try:
        return key, json_module.loads(value)
    except ValueError:
        return key, value
