"""The report: one HTML file that needs nothing else, neither a network nor a server.

Style and script are the files beside this one. The page allows exactly those, by their digests, and nothing from
anywhere else; names and numbers of the data reach it as JSON and are shown as text, so they can never act as markup.
"""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from leapts.files import write_file
from leapts.forecaster import LeapTS
from leapts.intervals import Level
from leapts.report.contents import LEVELS, MOST_SERIES, ReportContents, collect
from leapts.report.encoding import encoded, to_script_json

_FOLDER = files("leapts.report") / "page"
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
    style, script = viewer_style(), viewer_script()
    policy = (
        f"default-src 'none'; script-src {digest(script)}; style-src {digest(style)}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    page = (_FOLDER / "report.html").read_text(encoding="utf-8")
    filling = {
        "policy": policy,
        "title": escape(title.encode("utf-8", "backslashreplace").decode()),
        "style": style,
        "script": script,
        "data": to_script_json(encoded(contents)),
    }
    return filled(page, filling)


def viewer_style() -> str:
    """The style of every report."""
    return (_FOLDER / "report.css").read_text(encoding="utf-8")


def viewer_script() -> str:
    """The script of every report."""
    parts = [(_FOLDER / name).read_text(encoding="utf-8") for name in _SCRIPTS]
    return '"use strict";\n(() => {\n' + "\n".join(parts) + "})();\n"


def filled(page: str, filling: Mapping[str, str]) -> str:
    """A page from its template, in one pass, so that nothing put in is ever taken for a place to fill."""
    head, *pieces = page.split("{{")
    parts = [head]
    for piece in pieces:
        name, rest = piece.split("}}", 1)
        parts += [filling[name], rest]
    return "".join(parts)


def digest(text: str) -> str:
    """How a content security policy names an inline script or style."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
