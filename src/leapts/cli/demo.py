"""`leapts demo`."""

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from leapts.cli import options
from leapts.cli.fit import describe_training, fit_with_bar, show_auto_config
from leapts.cli.options import shared_options
from leapts.cli.sources import load_set
from leapts.cli.terminal import note, say, write_json
from leapts.datasets.catalogue import find

DATASET, SERIES, HORIZON = "SeattleWeather", ("temp_max", "temp_min"), 28
LEVELS = (80, 95)
EXAMPLE = """\b
Example:
  leapts demo --out leapts-demo
"""


@shared_options
def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder to write to; created if missing.")] = (
        Path("leapts-demo")
    ),
    max_steps: options.MaxSteps = None,
    threads: options.Threads = 1,
    json: options.Json = False,
) -> None:
    """Forecast four weeks of temperatures in Seattle; write a model, tables, a figure and a report."""
    out.mkdir(parents=True, exist_ok=True)
    from leapts import LeapTS
    from leapts.data.frames import panel_frame, write_frame
    from leapts.persistence.save import require_place
    from leapts.report import write_report
    from leapts.report.encode import write_trace
    from leapts.report.plots import write_forecast_plot

    files = {
        "model": out / "model",
        "forecast": out / "forecast.csv",
        "trace": out / "trace.csv",
        "report": out / "report.html",
    }
    if find_spec("matplotlib"):
        files["picture"] = out / "forecast.png"
    require_place(files["model"])
    options.use_threads(threads)
    panel = load_set(find(DATASET)).select(SERIES)
    if not json:
        note(f"{DATASET}: {len(panel)} series of {int(panel.lengths[0]):,} days; forecasting {HORIZON} days")
    model = LeapTS(HORIZON, max_steps=max_steps)
    seconds = fit_with_bar(model, panel)
    forecast, trace = model.predict(panel.in_frames_of("pyarrow"), level=list(LEVELS), return_trace=True)
    model.save(files["model"])
    write_frame(forecast, files["forecast"])
    write_trace(trace, files["trace"])
    if "picture" in files:
        write_forecast_plot(panel_frame(panel), forecast, trace, SERIES[0], files["picture"])
    write_report(model, panel, files["report"], title="Temperatures in Seattle")
    if json:
        write_json({"dataset": DATASET, "horizon": HORIZON, "files": {what: str(path) for what, path in files.items()}})
        return
    show_auto_config(model.auto_config_)
    say(describe_training(model, seconds))
    for what, path in files.items():
        say(f"{what:<9} {path}")
    if "picture" not in files:
        note("no picture of the forecast: it needs pip install 'leapts[plot]'")
