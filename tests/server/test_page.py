"""The page in a real browser: upload a table, see its forecast, download it."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import pytest

from leapts import LeapTS
from leapts.server.registry import ModelRegistry
from tests.report.browser import launched
from tests.report.conftest import HOSTILE
from tests.server.conftest import served
from tests.server.test_middleware import TOKEN

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


@pytest.fixture(scope="module")
def browser() -> "Iterator[Browser]":
    yield from launched()


@pytest.fixture(scope="module")
def address(registry: ModelRegistry) -> Iterator[str]:
    with served(registry) as address:
        yield address


@pytest.fixture
def page(browser: "Browser", address: str) -> "Iterator[Page]":
    """Open the page; errors in its console and requests to other hosts fail the test."""
    complaints: list[str] = []
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("dialog", lambda dialog: complaints.append(f"dialog {dialog.message}"))
    page.on("request", lambda request: _note_foreign(request.url, address, complaints))
    page.goto(address)
    page.wait_for_selector("#model option", state="attached")
    yield page
    page.close()
    # The browser itself reports every answer that is a refusal.
    assert [text for text in complaints if "Failed to load resource" not in text] == []


def _note_foreign(url: str, address: str, complaints: list[str]) -> None:
    if not url.startswith(("data:", f"blob:{address}", address)):
        complaints.append(url)


@pytest.fixture
def table(frame: pd.DataFrame, tmp_path: Path) -> Path:
    path = tmp_path / "sales.csv"
    frame.rename(columns={"unique_id": "shop", "ds": "when", "y": "sold"}).to_csv(path, index=False)
    return path


def _upload(page: "Page", path: Path) -> None:
    """Upload a file, and wait until the page shows its choices or an error."""
    page.set_input_files("#file", path)
    page.wait_for_selector("#choices:not([hidden]), #problem:not([hidden])")


def _pick(page: "Page", **columns: str) -> None:
    for name, column in columns.items():
        page.select_option(f"#{name}", label=column)


def test_upload_forecast_and_download(page: "Page", table: Path, frame: pd.DataFrame, multivariate: LeapTS) -> None:
    _upload(page, table)
    assert page.locator("#preview th").all_text_contents() == ["shop", "when", "sold"]
    _pick(page, time="when", series="shop", value="sold")
    page.click("#forecast")
    view = page.frame_locator("#view")
    view.locator("#chart svg").wait_for()
    assert view.locator("#chart .block").count() >= 1
    assert view.locator("#lanes .lane").count() == 3
    with page.expect_download() as download:
        page.click("#get-csv")
    assert download.value.suggested_filename == "forecast.csv"
    found = pd.read_csv(download.value.path(), parse_dates=["when"])
    expected = multivariate.predict(frame, level=[80, 95]).rename(columns={"unique_id": "shop", "ds": "when"})
    pd.testing.assert_frame_equal(found, expected, check_dtype=False, rtol=1e-6)
    with page.expect_download() as download:
        page.click("#get-report")
    assert "Content-Security-Policy" in Path(download.value.path()).read_text()


def test_a_wide_table_needs_no_column_of_names(page: "Page", frame: pd.DataFrame, tmp_path: Path) -> None:
    wide = frame.pivot(index="ds", columns="unique_id", values="y").reset_index()
    wide.to_csv(tmp_path / "wide.csv", index=False)
    _upload(page, tmp_path / "wide.csv")
    assert page.is_hidden("#value")
    page.click("#forecast")
    page.frame_locator("#view").locator("#chart svg").wait_for()


def test_a_single_series_may_have_further_columns(page: "Page", frame: pd.DataFrame, tmp_path: Path) -> None:
    one = frame[frame["unique_id"] == "a"].drop(columns="unique_id").assign(holiday="no", price=2.5)
    one.to_csv(tmp_path / "one.csv", index=False)
    _upload(page, tmp_path / "one.csv")
    page.select_option("#model", "univariate")
    assert page.locator("#series option:checked").text_content() == "a single one"
    page.click("#forecast")
    view = page.frame_locator("#view")
    view.locator("#chart svg").wait_for()
    assert view.locator(".lane-name").all_text_contents() == ["y"]


def test_a_hostile_table_stays_text(page: "Page", frame: pd.DataFrame, tmp_path: Path) -> None:
    names = [*HOSTILE, "=cmd|' /C calc'!A0", "<img src=x onerror=alert(1)>"]
    one = frame[frame["unique_id"] == "a"]
    column = "<img src=y onerror=alert(2)>"
    hostile = pd.concat([one.assign(unique_id=name) for name in names]).rename(columns={"unique_id": column})
    path = tmp_path / "'><script>alert(3)<script>.csv"
    hostile.to_csv(path, index=False)
    _upload(page, path)
    assert page.text_content("#file-name") == path.name
    assert page.locator("#preview th").first.text_content() == column
    page.select_option("#model", "univariate")
    _pick(page, series=column)
    page.click("#forecast")
    view = page.frame_locator("#view")
    view.locator("#chart svg").wait_for()
    assert sorted(view.locator(".lane-name").all_text_contents()) == sorted(names)
    assert page.locator("img").count() + view.locator("img").count() == 0
    assert page.evaluate("document.scripts.length") == 1


@pytest.mark.slow
def test_hostile_names_everywhere_stay_text(
    browser: "Browser", folders: Path, frame: pd.DataFrame, tmp_path: Path
) -> None:
    """Names of models, columns, series and files, and a value in an error: every control is used."""
    models = ["<img src=m onerror=alert(4)>", "</script><script>alert(5)</script>", "javascript:alert(6)"]
    registry = ModelRegistry([f"plain={folders / 'univariate'}"])
    (one,) = registry
    registry._models = {name: replace(one, name=name) for name in models}
    registry._folders = dict.fromkeys(models, folders / "univariate")
    columns = {"unique_id": "<b onmouseover=alert(7)>id</b>", "ds": '"><svg onload=alert(8)>', "y": "'-alert(9)-'"}
    table = pd.concat([frame.assign(unique_id=name) for name in HOSTILE]).drop_duplicates(["unique_id", "ds"])
    good, bad = tmp_path / "<img src=f onerror=alert(10)>.csv", tmp_path / "bad.csv"
    table.rename(columns=columns).to_csv(good, index=False)
    wrong = table.astype({"y": object}).rename(columns=columns)
    wrong.iloc[3, 2] = "<img src=v onerror=alert(11)>"
    wrong.to_csv(bad, index=False)
    chosen = {"time": columns["ds"], "series": columns["unique_id"], "value": columns["y"]}
    complaints: list[str] = []
    with served(registry) as address:
        page = browser.new_page()
        page.on("dialog", lambda dialog: complaints.append(f"dialog {dialog.message}"))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: _note_foreign(request.url, address, complaints))

        def forecast(model: str, path: Path) -> None:
            page.goto(address)
            page.wait_for_selector("#model option", state="attached")
            _upload(page, path)
            page.select_option("#model", model)
            _pick(page, **chosen)
            page.click("#forecast")

        for model in models:
            forecast(model, good)
            page.hover("#preview th >> nth=0")
            view = page.frame_locator("#view")
            view.locator("#chart svg").wait_for()
            for lane in view.locator(".lane-name").all():
                lane.click()
            for button in ("#get-csv", "#get-report"):
                with page.expect_download():
                    page.click(button)
            assert view.locator("img, svg[onload]").count() == 0
            forecast(model, bad)
            page.wait_for_selector("#problem:not([hidden])")
            assert "onerror" in (page.text_content("#problem") or "")
            assert page.locator("img, svg[onload]").count() == 0
        page.goto(f"{address}/docs")
        page.close()
    assert complaints == []


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "no table"),
        (b"just some words\n", "no table"),
        (b"unique_id,ds,y\na,2024-01-01,1\na,2024-01-02,x\n", "'x'"),
        (b"unique_id,ds,y\na,2024-01-01,1\n", "series"),
        (b"\x1f\x8b,\x00\n1,2\n", "gzip"),
        ("unique_id,ds,y\nü,2024-01-01,1\n".encode("latin-1"), "UTF-8"),
    ],
)
def test_a_bad_table_is_refused_with_the_reason(page: "Page", tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "bad.csv"
    path.write_bytes(content)
    _upload(page, path)
    if page.is_visible("#choices"):
        page.click("#forecast")
    page.wait_for_selector("#problem:not([hidden])")
    text = page.text_content("#problem") or ""
    assert words in text
    assert page.is_hidden("#result")


def test_the_report_frame_cannot_reach_the_server(page: "Page", table: Path) -> None:
    _upload(page, table)
    _pick(page, time="when", series="shop", value="sold")
    page.click("#forecast")
    page.frame_locator("#view").locator("#chart svg").wait_for()
    (inner,) = (frame for frame in page.frames if frame.url.startswith("blob:"))
    assert inner.evaluate("origin") == "null"
    assert inner.evaluate("fetch('/v1/models').then(() => 'reached', () => 'refused')") == "refused"


def test_the_page_asks_for_the_token_and_sends_it(browser: "Browser", registry: ModelRegistry, table: Path) -> None:
    with served(registry, token=TOKEN) as address:
        page = browser.new_page()
        page.goto(address)
        page.wait_for_selector("#token")
        page.fill("#token", "wrong-wrong-wrong-wrong")
        page.click("#enter")
        page.wait_for_selector("#problem:not([hidden])")
        page.fill("#token", TOKEN)
        page.press("#token", "Enter")
        page.wait_for_selector("#entry[hidden]", state="attached")
        _upload(page, table)
        _pick(page, time="when", series="shop", value="sold")
        page.click("#forecast")
        page.frame_locator("#view").locator("#chart svg").wait_for()
        page.close()


@pytest.mark.parametrize("path", ["/", "/docs"])
def test_a_phone_needs_no_sideways_scrolling(browser: "Browser", address: str, table: Path, path: str) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.goto(address + path)
    if path == "/":
        page.wait_for_selector("#model option", state="attached")
        _upload(page, table)
        _pick(page, time="when", series="shop", value="sold")
        page.click("#forecast")
        page.frame_locator("#view").locator("#chart svg").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.close()


def test_every_control_has_an_accessible_name(page: "Page") -> None:
    nameless = page.evaluate(
        """() => [...document.querySelectorAll("button, input, select, iframe")].filter((node) =>
        !(node.getAttribute("aria-label") || node.title || node.textContent.trim() || node.closest("label")
          || document.querySelector(`label[for=${node.id}]`))).map((node) => node.outerHTML)"""
    )
    assert nameless == []


def test_the_docs_describe_every_endpoint(browser: "Browser", address: str) -> None:
    page = browser.new_page()
    page.goto(f"{address}/docs")
    heads = page.locator("h2").all_text_contents()
    for name in ("POST /v1/forecast", "POST /v1/report", "GET /v1/models", "GET /metrics", "ForecastIn"):
        assert name in heads
    assert re.search("hint", page.text_content("main") or "")
    page.close()
