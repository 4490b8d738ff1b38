"""What goes wrong, as problem documents (RFC 9457): what it is, what happened, and the cure."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus

from leapts.messages import printable

MEDIA_TYPE = "application/problem+json"


@dataclass(frozen=True)
class Kind:
    """A kind of problem: its name in the address of its description, its status, and what it is in general."""

    name: str
    status: int
    title: str


BAD_REQUEST = Kind("bad-request", 400, "The request cannot be read")
UNAUTHORIZED = Kind("unauthorized", 401, "A token is needed")
NOT_FOUND = Kind("not-found", 404, "There is nothing here")
NO_SUCH_MODEL = Kind("no-such-model", 404, "There is no such model")
WRONG_METHOD = Kind("wrong-method", 405, "This cannot be done here")
TOO_SLOW_TO_READ = Kind("too-slow-to-read", 408, "The request took too long to arrive")
TOO_LARGE = Kind("too-large", 413, "The request is too large")
WRONG_TYPE = Kind("wrong-type", 415, "The content is of another type")
WRONG_HOST = Kind("wrong-host", 421, "The request is for another host")
BAD_DATA = Kind("bad-data", 422, "The data cannot be forecast from")
UNEXPECTED = Kind("unexpected", 500, "Something unexpected happened")
BUSY = Kind("busy", 503, "Too much to do")
TOO_SLOW_TO_ANSWER = Kind("too-slow-to-answer", 503, "The answer took too long")

KINDS = tuple(value for value in list(globals().values()) if isinstance(value, Kind))
_BY_STATUS = {kind.status: kind for kind in reversed(KINDS)}


class Problem(Exception):  # noqa: N818 - it is the name of the document
    """An answer that says what is wrong.

    Args:
        kind: Of problem.
        detail: What happened in this case.
        cure: What to do about it.
        headers: Further ones the answer needs.
    """

    def __init__(self, kind: Kind, detail: str, cure: str, *, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.kind = kind
        self.detail = detail
        self.cure = cure
        self.headers = dict(headers or {})

    def body(self) -> bytes:
        """The document."""
        document = {
            "type": f"/docs#{self.kind.name}",
            "title": self.kind.title,
            "status": self.kind.status,
            "detail": printable(self.detail),
            "cure": printable(self.cure),
        }
        return json.dumps(document).encode()


def in_two(message: str) -> tuple[str, str]:
    """An error of the library as what happened and the cure: its messages end with the cure after a semicolon."""
    detail, _, cure = message.rpartition("; ")
    return (detail, cure) if detail else (message, "correct the request and send it again")


def busy(detail: str, seconds: int = 1, *, limit: str = "higher limits") -> Problem:
    """Too much to do: come again."""
    cure = f"send the request again after {seconds} s, or start the server with {limit}"
    return Problem(BUSY, detail, cure, headers={"Retry-After": str(seconds)})


def too_large(detail: str, limit: int, option: str) -> Problem:
    """More than is taken at a time, by a limit that can be set."""
    cure = f"send less at a time, or start the server with a higher {option}"
    return Problem(TOO_LARGE, f"{detail}, and at most {limit:,} are taken", cure)


def by_status(status: int, detail: str | None, headers: Mapping[str, str] | None = None) -> Problem:
    """The problem a status alone tells of."""
    kind = _BY_STATUS.get(status) or Kind("bad-request", status, HTTPStatus(status).phrase)
    cures = {404: "see /docs for what there is", 405: "use a method that the header Allow names"}
    return Problem(kind, detail or kind.title, cures.get(status, "see /docs for what is expected"), headers=headers)


def too_slow(seconds: float) -> Problem:
    """An answer that takes longer than may be."""
    cure = "send fewer series at a time, or start the server with a higher --timeout"
    detail = f"the answer took longer than {seconds:g} s"
    return Problem(TOO_SLOW_TO_ANSWER, detail, cure, headers={"Retry-After": "5"})


def unexpected() -> Problem:
    """Anything else; what it was is for the server's keeper alone."""
    cure = "send it again; if it happens again, look at what the server wrote"
    return Problem(UNEXPECTED, "the server met something it did not expect", cure)
