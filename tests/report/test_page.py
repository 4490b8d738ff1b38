"""The report page in a browser."""

import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pandas as pd
import pytest

from leapts import LeapTS
from leapts.report import collect, report_html, write_report
from tests.forecasting.frames import UNIVARIATE, make_forecaster, make_frame
from tests.report.browser import launched
from tests.report.conftest import HOSTILE

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CUTOFFS = 6
_SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")


@pytest.fixture(scope="module")
def browser() -> "Iterator[Browser]":
    yield from launched()


@pytest.fixture(scope="module")
def report(model: LeapTS, data: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    return write_report(model, data, folder / "report.html", cutoffs=CUTOFFS, title="Fruit & <i>more</i>")


@pytest.fixture
def page(browser: "Browser", report: Path) -> "Iterator[Page]":
    """Open the report; console messages, errors, dialogs and requests to other addresses fail the test."""
    complaints: list[str] = []
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("dialog", lambda dialog: complaints.append(f"dialog {dialog.message}"))
    page.on("request", lambda request: _note_foreign(request.url, report, complaints))
    page.goto(report.as_uri())
    page.wait_for_selector("#chart svg")
    yield page
    page.close()
    assert complaints == []


def _note_foreign(url: str, report: Path, complaints: list[str]) -> None:
    if not url.startswith(("data:", report.as_uri())):
        complaints.append(url)


def _choose(page: "Page", name: str) -> None:
    page.fill("#search", name)
    page.locator(".lane").get_by_text(name, exact=True).first.click()


def test_the_page_opens_on_the_future(page: "Page") -> None:
    assert page.text_content("h1") == "Fruit & <i>more</i>"
    assert page.input_value("#cutoff") == str(CUTOFFS - 1)
    assert page.locator("#chart .actual").count() == 0
    assert page.locator("#lanes .lane").count() == 7


def test_the_summary_has_the_numbers_of_the_forecast(page: "Page", model: LeapTS, data: pd.DataFrame) -> None:
    forecast = model.predict(data, level=[80])
    _choose(page, "plums")
    own = forecast[forecast["unique_id"] == "plums"]
    numbers = [float(text) for text in re.findall(r"-?\d+\.\d+", page.text_content("#summary-next") or "")]
    history = data[data["unique_id"] == "plums"]["y"].tail(6).mean()
    means = [own["LeapTS"].mean(), history, own["LeapTS-lo-80"].mean(), own["LeapTS-hi-80"].mean()]
    assert numbers == pytest.approx(means, abs=0.02)
    total, low, high = (float(text) for text in re.findall(r"-?\d+\.\d+", page.text_content("#summary-total") or ""))
    assert total == pytest.approx(own["LeapTS"].sum(), abs=0.02)
    paths = model.predict(data[data["unique_id"] == "plums"], n_samples=500).iloc[:, 3:].sum()
    assert (low, high) == pytest.approx(tuple(paths.quantile([0.1, 0.9])), rel=0.05)
    assert "held-out" in (page.text_content("#summary-trust") or "")


def test_the_values_can_be_copied_and_downloaded(page: "Page", model: LeapTS, data: pd.DataFrame) -> None:
    page.click("#values summary")
    assert page.locator("#values-table tbody tr").count() == 6
    with page.expect_download() as waiting:
        page.click("#csv")
    table = pd.read_csv(waiting.value.path())
    forecast = model.predict(data, level=[95])
    assert len(table) == len(forecast)
    pears = table[table["series"] == "pears"]
    own = forecast[forecast["unique_id"] == "pears"]
    assert pears["forecast"].to_numpy() == pytest.approx(own["LeapTS"].to_numpy(), abs=0.02)
    assert pears["hi-95"].to_numpy() == pytest.approx(own["LeapTS-hi-95"].to_numpy(), abs=0.05)
    assert set(HOSTILE) <= set(table["series"])


def test_the_slider_moves_through_the_cutoffs(page: "Page", data: pd.DataFrame) -> None:
    days = sorted(data["ds"].unique())
    for cutoff, after in enumerate(range(6 * (CUTOFFS - 1), -1, -6)):
        page.fill("#cutoff", str(cutoff))
        assert f"{days[-1 - after]:%Y-%m-%d}" in (page.text_content("#cutoff-label") or "")
    assert page.locator("#chart .actual").count() == 0
    assert "future" in (page.text_content("#cutoff-label") or "")
    assert page.is_disabled("#later")


def test_the_kind_of_window_is_shown(page: "Page") -> None:
    page.fill("#cutoff", "0")
    assert "held out of training" in (page.text_content("#cutoff-label") or "")
    page.fill("#cutoff", "1")
    assert "new to the model" in (page.text_content("#cutoff-label") or "")


def test_the_search_finds_series_and_shows_the_first(page: "Page") -> None:
    page.fill("#search", "PLUM")
    assert page.locator(".lane-name").all_text_contents() == ["plums"]
    assert page.text_content("#series-name") == "plums"
    page.fill("#search", "nothing like it")
    assert page.text_content("#lanes") == "No series of that name."
    page.press("#search", "Escape")
    assert page.locator("#lanes .lane").count() == 7


def test_the_tooltip_agrees_with_the_trace(page: "Page", model: LeapTS, data: pd.DataFrame) -> None:
    page.fill("#cutoff", str(CUTOFFS - 1))
    forecast, trace = model.predict(data, level=[80, 95], return_trace=True)
    for name in ("apples", "plums"):
        _choose(page, name)
        leaps = trace[trace["unique_id"] == name]
        values = forecast[forecast["unique_id"] == name].reset_index(drop=True)
        box = page.locator("#chart svg").bounding_box()
        assert box is not None
        blocks = page.locator("#chart .block")
        assert blocks.count() == len(leaps)
        for number, (_, leap) in enumerate(leaps.iterrows()):
            block = blocks.nth(number).bounding_box()
            assert block is not None
            # Over the first step of the leap.
            step_width = block["width"] / leap["length"]
            page.mouse.move(block["x"] + min(step_width, 20) / 2 + 1, box["y"] + box["height"] / 2)
            read = dict(
                zip(
                    page.locator("#tip dt").all_text_contents(),
                    (text.replace("\u00a0", " ") for text in page.locator("#tip dd").all_text_contents()),
                    strict=True,
                )
            )
            assert page.locator("#tip h3").nth(1).text_content() == f"Leap {number + 1}: {leap['scale']}"
            assert read["length"] == str(leap["length"])
            assert read["steps"] == f"{leap['start'] + 1} to {leap['end']}"
            for scale in ("short", "mid", "long"):
                shown = float(read[f"probability of {scale}"].removesuffix(" %"))
                assert shown == pytest.approx(100 * leap[f"p_{scale}"], abs=0.11)
            share = leap["control"] / (leap["control"] + leap["temporal"])
            assert float(read["control share"].removesuffix(" %")) == pytest.approx(100 * share, abs=0.11)
            assert float(read["temporal share"].removesuffix(" %")) == pytest.approx(100 - 100 * share, abs=0.11)
            assert float(read["forecast"]) == pytest.approx(values["LeapTS"][leap["start"]], abs=0.01)
            low, high = map(float, read["95 % interval"].split(" to "))
            assert low == pytest.approx(values["LeapTS-lo-95"][leap["start"]], abs=0.02)
            assert high == pytest.approx(values["LeapTS-hi-95"][leap["start"]], abs=0.02)
            assert 0 < float(read["gate"]) < 1


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_stays_text(page: "Page", name: str) -> None:
    _choose(page, name)
    assert page.text_content("#series-name") == name
    assert page.locator("#series-name *").count() == 0
    assert page.locator(".lane[aria-selected=true] .lane-name").text_content() == name
    assert page.locator("main b >> text=bold").count() == 0
    assert page.evaluate("document.scripts.length") == 2


def test_the_page_can_be_used_by_keyboard(page: "Page") -> None:
    _choose(page, "pears")
    page.locator("#search").evaluate("box => { box.value = ''; box.dispatchEvent(new Event('input')); box.blur(); }")
    first = page.text_content("#series-name")
    page.keyboard.press("ArrowDown")
    assert page.text_content("#series-name") != first
    page.keyboard.press("ArrowUp")
    assert page.text_content("#series-name") == first
    page.keyboard.press("ArrowLeft")
    assert page.input_value("#cutoff") == str(CUTOFFS - 2)
    page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("Shift+ArrowRight")
    assert "step 2 of 6" in (page.text_content("#tip") or "")
    assert "step 2 of 6" in (page.text_content("#spoken") or "")
    page.keyboard.press("Escape")
    assert page.is_hidden("#tip")
    page.keyboard.press("/")
    page.keyboard.type("pea")
    assert page.text_content("#series-name") == "pears"
    page.keyboard.press("Escape")
    page.keyboard.press("m")
    assert page.is_visible("#model")


def test_the_model_tab_has_all_charts_and_tables(page: "Page", model: LeapTS) -> None:
    page.click("#tab-model")
    text = page.text_content("#model") or ""
    assert "has not seen them" in text
    for pick in model.auto_config_:
        assert pick.reason in text
    titles = page.locator("#model .card h2").all_text_contents()
    assert titles == [
        "Error by step of the horizon",
        "Coverage of the intervals",
        "Calibration",
        "Training",
        "Scales and leaps",
        "Options chosen automatically",
        "Model options",
    ]
    page.wait_for_selector("#model .plot svg path.line")
    assert page.locator("#model .plot svg[role=img]").count() == 6


def test_the_color_scheme_follows_the_system_and_the_button(page: "Page") -> None:
    def background() -> object:
        return page.evaluate("getComputedStyle(document.body).backgroundColor")

    seen = {}
    for scheme in _SCHEMES:
        page.emulate_media(color_scheme=scheme)
        page.wait_for_selector(f"html[data-theme={scheme}]")
        seen[scheme] = background()
    assert seen["light"] != seen["dark"]
    page.click("#theme")
    assert background() == seen["light"]


@pytest.mark.parametrize("address", ["", "#page=model"])
def test_a_phone_needs_no_horizontal_scrolling(browser: "Browser", report: Path, address: str) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.goto(report.as_uri() + address)
    page.wait_for_selector("#model svg" if address else "#chart svg")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.close()


def test_controls_and_charts_have_accessible_names(page: "Page") -> None:
    nameless = page.evaluate(
        """() => [...document.querySelectorAll("button, input, select, svg[role=img], [role=listbox], [role=option]")]
        .filter((node) => !(node.getAttribute("aria-label") || node.textContent.trim() || node.closest("label")))
        .map((node) => node.outerHTML)"""
    )
    assert nameless == []


def test_only_visible_lanes_are_drawn(browser: "Browser", data: pd.DataFrame, tmp_path: Path) -> None:
    one = data[data["unique_id"] == "apples"]
    many = pd.concat([one.assign(unique_id=f"shop {number}") for number in range(120)], ignore_index=True)
    forecaster = make_forecaster(model={"mixing": {"kind": "none"}, "hidden_size": 16}, max_steps=2).fit(many)
    target = write_report(forecaster, many, tmp_path / "many.html", cutoffs=2)
    page = browser.new_page()
    page.goto(target.as_uri())
    page.wait_for_selector(".lane")
    assert page.locator("#lanes .lane").count() < 40
    page.locator("#lanes").evaluate("lanes => { lanes.scrollTop = lanes.scrollHeight; }")
    page.wait_for_selector("#lane-119")
    page.close()


def test_a_model_without_leaps_has_a_page(browser: "Browser", data: pd.DataFrame, tmp_path: Path) -> None:
    plain = make_forecaster(model={"scheduling": {"kind": "none"}, "mixing": {"kind": "none"}}).fit(data)
    page = browser.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(write_report(plain, data, tmp_path / "plain.html", cutoffs=2).as_uri())
    page.wait_for_selector("#chart .final")
    assert "no scheduling branch" in (page.text_content("#leaps-about") or "")
    page.click("#tab-model")
    page.wait_for_selector("#model .plot svg")
    assert errors == []
    page.close()


def test_the_security_policy_allows_only_the_style_and_script_of_the_page(model: LeapTS, data: pd.DataFrame) -> None:
    html = report_html(collect(model, data, cutoffs=1))
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', html)
    assert policy is not None
    assert policy[1].startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy[1]
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", html)


def test_a_report_of_twenty_series_is_below_a_megabyte() -> None:
    frame = pd.concat(
        [
            pd.DataFrame(
                {
                    "unique_id": f"series {number}",
                    "ds": range(1600),
                    "y": 1e4 + 100 * pd.Series(range(1600)).sample(1600, random_state=number).to_numpy(),
                }
            )
            for number in range(20)
        ]
    )
    forecaster = make_forecaster(h=96, input_size=96, max_steps=1, model={"mixing": {"kind": "none"}, "hidden_size": 8})
    html = report_html(collect(forecaster.fit(frame), frame))
    assert len(html.encode()) < 1_000_000


def _with_scripts(page: "Page", function: str, argument: list[float]) -> Any:
    """Call a function with the functions of the page in scope, which are private to its script."""
    folder = files("leapts.report.page")
    scripts = "".join((folder / name).read_text() for name in ("data.js", "drawing.js"))
    return page.evaluate(f"(argument) => {{ {scripts} return ({function})(argument); }}", argument)


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (43988000000, -7, "4.399e+10"),
        (1.234e-10, 12, "1.234e-10"),
        (12346999, 0, "12,346,999"),
        (1e16, -12, "1e+16"),
        (0.5, 9, "0.5"),
    ],
)
def test_numbers_are_formatted_with_enough_digits(page: "Page", value: float, digits: int, text: str) -> None:
    assert _with_scripts(page, "([value, digits]) => formatted(value, digits)", [value, digits]) == text


def test_labels_of_ticks_differ(page: "Page") -> None:
    script = "([low, high]) => { const t = niceTicks(low, high, 6); return t.ticks.map((x) => tickText(x, t.digits)); }"
    for low, high in ((1234000, 1234500), (0, 5e6), (100000, 100010), (-3e9, 2e9), (0, 1e-3)):
        ticks = _with_scripts(page, script, [low, high])
        assert len(set(ticks)) == len(ticks) > 2


def test_a_horizon_of_one_step_and_a_late_series_are_visible(browser: "Browser", tmp_path: Path) -> None:
    frame = make_frame({"a": 90, "late": 35})
    frame["ds"] = frame.groupby("unique_id", sort=False).cumcount() + 1
    frame.loc[frame["unique_id"] == "late", "ds"] += 55
    model = make_forecaster(h=1, val_size=20, **UNIVARIATE).fit(frame)
    page = browser.new_page()
    page.goto(write_report(model, frame, tmp_path / "one.html", cutoffs=40).as_uri())
    page.wait_for_selector("#chart .band")
    box = page.locator("#chart .band").first.bounding_box()
    assert box is not None
    assert min(box["width"], box["height"]) > 1
    labels = page.locator("#chart text").all_text_contents()
    assert not [label for label in labels if re.fullmatch(r"[4-9]\d\.\d+", label)]  # no step between steps
    _choose(page, "late")
    page.locator("#cutoff").fill("0")
    assert "NaN" not in (page.text_content("#cutoff-label") or "")
    page.close()
