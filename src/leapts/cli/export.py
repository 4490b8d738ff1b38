"""`leapts export`.

Examples:
  leapts export model/ --format onnx
  leapts export model/ --format pt2 --out forecaster.pt2
"""

from pathlib import Path
from typing import Annotated, Literal

import typer

from leapts.cli import options
from leapts.cli.terminal import say, write_json

_FORMAT = "ONNX (onnx), or a program for torch.export.load (pt2)."


@options.shared_options
def export(
    model: options.Model,
    format: Annotated[Literal["onnx", "pt2"], typer.Option(help=_FORMAT)] = "onnx",  # noqa: A002 - the option's name
    out: Annotated[Path | None, typer.Option("--out", "-o", help="File to write. [MODEL.onnx or MODEL.pt2]")] = None,
    json: options.Json = False,
) -> None:
    """Export a model to one file that computes forecasts and schedules of any number of windows."""
    from leapts.persistence.onnx import export_model

    folder = model.resolve()
    target = folder.with_name(f"{folder.name}.{format}") if out is None else out
    options.require_output(target, ("",), model=model)  # with any suffix
    forecaster, panel = options.load(model)
    export_model(forecaster, target, format=format)
    variates = len(panel) if forecaster.predictor_.is_multivariate else 1
    input_size, size = forecaster.predictor_.config.input_size, target.stat().st_size
    if json:
        write_json({"file": target, "format": format, "bytes": size, "input": [None, variates, input_size]})
        return
    say(f"{format:<9} {target} ({size / 1024:,.0f} kB)")
    say(f"input     windows x {variates} series x {input_size} scaled values")
