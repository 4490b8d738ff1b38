"""Request bodies: received within limits on type, size and time, then parsed."""

import asyncio
import json
import re
from itertools import pairwise
from typing import Any

from fastapi import Request
from pydantic import ValidationError

from leapts.messages import quoted
from leapts.server.limits import Limits
from leapts.server.problems import (
    BAD_REQUEST,
    DISCONNECTED,
    TOO_LARGE,
    TOO_SLOW_TO_READ,
    WRONG_TYPE,
    Problem,
    busy,
    invalid,
    too_large,
)
from leapts.server.schemas import ForecastIn

_CLOSE = {"Connection": "close"}
_DISCARD_SECONDS = 1.0  # for which a refused client may go on sending, so that it reads the response
_DISCARD_BODIES = 8  # and how much it may send, in bodies of the largest size
_MAX_KEYS = 16  # for each series, and for the request itself
_KEY = re.compile(rb'"\s*:')


class BodyReader:
    """Receives request bodies, and counts the bytes of all that are incomplete."""

    def __init__(self, limits: Limits) -> None:
        self.held = 0
        self._limits = limits

    async def receive(self, request: Request, media_type: str) -> bytes:
        """Receive the whole body of a request.

        Raises:
            Problem: If it has another type, is too large or too slow, or if too many are received at once.
        """
        _check_type(request, media_type)
        limits, size = self._limits, 0
        try:
            _check_size(int(request.headers.get("content-length", "0")), limits.body)
            parts, more = [], True
            async with asyncio.timeout(limits.seconds):
                while more:
                    message = await request.receive()
                    if message["type"] == "http.disconnect":
                        raise Problem(DISCONNECTED, "the client left before the end of its request", "send it again")
                    part = message.get("body", b"")
                    size += len(part)
                    self.held += len(part)
                    _check_size(size, limits.body)
                    if self.held > limits.bodies:
                        raise busy("too many large requests are being received at once")
                    parts.append(part)
                    more = message.get("more_body", False)
            return b"".join(parts)
        except TimeoutError:
            detail = f"the request was not complete after {limits.seconds:g} s"
            raise Problem(TOO_SLOW_TO_READ, detail, "send it faster, or in smaller parts", headers=_CLOSE) from None
        except Problem as problem:
            problem.headers = {**(problem.headers or {}), **_CLOSE}
            if problem.kind is not DISCONNECTED:
                await _discard(request, _DISCARD_BODIES * limits.body)
            raise
        finally:
            self.held -= size


def parse_forecast(body: bytes, limits: Limits) -> ForecastIn:
    """Parse and validate a JSON request; repeated keys are refused.

    Raises:
        Problem: If the body is not JSON, or not a valid request.
    """
    keys = len(_KEY.findall(body))  # or more, never fewer
    if keys > _MAX_KEYS * (1 + limits.series):  # each unknown key would cost an error message
        raise too_large(f"the request has {keys:,} keys", _MAX_KEYS * (1 + limits.series), "--max-series")
    try:
        request = ForecastIn.model_validate_json(body)
    except ValidationError as error:
        raise invalid(error.errors(include_url=False), body) from None
    if keys > sum(len(one.model_fields_set) for one in (request, *request.series)):
        json.loads(body, object_pairs_hook=_refuse_repeated)
    return request


def _refuse_repeated(pairs: list[tuple[str, Any]]) -> None:
    names = sorted(name for name, _ in pairs)
    for name, other in pairwise(names):
        if name == other:
            raise Problem(BAD_REQUEST, f"the key {quoted(name)} is given more than once", "give it once")


def _check_type(request: Request, media_type: str) -> None:
    if request.headers.get("content-encoding", "").strip().lower() not in ("identity", ""):
        raise Problem(WRONG_TYPE, "the content is compressed", "send it uncompressed", headers=_CLOSE)
    given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if given != media_type:
        hint = f"send {media_type}, with that value in the header Content-Type"
        raise Problem(WRONG_TYPE, f"the Content-Type is {quoted(given)}", hint, headers=_CLOSE)


def _check_size(size: int, limit: int) -> None:
    if size > limit:
        hint = "send fewer series or shorter histories, or start the server with a higher --max-body"
        raise Problem(TOO_LARGE, f"the request has {size:,} bytes or more; the limit is {limit:,}", hint)


async def _discard(request: Request, max_bytes: int) -> None:
    """Receive the rest for a moment: a client that is cut off while it sends may never read the response."""
    received = 0
    try:
        async with asyncio.timeout(_DISCARD_SECONDS):
            while received < max_bytes:
                message = await request.receive()
                received += len(message.get("body", b""))
                if message["type"] == "http.disconnect" or not message.get("more_body", False):
                    return
    except TimeoutError:
        return
