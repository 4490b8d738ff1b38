"""The door: who may come in, what every answer carries, and what becomes of everything that goes wrong."""

import hmac
import time
from collections.abc import Awaitable, Callable, MutableMapping
from functools import lru_cache
from typing import Any

from leapts.messages import quoted
from leapts.server.metrics import Metrics
from leapts.server.problems import BAD_REQUEST, MEDIA_TYPE, UNAUTHORIZED, UNEXPECTED, WRONG_HOST, Problem, unexpected
from leapts.server.request_body import NOBODY_THERE, Disconnected, Receive, Scope

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

_ALWAYS = [
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
]
_OTHER = "other"


class ServerMiddleware:
    """Stands around the whole application.

    Addresses that anyone may see are the page, the descriptions and the two that say how the server is; all others need
    the token, where there is one.
    """

    def __init__(
        self,
        app: App,
        *,
        metrics: Metrics,
        token: str | None,
        paths: frozenset[str],
        open_paths: frozenset[str],
        hosts: frozenset[str] | None = None,
        log: Callable[[str], None] | None = None,
    ) -> None:
        """Sets the guard up.

        Args:
            app: What is guarded.
            metrics: Where every answer is counted.
            token: What callers have to show; none: anyone may call.
            paths: All addresses there are; others are counted as one, so that callers cannot invent labels.
            open_paths: Those that need no token.
            hosts: The names the server answers to; None: any. A server for this computer alone has to look, or a page
                from elsewhere could reach it under a name of its own that it lets lead here.
            log: Told, in one line, what went wrong unexpectedly.
        """
        self._app = app
        self._metrics = metrics
        self._token = None if token is None else token.encode()
        self._paths = paths
        self._open = open_paths
        self._hosts = hosts
        self._log = log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "lifespan":
            return await self._app(scope, receive, send)
        if scope["type"] != "http":
            return None  # web sockets are closed unheard
        started = time.perf_counter()
        status = 0

        async def counting(message: MutableMapping[str, Any]) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), *_ALWAYS]
            await send(message)

        try:
            try:
                self._check(scope)
                await self._app(scope, receive, counting)
            except Problem as problem:
                await send_problem(problem, counting)
        except Disconnected:
            status = NOBODY_THERE
        except Exception as error:
            if self._log is not None:
                self._log(f"unexpected {error!r} at {scope['path']!r}")
            if not status:
                await send_problem(unexpected(), counting)
            elif status != UNEXPECTED.status:
                raise  # part of an answer is out already; only closing the connection says that it is not whole
        finally:
            path = scope["path"] if scope["path"] in self._paths else _OTHER
            self._metrics.requests.add(path, str(status))
            self._metrics.seconds.observe(time.perf_counter() - started, path)
        return None

    def _check(self, scope: Scope) -> None:
        self._check_host(scope)
        if self._token is None or scope["path"] in self._open:
            return
        given = next((value for name, value in scope["headers"] if name == b"authorization"), b"")
        scheme, _, token = given.partition(b" ")
        # Compared in constant time, so that a wrong token does not tell how much of it is right.
        if scheme.lower() == b"bearer" and hmac.compare_digest(token.strip(), self._token):
            return
        raise Problem(
            UNAUTHORIZED,
            "the token is missing or wrong",
            "send the header Authorization: Bearer TOKEN with the server's token",
            headers={"WWW-Authenticate": "Bearer"},
        )

    def _check_host(self, scope: Scope) -> None:
        given = [value for name, value in scope["headers"] if name == b"host"]
        if len(given) > 1:
            raise Problem(BAD_REQUEST, f"the request has {len(given)} Host headers", "send one")
        if self._hosts is None:
            return
        name = _host_name(given[0] if given else b"")
        if name.lower() not in self._hosts:
            raise Problem(
                WRONG_HOST,
                f"this server does not answer to the name {quoted(name)}",
                f"call it by one of these: {', '.join(sorted(self._hosts))}; or start it with another --host",
            )


@lru_cache(maxsize=16)
def _host_name(header: bytes) -> str:
    given = header.decode("latin-1")
    return given.rpartition(":")[0] if given.rpartition(":")[2].isdigit() else given


async def send_problem(problem: Problem, send: Send) -> None:
    """Answer with a problem document."""
    await send_bytes(problem.body(), MEDIA_TYPE, send, status=problem.kind.status, headers=problem.headers)


async def send_bytes(
    body: bytes, media_type: str, send: Send, *, status: int = 200, headers: dict[str, str] | None = None
) -> None:
    """Answer with these bytes."""
    raw = [(b"content-type", media_type.encode()), (b"content-length", str(len(body)).encode())]
    raw += [(name.lower().encode(), value.encode()) for name, value in (headers or {}).items()]
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": body})
