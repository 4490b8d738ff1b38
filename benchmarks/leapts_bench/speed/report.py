"""Size of a report, and how fast it opens and responds in headless Chromium.

python -m leapts_bench.speed.report
"""

import shutil
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from playwright.sync_api import Browser, sync_playwright

from leapts import LeapTS
from leapts.data.panel import Panel
from leapts.report import write_report
from leapts_bench import results

RESULTS = Path(__file__).parents[2] / "results" / "report_speed.jsonl"
SIZES = ((20, 12, 96), (500, 50, 24), (500, 50, 96))  # series, cutoffs, horizon
LOOKBACK = 96

# Moves the slider through all cutoffs, and types a search, and waits for the layout each time.
_ANSWER = """() => {
  const took = (changes) => {
    const times = changes.map((change) => {
      const start = performance.now();
      change();
      document.body.offsetHeight;
      return performance.now() - start;
    });
    return times.sort((a, b) => a - b)[Math.floor(times.length / 2)];
  };
  const enter = (id, value) => () => {
    const input = document.getElementById(id);
    input.value = value;
    input.dispatchEvent(new Event("input"));
  };
  const last = Number(document.getElementById("cutoff").max);
  const cutoffs = Array.from({ length: last + 1 }, (_, i) => enter("cutoff", i));
  const searches = ["s", "se", "series 1", "series 12", ""].map((text) => enter("search", text));
  return { slider: took(cutoffs), search: took(searches) };
}"""


def main() -> None:
    """Measure each size once and append the figures."""
    torch.set_num_threads(1)
    with sync_playwright() as driver, tempfile.TemporaryDirectory() as folder:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for series, cutoffs, h in SIZES:
            figures = _measured(browser, Path(folder) / "report.html", series, cutoffs, h)
            results.append(RESULTS, {**results.provenance(), **figures})
            print(figures)
        browser.close()


def _measured(browser: Browser, target: Path, series: int, cutoffs: int, h: int) -> dict[str, float | int | str]:
    panel = _panel(series, LOOKBACK + h * (cutoffs + 3))
    model = LeapTS(h, LOOKBACK, max_steps=60, model={"mixing": {"kind": "none"}}).fit(panel)
    started = time.perf_counter()
    write_report(model, panel, target, cutoffs=cutoffs)
    written = time.perf_counter() - started
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    started = time.perf_counter()
    page.goto(target.as_uri())
    page.wait_for_selector("#chart svg")
    opened = time.perf_counter() - started
    answers = page.evaluate(_ANSWER)
    page.close()
    return {
        "browser": browser.version,
        "series": series,
        "cutoffs": cutoffs,
        "h": h,
        "kilobytes": round(target.stat().st_size / 1000),
        "seconds_to_write": round(written, 2),
        "seconds_to_open": round(opened, 2),
        "milliseconds_for_a_cutoff": round(answers["slider"], 1),
        "milliseconds_for_a_search": round(answers["search"], 1),
    }


def _panel(series: int, steps: int) -> Panel:
    """Generate noisy waves around a slow random walk."""
    random, time_ = np.random.default_rng(0), np.arange(steps)
    waves = np.stack([10 * np.sin(time_ / (3 + number % 7)) for number in range(series)])
    walk = 0.3 * random.normal(size=(series, steps)).cumsum(1)
    values = 50 + waves + walk + random.normal(size=(series, steps))
    return Panel.from_matrix(torch.from_numpy(values), series=tuple(f"series {number}" for number in range(series)))


if __name__ == "__main__":
    main()
