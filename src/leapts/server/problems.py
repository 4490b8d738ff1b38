"""Error responses as problem documents (RFC 9457), with a hint how to correct the request."""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, NamedTuple

from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from leapts.messages import must_be, printable, quoted

MEDIA_TYPE = "application/problem+json"
FIELDS = ("type", "title", "status", "detail", "hint")


class Kind(NamedTuple):
    """A kind of problem: the anchor of its description on `/docs`, its status, and its title."""

    name: str
    status: int
    title: str


BAD_REQUEST = Kind("bad-request", 400, "The request cannot be read")
UNAUTHORIZED = Kind("unauthorized", 401, "A token is needed")
NOT_FOUND = Kind("not-found", 404, "There is nothing at this path")
NO_SUCH_MODEL = Kind("no-such-model", 404, "There is no such model")
WRONG_METHOD = Kind("wrong-method", 405, "The path has no such method")
TOO_SLOW_TO_READ = Kind("too-slow-to-read", 408, "The request took too long to arrive")
TOO_LARGE = Kind("too-large", 413, "The request is too large")
WRONG_TYPE = Kind("wrong-type", 415, "The content has the wrong type")
WRONG_HOST = Kind("wrong-host", 421, "The request is for another host")
BAD_DATA = Kind("bad-data", 422, "The data cannot be forecast")
DISCONNECTED = Kind("disconnected", 499, "The client closed the connection")
UNEXPECTED = Kind("unexpected", 500, "An unexpected error occurred")
BUSY = Kind("busy", 503, "The server is busy")
TOO_SLOW_TO_ANSWER = Kind("too-slow-to-answer", 503, "The response took too long")

KINDS = tuple(value for value in list(globals().values()) if isinstance(value, Kind))
_BY_STATUS = {kind.status: kind for kind in reversed(KINDS)}
_SEE_DOCS = "see /docs for what is expected"
_NULL_HINT = "write null for a missing value; JSON has neither NaN nor Infinity"
_UNION_MEMBERS = ("str", "int", "constrained-str", "constrained-int")


class Problem(HTTPException):
    """An error response: its kind, what is wrong with this request, and how to correct it."""

    def __init__(self, kind: Kind, detail: str, hint: str, *, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(kind.status, detail, dict(headers or {}))
        self.kind = kind
        self.hint = hint

    def response(self) -> JSONResponse:
        """Return the problem document as a response."""
        values = (f"/docs#{self.kind.name}", self.kind.title, self.kind.status)
        content = dict(zip(FIELDS, (*values, printable(self.detail), printable(self.hint)), strict=True))
        return JSONResponse(content, self.kind.status, headers=self.headers, media_type=MEDIA_TYPE)


def as_problem(error: Exception) -> Problem:
    """Convert an error raised by FastAPI or by an endpoint."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, RequestValidationError):
        return invalid([{**one, "loc": one["loc"][1:]} for one in error.errors()])
    if isinstance(error, HTTPException):
        kind = _BY_STATUS.get(error.status_code) or Kind(
            "bad-request", error.status_code, HTTPStatus(error.status_code).phrase
        )
        hints = {404: "see /docs for the paths", 405: "use a method of the header Allow"}
        hint = hints.get(error.status_code, _SEE_DOCS)
        return Problem(kind, error.detail, hint, headers=error.headers)
    hint = "send it again; if it fails again, read the log of the server"
    return Problem(UNEXPECTED, "the server met an unexpected error", hint)


def from_message(message: str) -> Problem:
    """Convert an error message of the library, whose last part after a semicolon says what to do."""
    detail, _, hint = message.rpartition("; ")
    return Problem(BAD_DATA, detail or message, hint if detail else "correct the request and send it again")


def busy(detail: str, seconds: int = 1, *, limit: str = "higher limits") -> Problem:
    """Refuse a request that may be sent again later."""
    hint = f"send the request again after {seconds} s, or start the server with {limit}"
    return Problem(BUSY, detail, hint, headers={"Retry-After": str(seconds)})


def too_large(detail: str, limit: int, option: str) -> Problem:
    """Refuse a request above a limit that an option of `leapts serve` sets."""
    return Problem(
        TOO_LARGE, f"{detail}; the limit is {limit:,}", f"send less, or start the server with a higher {option}"
    )


def too_slow(seconds: float) -> Problem:
    """Refuse a request whose response takes too long."""
    hint = "send fewer series at a time, or start the server with a higher --timeout"
    return Problem(
        TOO_SLOW_TO_ANSWER, f"the response took longer than {seconds:g} s", hint, headers={"Retry-After": "5"}
    )


def invalid(errors: Sequence[Any], body: bytes = b"") -> Problem:
    """Describe the first invalid field in plain words: its place, its value, and what it must be."""
    first = errors[0]
    place = _place(first)
    if first["type"] == "json_invalid":
        hint = _NULL_HINT if b"NaN" in body or b"Infinity" in body else _SEE_DOCS
        return Problem(BAD_REQUEST, f"the request is not JSON: {first['ctx']['error']}", hint)
    if first["type"] in ("missing", "extra_forbidden"):
        words = "must be given" if first["type"] == "missing" else "there is no such field"
        return Problem(BAD_DATA, f"{place}: {words}", _SEE_DOCS)
    # Each member of a union complains by itself.
    allowed = " or ".join(dict.fromkeys(_allowed(one) for one in errors if _place(one) == place))
    hint = _NULL_HINT if first["type"] == "finite_number" else _SEE_DOCS
    return Problem(BAD_DATA, f"{place or 'the request'}={_shown(first['input'])}: must be {allowed}", hint)


def _place(error: Any) -> str:
    """Name the field of a validation error: `series[0].values[3]`; long names are cut."""
    parts = [*error["loc"]]
    if error["type"] != "extra_forbidden" and parts and parts[-1] in _UNION_MEMBERS:
        parts.pop()
    names = [f"[{part}]" if isinstance(part, int) else f".{part[:40]}" for part in parts]
    return "".join(names).removeprefix(".")


def _allowed(error: Any) -> str:
    return "an object" if error["type"].startswith("model_") else must_be(error)


def _shown(value: object) -> str:
    """Quote a value; of lists and objects, which may be large, show the brackets only."""
    if isinstance(value, list | dict):
        return "[...]" if isinstance(value, list) else "{...}"
    return quoted(value[:100] if isinstance(value, str) else value)
