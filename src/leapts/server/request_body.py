"""Reading requests: never more than may be, and never for longer."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any

from leapts.server.limits import Limits
from leapts.server.problems import TOO_LARGE, TOO_SLOW_TO_READ, WRONG_TYPE, Problem, busy

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]

NOBODY_THERE = 499  # what is counted for a caller that left before its answer; nobody gets to see it

_GOODBYE = {"Connection": "close"}
_LINGER = 1.0  # seconds a caller whose request is refused may go on sending, so that it gets to read why
_LINGER_BODIES = 8  # and how much, in the largest bodies that are taken


class Disconnected(Exception):  # noqa: N818 - nobody is left to call it an error
    """The caller has gone."""


class BodyReader:
    """Reads bodies, and keeps count of what is held in memory and what is being worked on."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.held = 0
        self.in_work = {"forecast": 0, "table": 0}
        self._most = {"forecast": limits.concurrency, "table": limits.tables}

    @contextmanager
    def place(self, kind: str) -> Iterator[None]:
        """A place among those that are being served.

        Raises:
            Problem: When all are taken.
        """
        self.require_place(kind)
        self.in_work[kind] += 1
        try:
            yield
        finally:
            self.in_work[kind] -= 1

    def require_place(self, kind: str) -> None:
        """Refuse early who would be refused later.

        Raises:
            Problem: When all places are taken.
        """
        if self.in_work[kind] >= self._most[kind]:
            raise busy(f"{self._most[kind]} requests are being served already", 1 if kind == "forecast" else 5)

    async def body(self, scope: Scope, receive: Receive, media_type: str) -> bytes:
        """The whole body of a request.

        Raises:
            Problem: When it is of another type, compressed, too large or too slow, or too much is being read at once.
            Disconnected: When the caller goes away.
        """
        headers = dict(scope["headers"])
        self._check(headers, media_type)
        limit, held = self.limits.body, 0
        try:
            declared = int(headers.get(b"content-length", b"0"))
            if declared > limit:
                raise _too_large(declared, limit)
            parts = []
            async with asyncio.timeout(self.limits.seconds):
                more = True
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise Disconnected
                    part = message.get("body", b"")
                    held += len(part)
                    self.held += len(part)
                    if held > limit:
                        raise _too_large(held, limit)
                    if self.held > self.limits.bodies:
                        raise busy("too many large requests are being read at once")
                    parts.append(part)
                    more = message.get("more_body", False)
            return parts[0] if len(parts) == 1 else b"".join(parts)
        except TimeoutError:
            seconds = self.limits.seconds
            cure = "send it faster, or in smaller parts"
            raise Problem(TOO_SLOW_TO_READ, f"no whole request within {seconds:g} s", cure, headers=_GOODBYE) from None
        except Problem as problem:
            problem.headers.update(_GOODBYE)
            await _linger(receive, _LINGER_BODIES * limit)
            raise
        finally:
            self.held -= held

    def _check(self, headers: dict[bytes, bytes], media_type: str) -> None:
        encoding = headers.get(b"content-encoding", b"identity").strip().lower()
        if encoding not in (b"identity", b""):
            raise Problem(WRONG_TYPE, "the content is compressed", "send it as it is", headers=_GOODBYE)
        given = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
        if given != media_type.encode():
            raise Problem(
                WRONG_TYPE,
                f"the content is {given.decode('latin-1')[:60] or 'of no type'}, and {media_type} is wanted",
                f"send {media_type} and say so in the header Content-Type",
                headers=_GOODBYE,
            )


def _too_large(size: int, limit: int) -> Problem:
    return Problem(
        TOO_LARGE,
        f"the request has {size:,} bytes or more, and at most {limit:,} are taken",
        "send fewer series or a shorter history at a time, or start the server with a higher --max-body",
    )


async def _linger(receive: Receive, most: int) -> None:
    """Read on for a moment and forget it: who is cut off while sending may never read the answer."""
    read = 0
    try:
        async with asyncio.timeout(_LINGER):
            while read < most:
                message = await receive()
                read += len(message.get("body", b""))
                if message["type"] == "http.disconnect" or not message.get("more_body", False):
                    return
    except TimeoutError:
        return
