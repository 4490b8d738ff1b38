"""A real browser for the tests of the page: the system's Chromium, driven by Playwright."""

import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# No network, no first-run pages; root, as in containers, has no sandbox.
_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def launched() -> "Iterator[Browser]":
    """The browser, closed afterwards; without one, the tests that need it are skipped and say why."""
    executable = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if executable is None:
        pytest.skip("no Chromium found: install it (Debian: apt-get install chromium) to test the page in a browser")
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="Playwright is not installed: pip install playwright"
    )
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=executable, args=list(_FLAGS))
        yield browser
        browser.close()
