"""Names that try to act in a browser: in the report, as its title, and on the page of the server."""

import csv
import io
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from leapts.data.frames import csv_bytes
from leapts.report import write_report
from leapts_qa.injection_payloads import as_file, series_names
from leapts_qa.outcome import Outcome
from leapts_qa.samples import forecaster, waves
from leapts_qa.server_thread import served, under_many_names

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Frame, Page

SERIES_AT_ONCE = 25

# Active elements that our pages do not have, and inline event handlers.
_STRANGE = """() => [
  ...document.querySelectorAll("img, iframe:not(#view), object, embed, base, audio, video, form[action], image, use"),
  ...document.querySelectorAll("link:not([href='data:,']), meta[http-equiv=refresh], a[href^='javascript:']"),
  ...[...document.querySelectorAll("*")].filter((node) => node.getAttributeNames().some((name) => /^on/.test(name))),
].map((node) => node.outerHTML.slice(0, 80))"""


# The page reads a file asynchronously, then shows its last column or an error.
_HAS_HEAD = """([file, mark]) => document.getElementById("file-name").textContent === file &&
  (!document.getElementById("problem").hidden ||
   [...document.querySelectorAll("#preview th")].at(-1)?.textContent === mark)"""


@contextmanager
def browser() -> "Iterator[Browser]":
    """Start the system's Chromium; root, as in containers, cannot use the sandbox."""
    from playwright.sync_api import sync_playwright

    executable = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    with sync_playwright() as driver:
        started = driver.chromium.launch(
            executable_path=executable, args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        )
        yield started
        started.close()


class Watched:
    """A page that records console messages, dialogs and foreign requests."""

    def __init__(self, browser: "Browser", home: str) -> None:
        self.complaints: list[str] = []
        self.page: Page = browser.new_page(viewport={"width": 1280, "height": 900})
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: self.complaints.append(f"dialog {dialog.message}"))
        self.page.on("request", lambda request: self._request(request.url, home))

    def _request(self, url: str, home: str) -> None:
        if not url.startswith(("data:", home, f"blob:{home}")):
            self.complaints.append(f"asked for {url}")

    def strange(self, frame: "Page | Frame", scripts: int) -> list[str]:
        """Return unexpected elements and events since the last call."""
        found = [*self.complaints, *map(str, frame.evaluate(_STRANGE))]
        self.complaints.clear()
        if frame.evaluate("document.scripts.length") != scripts or frame.evaluate("'leaked' in window"):
            found.append("a script is there that was not written here, or has run")
        return found


def report(payloads: Sequence[str], folder: Path, outcome: Outcome) -> None:
    """Use payloads as names of series: each is shown literally, and nothing happens."""
    payloads = series_names(payloads)
    data = waves(payloads, 24)
    target = write_report(forecaster().fit(data), data, folder / "report.html", cutoffs=1)
    with browser() as chromium:
        watched = Watched(chromium, target.as_uri())
        watched.page.goto(target.as_uri())
        watched.page.wait_for_selector("#chart svg", timeout=10_000)
        _walk(watched, watched.page, payloads, outcome)


def _walk(watched: Watched, frame: "Page | Frame", names: Sequence[str], outcome: Outcome) -> None:
    """Walk from series to series by keyboard, from the first lane down."""
    left = list(names)
    for _ in names:  # a report opens on the series that moves most
        frame.locator("#lanes").press("ArrowUp")
    for number in range(len(names)):
        if number:
            frame.locator("#lanes").press("ArrowDown")
        shown = frame.text_content("#series-name") or ""
        strange = watched.strange(frame, scripts=2)
        if shown not in left or frame.locator("#series-name *").count():
            outcome.fail(f"{shown!r:.60} is shown, which is no name, or one that was shown before")
        elif strange:
            outcome.fail(f"{shown!r:.60}: {strange[:3]}")
        else:
            left.remove(shown)
            outcome.count("shown as text, nothing executed")


def titles(payloads: Sequence[str], folder: Path, outcome: Outcome) -> None:
    """Use payloads as the title of a report."""
    data = waves(("a",), 24)
    model = forecaster().fit(data)
    target = folder / "report.html"
    with browser() as chromium:
        watched = Watched(chromium, target.as_uri())
        for title in payloads:
            write_report(model, data, target, title=title, cutoffs=1)
            watched.page.goto(target.as_uri())
            watched.page.wait_for_selector("#chart svg", timeout=10_000)
            # HTML normalizes line ends.
            wanted = title.replace("\r\n", "\n").replace("\r", "\n")
            shown, strange = watched.page.text_content("h1"), watched.strange(watched.page, scripts=2)
            if shown != wanted or strange:
                outcome.fail(f"{title!r:.60} is shown as {shown!r:.60} {strange[:3]}")
            else:
                outcome.count("shown as text, nothing executed")


def page(payloads: Sequence[str], folder: Path, outcome: Outcome) -> None:
    """Use payloads as names of models, files, columns and series on the page of the server, and in downloads."""
    data = waves()
    forecaster().fit(data).save(folder / "model")
    # A query is UTF-8 text, and a header is one line.
    names = [name for name in payloads if len(name) < 1000]
    with served(under_many_names(folder / "model", ["plain", *names])) as address, browser() as chromium:
        watched = Watched(chromium, address)
        watched.page.goto(address)
        watched.page.wait_for_selector("#model option", state="attached", timeout=10_000)
        models = watched.page.evaluate("[...document.querySelectorAll('#model option')].map((one) => one.value)")
        if models != ["plain", *names]:
            outcome.fail(f"models are shown as {sorted({*models} ^ {*names})!r:.200}")
        for name in names:
            _upload(watched, folder / f"{as_file(name)}.csv", data, name, outcome)
        for start in range(0, len(names), SERIES_AT_ONCE):
            _forecast(watched, folder / f"names {start}.csv", tuple(names[start : start + SERIES_AT_ONCE]), outcome)


def _upload(watched: Watched, file: Path, frame: pd.DataFrame, column: str, outcome: Outcome) -> None:
    """Check that the page shows the names of the file and its columns."""
    mark = f"y{outcome.cases}"
    file.write_bytes(csv_bytes(frame.rename(columns={"unique_id": column, "y": mark})))
    shown = watched.page
    shown.set_input_files("#file", file)
    shown.wait_for_function(_HAS_HEAD, arg=[file.name, mark])
    head = shown.locator("#preview th").first.text_content() or ""
    strange = watched.strange(shown, scripts=1)
    # The preview is made line by line, and removes surrounding spaces.
    if strange or ("\n" not in column and "\r" not in column and head.split() != column.strip("\ufeff").split()):
        outcome.fail(f"{column!r:.60} as a file and a column: shown as {head!r:.60}, {strange[:3]}")
    else:
        outcome.count("file and column shown as text, nothing executed")
    file.unlink()


def _forecast(watched: Watched, file: Path, names: tuple[str, ...], outcome: Outcome) -> None:
    names = series_names(names)
    file.write_bytes(csv_bytes(waves(names, 24)))
    shown = watched.page
    shown.set_input_files("#file", file)
    shown.wait_for_function("name => document.querySelector('#preview td').textContent === name", arg=names[0])
    shown.select_option("#model", "plain")
    shown.select_option("#series", label="unique_id")
    shown.click("#forecast")
    shown.frame_locator("#view").locator("#chart svg").wait_for(timeout=60_000)
    (inner,) = (frame for frame in shown.frames if frame.url.startswith("blob:"))
    _walk(watched, inner, names, outcome)
    with shown.expect_download() as download:
        shown.click("#get-csv")
    rows = list(csv.reader(io.StringIO(Path(download.value.path()).read_bytes().decode(), newline="")))
    computed = [row[0] for row in rows if row[0].lstrip().startswith(("=", "+", "-", "@"))]
    if computed or len({row[0] for row in rows[1:]}) != len(names):
        outcome.fail(f"the table that is downloaded: {computed[:3]!r:.200}")
    else:
        outcome.count("downloaded CSV without a formula", len(names))
