"""Take the pictures of the report for the documentation with Chromium.

Needs Chromium and the development tools:  python docs/images/screenshots.py
"""

import shutil
import tempfile
from pathlib import Path
from typing import Any

import torch
from playwright.sync_api import Page, sync_playwright

from leapts import LeapTS
from leapts.datasets.catalogue import find
from leapts.datasets.loading import load_dataset
from leapts.files import write_file
from leapts.report import write_report

FOLDER = Path(__file__).parent
HELD_BACK = 24  # months after the data of the fit, so that the page has windows that are new to the model
WIDE: Any = {"width": 1280, "height": 1130}
NARROW: Any = {"width": 390, "height": 844}


def main() -> None:
    """Fit the sales of four shops, write the report, and take four pictures of it."""
    torch.set_num_threads(1)
    panel = load_dataset(find("ShopSales"))
    model = LeapTS(12).fit(panel.head(-HELD_BACK))
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        report = Path(folder) / "report.html"
        address = write_report(model, panel, report, title="Sales of four shops", level=[80]).as_uri()
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])

        def opened(viewport: Any, scheme: Any, place: str) -> Page:
            page = browser.new_page(viewport=viewport, color_scheme=scheme)
            page.goto(address + place)
            page.wait_for_selector("#model svg" if place == "#page=model" else "#chart svg")
            return page

        shown = "#series=3&cutoff=10"
        light = opened(WIDE, "light", shown)
        _point_at_the_forecast(light)
        _keep(light, "report-light.png")
        _keep(opened(WIDE, "dark", shown), "report-dark.png")
        _keep(opened(WIDE, "light", "#page=model"), "report-model.png")
        _keep(opened(NARROW, "light", shown), "report-phone.png")
        browser.close()


def _point_at_the_forecast(page: Page) -> None:
    box = page.locator("#chart .block").first.bounding_box()
    if box is not None:
        page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + box["height"] * 0.5)


def _keep(page: Page, name: str) -> None:
    page.wait_for_timeout(300)  # until highlights have faded in
    write_file(FOLDER / name, page.screenshot())


if __name__ == "__main__":
    main()
