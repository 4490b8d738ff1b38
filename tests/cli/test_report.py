"""`leapts report` writes an HTML page."""

import json
from pathlib import Path

from tests.cli.conftest import Leapts, page_data


def test_page_has_the_requested_cutoffs_and_series(leapts: Leapts, model: Path, data: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    result = leapts(
        "report", model, data, "-o", page, "--cutoffs", 3, "--step-size", 2, "--series", "b", "--level", 50, "--json"
    )
    assert result.code == 0, result.err
    assert json.loads(result.out) == {"model": str(model), "report": str(page), "bytes": page.stat().st_size}
    shown = page_data(page)
    assert shown["afters"] == [8, 6, 0]
    assert [series["name"] for series in shown["series"]] == ["b"]
    assert shown["levels"] == [50]


def test_other_suffix_than_html_is_refused(leapts: Leapts, model: Path, data: Path, tmp_path: Path) -> None:
    result = leapts("report", model, data, "-o", tmp_path / "page.pdf")
    assert result.code == 2
    assert ".html" in result.error_line
