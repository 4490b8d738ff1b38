"""Write the report: one self-contained HTML file that needs neither a network nor a server.

The content security policy of the page allows the style and scripts of this folder by their digests, and nothing else.
Names and values are embedded as JSON and shown as text, so that they can never act as markup.
"""

import base64
import hashlib
import re
from collections.abc import Mapping
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from leapts.files import write_file
from leapts.forecasting import LeapTS
from leapts.report.collect import ReportContents, collect
from leapts.report.encode import encoded, to_script_json

_FOLDER = files("leapts.report.page")
_SCRIPTS = ("data.js", "drawing.js", "chart.js", "lanes.js", "model.js", "summary.js", "app.js")


def write_report(model: LeapTS, data: Any, path: str | Path, *, title: str = "LeapTS report", **options: Any) -> Path:
    """Forecast from several cutoffs and write the report; the other options are those of `collect`."""
    target = Path(path)
    write_file(target, report_html(collect(model, data, **options), title=title).encode())
    return target


def report_html(contents: ReportContents, *, title: str = "LeapTS report") -> str:
    """Return the report as HTML."""
    style, script = viewer_style(), viewer_script()
    values = {
        "policy": f"default-src 'none'; script-src {digest(script)}; style-src {digest(style)}; "
        "img-src data:; base-uri 'none'; form-action 'none'",
        "title": escape(title.encode("utf-8", "backslashreplace").decode()),
        "style": style,
        "script": script,
        "data": to_script_json(encoded(contents)),
    }
    return filled(_text("report.html"), values)


def viewer_style() -> str:
    """Return the style sheet of reports."""
    return _text("report.css")


def viewer_script() -> str:
    """Return the script of reports."""
    return '"use strict";\n(() => {\n' + "\n".join(map(_text, _SCRIPTS)) + "})();\n"


def _text(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")


def filled(page: str, values: Mapping[str, str]) -> str:
    """Fill a template in one pass, so that inserted text is never read as a placeholder."""
    return re.sub(r"{{(.*?)}}", lambda found: values[found[1]], page)


def digest(text: str) -> str:
    """Return the digest of an inline script or style for a content security policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
