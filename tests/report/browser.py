"""The system's Chromium, driven by Playwright, for the tests of pages."""

import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# No network access, no first-run pages; root, as in containers, cannot use the sandbox.
_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def launched() -> "Iterator[Browser]":
    """Yield a browser and close it afterwards; without one, skip the test with a reason."""
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
