"""The pages carry all they need, and may load nothing else."""

import asyncio
import re

import httpx
import pytest
from fastapi import FastAPI

from leapts.report.page import digest, viewer_script, viewer_style
from leapts.server import Limits
from leapts.server.description import openapi
from leapts.server.pages import add_pages


@pytest.fixture(scope="module")
def app() -> FastAPI:
    app = FastAPI(docs_url=None, openapi_url=None)
    app.openapi = lambda: openapi(Limits(), needs_token=False)  # type: ignore[method-assign]
    add_pages(app)
    return app


def _got(app: FastAPI, path: str) -> httpx.Response:
    async def get() -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://here") as client:
            return await client.get(path)

    return asyncio.run(get())


def _allowed(answer: httpx.Response) -> dict[str, list[str]]:
    parts = answer.headers["content-security-policy"].split("; ")
    return {name: allowed for name, *allowed in (part.split() for part in parts)}


def test_the_page_runs_its_own_script_and_the_reports_and_nothing_else(app: FastAPI) -> None:
    answer = _got(app, "/")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    (style,) = re.findall("<style>(.*?)</style>", answer.text, re.DOTALL)
    (script,) = re.findall("<script>(.*?)</script>", answer.text, re.DOTALL)
    assert style.startswith(viewer_style())
    assert _allowed(answer) == {
        "default-src": ["'none'"],
        "base-uri": ["'none'"],
        "form-action": ["'none'"],
        "frame-ancestors": ["'none'"],
        "script-src": [digest(script), digest(viewer_script())],
        "style-src": [digest(style), digest(viewer_style())],
        "connect-src": ["'self'"],
        "frame-src": ["blob:"],
        "img-src": ["data:"],
    }


def test_the_description_runs_nothing(app: FastAPI) -> None:
    answer = _got(app, "/docs")
    (style,) = re.findall("<style>(.*?)</style>", answer.text, re.DOTALL)
    allowed = _allowed(answer)
    assert "script-src" not in allowed
    assert allowed["style-src"] == [digest(style)]
    assert "POST /v1/forecast" in answer.text
    assert answer.headers["content-type"] == "text/html; charset=utf-8"


def test_programs_get_the_description_as_it_is(app: FastAPI) -> None:
    assert _got(app, "/openapi.json").json() == app.openapi()
