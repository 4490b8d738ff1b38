"""The report: one HTML file that needs nothing else, neither a network nor a server.

Style and script are the files beside this one. The page allows exactly those, by their digests, and nothing from
anywhere else; names and numbers of the data reach it as JSON and are shown as text, so they can never act as markup.
"""

import base64
import hashlib
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from leapts.files import write_file
from leapts.forecaster import LeapTS
from leapts.intervals import Level
from leapts.report.contents import LEVELS, MOST_SERIES, ReportContents, collect
from leapts.report.encoding import encoded, to_script_json

_SCRIPTS = ("data.js", "drawing.js", "chart.js", "lanes.js", "model.js", "app.js")


def write_report(
    model: LeapTS,
    data: Any,
    path: str | Path,
    *,
    title: str = "LeapTS report",
    cutoffs: int | None = None,
    step_size: int | None = None,
    series: Sequence[str | int] | None = None,
    most_series: int = MOST_SERIES,
    level: Sequence[Level] = LEVELS,
) -> Path:
    """Forecast from several cutoffs and write the page that shows how; the options are those of `collect`."""
    contents = collect(
        model, data, cutoffs=cutoffs, step_size=step_size, series=series, most_series=most_series, level=level
    )
    target = Path(path)
    write_file(target, report_html(contents, title=title).encode())
    return target


def report_html(contents: ReportContents, *, title: str = "LeapTS report") -> str:
    """The page."""
    folder = files("leapts.report") / "page"
    style = (folder / "report.css").read_text(encoding="utf-8")
    parts = [(folder / name).read_text(encoding="utf-8") for name in _SCRIPTS]
    script = '"use strict";\n(() => {\n' + "\n".join(parts) + "})();\n"
    policy = (
        f"default-src 'none'; script-src {_digest(script)}; style-src {_digest(style)}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    page = (folder / "report.html").read_text(encoding="utf-8")
    filling = {
        "policy": policy,
        "title": escape(title),
        "style": style,
        "script": script,
        "data": to_script_json(encoded(contents)),
    }
    # From template to page in one pass, so that nothing put in is ever taken for a place to fill.
    head, *pieces = page.split("{{")
    filled = [head]
    for piece in pieces:
        name, rest = piece.split("}}", 1)
        filled += [filling[name], rest]
    return "".join(filled)


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
