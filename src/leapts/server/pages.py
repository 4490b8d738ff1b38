"""The pages for people: one that forecasts a table, and one that describes what the server offers.

Style and scripts are the report's own and the files beside this one, put into the page itself and allowed by their
digests; nothing else may run, and nothing may be loaded from anywhere but this server.
"""

from importlib.resources import files

from fastapi import FastAPI, Response

from leapts.report.page import digest, filled, viewer_script, viewer_style
from leapts.server.docs import docs_html

READING = ["GET", "HEAD"]  # what asks alone whether there is something is as welcome as who reads it
_FOLDER = files("leapts.server") / "page"


def add_pages(app: FastAPI) -> None:
    """Add the pages' addresses."""
    style = viewer_style() + _text("serve.css")
    script = _text("serve.js")
    home = filled(_text("home.html"), {"style": style, "script": script})
    # The report is shown in a frame made of what this page fetched; such a frame has the page's policy, too.
    home_policy = _policy(
        f"script-src {digest(script)} {digest(viewer_script())}",
        f"style-src {digest(style)} {digest(viewer_style())}",
        "connect-src 'self'",
        "frame-src blob:",
        "img-src data:",
    )
    docs_policy = _policy(f"style-src {digest(style)}", "img-src data:")

    @app.api_route("/", methods=READING)
    async def page() -> Response:
        return _page(home, home_policy)

    @app.api_route("/docs", methods=READING)
    async def docs() -> Response:
        body = docs_html(app.openapi())
        return _page(filled(_text("docs.html"), {"style": style, "body": body}), docs_policy)

    @app.api_route("/openapi.json", methods=READING)
    async def openapi() -> dict[str, object]:
        return app.openapi()


def _text(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")


def _policy(*allowed: str) -> str:
    always = ("default-src 'none'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'")
    return "; ".join((*always, *allowed))


def _page(html: str, policy: str) -> Response:
    return Response(html, media_type="text/html; charset=utf-8", headers={"Content-Security-Policy": policy})
