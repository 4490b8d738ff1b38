"""`leapts export`."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from leapts.cli import options
from leapts.cli.sources import require_outside
from leapts.cli.terminal import say, write_json
from leapts.errors import ConfigError

FormatName = Literal["onnx", "pt2"]

EXAMPLE = """\b
Examples:
  leapts export model/ --format onnx
  leapts export model/ --format pt2 --out forecaster.pt2
"""


def export(
    model: options.Model,
    format: Annotated[  # noqa: A002 - the option's name
        FormatName, typer.Option(help="For ONNX runtimes (onnx), or for torch.export.load (pt2).")
    ] = "onnx",
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The file to write. [beside MODEL, with its name and the format]")
    ] = None,
    config: options.Config = None,  # noqa: ARG001 - read before the others
    json: options.Json = False,
    debug: options.Debug = False,  # noqa: ARG001 - looked at where errors are caught
) -> None:
    """Write a model as one file for other programs: its forecast and its schedule, for any number of windows."""
    from leapts import LeapTS
    from leapts.export import export_model

    folder = model.resolve()
    target = folder.with_name(f"{folder.name}.{format}") if out is None else out
    if not target.parent.is_dir():
        raise ConfigError(f"the folder {target.parent} does not exist; make it first")
    if target.is_dir():
        raise ConfigError(f"{target} is a folder; give --out the name of a file")
    require_outside(target, model)
    options.use_threads(1)
    forecaster = LeapTS.load(model)
    export_model(forecaster, target, format=format)
    fitted = forecaster.fitted_
    variates = len(fitted.tail) if fitted.is_joint else 1
    if json:
        shape = [None, variates, fitted.config.input_size]
        write_json({"file": str(target), "format": format, "bytes": target.stat().st_size, "input": shape})
        return
    say(f"{format:<9} {target} ({target.stat().st_size / 1024:,.0f} kB)")
    say(f"takes     any number of windows of {variates} series x {fitted.config.input_size} standardised values")
