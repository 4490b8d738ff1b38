"""`leapts export`."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from leapts.cli import options
from leapts.cli.options import shared_options
from leapts.cli.sources import require_output
from leapts.cli.terminal import say, write_json

FormatName = Literal["onnx", "pt2"]

EXAMPLE = """\b
Examples:
  leapts export model/ --format onnx
  leapts export model/ --format pt2 --out forecaster.pt2
"""


@shared_options
def export(
    model: options.Model,
    format: Annotated[  # noqa: A002 - the option's name
        FormatName, typer.Option(help="ONNX (onnx), or a program for torch.export.load (pt2).")
    ] = "onnx",
    out: Annotated[Path | None, typer.Option("--out", "-o", help="File to write. [MODEL.onnx or MODEL.pt2]")] = None,
    json: options.Json = False,
) -> None:
    """Export a model to one file that computes forecasts and schedules of any number of windows."""
    from leapts import LeapTS
    from leapts.persistence.onnx import export_model

    folder = model.resolve()
    target = folder.with_name(f"{folder.name}.{format}") if out is None else out
    require_output(target, ("",), model=model)  # with any suffix
    options.use_threads(1)
    forecaster = LeapTS.load(model)
    export_model(forecaster, target, format=format)
    fitted = forecaster.predictor_
    variates = len(fitted.tail) if fitted.is_multivariate else 1
    if json:
        shape = [None, variates, fitted.config.input_size]
        write_json({"file": str(target), "format": format, "bytes": target.stat().st_size, "input": shape})
        return
    say(f"{format:<9} {target} ({target.stat().st_size / 1024:,.0f} kB)")
    say(f"input     windows x {variates} series x {fitted.config.input_size} scaled values")
