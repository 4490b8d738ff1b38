"""A short share of API fuzzing; responses other than described are detected."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast

import pytest

pytest.importorskip("schemathesis", reason="Schemathesis is not installed: pip install schemathesis")
pytestmark = pytest.mark.filterwarnings("ignore")  # Schemathesis' own

from leapts.server.app import create_app  # noqa: E402
from leapts_bench.server_process import server_process  # noqa: E402
from leapts_qa import api_fuzzing  # noqa: E402
from leapts_qa.samples import forecaster, waves  # noqa: E402

PROBLEM = "application/problem+json"


@contextmanager
def _answering(status: int, media_type: str, content: object) -> Iterator[str]:
    """A server with our OpenAPI description that gives one response to every request."""
    description = json.dumps(create_app(cast("Any", [])).openapi()).encode()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            if self.path == "/openapi.json":
                self._send(200, "application/json", description)
            else:
                self._send(status, media_type, json.dumps(content).encode())

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self._send(status, media_type, json.dumps(content).encode())

        def _send(self, status: int, media_type: str, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", media_type)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def _problem(detail: str) -> dict[str, object]:
    return {"type": "/docs#bad-data", "title": "No", "status": 422, "detail": detail, "hint": "none"}


def test_generated_requests_are_answered_as_described(tmp_path: Path) -> None:
    forecaster().fit(waves()).save(tmp_path / "model")
    with server_process("-m", "leapts", "serve", str(tmp_path / "model")) as server:
        outcome = api_fuzzing.asked(server.address, 0, share=0.02)
    assert not outcome.failures
    assert outcome.ends["answered with 200, as described"] > 4
    assert outcome.ends["answered with 422, as described"] > 4


@pytest.mark.parametrize(
    ("status", "media_type", "content", "message"),
    [
        (500, PROBLEM, _problem("no"), "Server error"),
        (418, PROBLEM, _problem("no"), "Undocumented status code"),
        (422, "text/x-other", _problem("no"), "Undocumented Content-Type"),
        (422, PROBLEM, {"status": "422"}, "Response violates schema"),
        (422, PROBLEM, _problem("leapts.errors.DataError"), "tells of the server's inside"),
    ],
)
def test_an_undescribed_response_is_detected(status: int, media_type: str, content: object, message: str) -> None:
    with _answering(status, media_type, content) as address:
        outcome = api_fuzzing.asked(address, 0, share=0.001)
    posts = [failure for failure in outcome.failures if failure.startswith("POST")]
    assert posts
    assert all(message in failure for failure in posts)


def test_a_described_refusal_is_not_a_failure() -> None:
    with _answering(422, PROBLEM, _problem("no")) as address:
        outcome = api_fuzzing.asked(address, 0, share=0.001)
    assert not [failure for failure in outcome.failures if failure.startswith("POST")]
    assert outcome.ends["answered with 422, as described"]
