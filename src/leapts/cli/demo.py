"""`leapts demo`.

Example:
  leapts demo --out leapts-demo
"""

import time
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

from leapts.cli import options
from leapts.cli.fit import fit_with_bar, show_training
from leapts.cli.terminal import note, say_files, show_table, write_json

DATASET, HORIZON, LEVEL, SHOWN = "ShopSales", 18, 80, "ski_rental"
FOLDER = Path("leapts-demo")


@options.shared_options
def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder to write to; created if missing.")] = FOLDER,
    max_steps: options.MaxSteps = None,
    threads: options.Threads = 1,
    json: options.Json = False,
) -> None:
    """Forecast 18 months of sales of four shops; write a model, tables, a figure and a report."""
    out.mkdir(parents=True, exist_ok=True)
    from leapts.data.frames import panel_frame, write_frame
    from leapts.datasets.loading import load
    from leapts.forecasting.estimator import LeapTS
    from leapts.persistence.save import require_place
    from leapts.report import write_report
    from leapts.report.encode import write_trace
    from leapts.report.plots import write_forecast_plot

    names = {
        "model": "model",
        "zero_shot": "zero-shot.csv",
        "forecast": "forecast.csv",
        "trace": "trace.csv",
        "report": "report.html",
    }
    if find_spec("matplotlib"):
        names["picture"] = "forecast.png"
    files = {what: out / name for what, name in names.items()}
    require_place(files["model"])
    options.use_threads(threads)
    panel = load(DATASET)
    if not json:
        note(f"{DATASET}: {len(panel)} series of {int(panel.lengths[0])} months; forecasting {HORIZON} months")
    arrow, started = panel.in_frames_of("pyarrow"), time.perf_counter()
    at_once = LeapTS.pretrained(HORIZON, alias="zero-shot").predict(arrow, level=[LEVEL])
    write_frame(at_once, files["zero_shot"])
    if not json:
        note(f"zero-shot in {time.perf_counter() - started:.1f} s, without training; now the fit")
    model = LeapTS(HORIZON, max_steps=max_steps)
    seconds = fit_with_bar(model, panel)
    forecast, trace = model.predict(arrow, level=[LEVEL], return_trace=True)
    model.save(files["model"])
    write_frame(forecast, files["forecast"])
    write_trace(trace, files["trace"])
    if "picture" in files:
        write_forecast_plot(panel_frame(panel), forecast, trace, SHOWN, files["picture"])
    write_report(model, panel, files["report"], title="Sales of four shops (generated data)", level=[LEVEL])
    if json:
        write_json({"dataset": DATASET, "horizon": HORIZON, "files": files})
        return
    show_training(model, seconds)
    _show_both(at_once, forecast)
    say_files(**files)
    if "picture" not in files:
        note("no picture of the forecast: it needs pip install 'leapts[plot]'")


def _show_both(at_once: Any, fitted: Any) -> None:
    """Show the first months of one shop, forecast without training and by the fit."""
    rows = [
        (f"{one['ds']:%Y-%m}", f"{one['zero-shot']:.1f}", f"{other['LeapTS']:.1f}")
        for one, other in zip(at_once.to_pylist(), fitted.to_pylist(), strict=True)
        if one["unique_id"] == SHOWN
    ]
    show_table([SHOWN, "zero-shot", "fitted"], rows[:6])
