"""`leapts demo`."""

from pathlib import Path
from typing import Annotated

import typer

from leapts.cli import options
from leapts.cli.fit import describe_training, fit_with_bar, show_picks
from leapts.cli.sources import load_set
from leapts.cli.terminal import note, say, write_json
from leapts.data.catalogue import find

DATASET, HORIZON, SHOWN = "SeattleWeather", 28, "wind"
LEVELS = (80, 95)
EXAMPLE = """\b
Example:
  leapts demo --out leapts-demo
"""


def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder to write to; made if it is not there.")] = (
        Path("leapts-demo")
    ),
    max_steps: options.MaxSteps = None,
    threads: options.Threads = 1,
    json: options.Json = False,
    debug: options.Debug = False,  # noqa: ARG001 - looked at where errors are caught
) -> None:
    """Fit four years of Seattle's weather, forecast four weeks, and write a model, tables, a picture and a report."""
    out.mkdir(parents=True, exist_ok=True)
    from leapts import LeapTS
    from leapts.data.frames import panel_frame
    from leapts.data.writing import write_frame
    from leapts.files import write_file
    from leapts.forecaster.folder import require_place
    from leapts.report import forecast_svg, write_report
    from leapts.report.exports import write_trace

    files = {
        "model": out / "model",
        "forecast": out / "forecast.csv",
        "trace": out / "trace.csv",
        "picture": out / "forecast.svg",
        "report": out / "report.html",
    }
    require_place(files["model"])
    options.use_threads(threads)
    panel = load_set(find(DATASET))
    if not json:
        note(f"{DATASET}: {len(panel)} series of {int(panel.lengths[0]):,} days; forecasting {HORIZON} days")
    model = LeapTS(HORIZON, max_steps=max_steps)
    seconds = fit_with_bar(model, panel)
    forecast, trace = model.predict(panel.in_frames_of("pyarrow"), level=list(LEVELS), return_trace=True)
    model.save(files["model"])
    write_frame(forecast, files["forecast"])
    write_trace(trace, files["trace"])
    write_file(files["picture"], forecast_svg(panel_frame(panel), forecast, trace, SHOWN).encode())
    write_report(model, panel, files["report"], title="Seattle's weather")
    if json:
        write_json({"dataset": DATASET, "horizon": HORIZON, "files": {what: str(path) for what, path in files.items()}})
        return
    show_picks(model.picked_)
    say(describe_training(model, seconds))
    for what, path in files.items():
        say(f"{what:<9} {path}")
