"""Checks of host and token before every request, headers and metrics for every response."""

import hmac
import time
from collections.abc import Callable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from leapts.messages import quoted
from leapts.server.metrics import Metrics
from leapts.server.problems import BAD_REQUEST, UNAUTHORIZED, WRONG_HOST, Problem, as_problem

HEADERS = [
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
]
OPEN_PATHS = frozenset({"/", "/docs", "/openapi.json", "/healthz", "/readyz"})  # which need no token


class ServerMiddleware:
    """Surrounds the application."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        metrics: Metrics,
        paths: frozenset[str],
        token: str | None = None,
        hosts: frozenset[str] | None = None,
        log: Callable[[str], None],
    ) -> None:
        """Set the checks.

        `paths` are all paths of the application; others are counted together, so that clients cannot add labels. A
        server on loopback must check `hosts`: otherwise a web page could reach it by a host name that resolves to
        127.0.0.1 (DNS rebinding).
        """
        self._app = app
        self._metrics = metrics
        self._paths = paths
        self._token = None if token is None else token.encode()
        self._hosts = hosts
        self._log = log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request; web sockets are closed."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        started, status = time.perf_counter(), 0

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), *HEADERS]
            await send(message)

        try:
            self._check(scope)
            # uvicorn sends no body in response to HEAD.
            inner = {**scope, "method": "GET"} if scope["method"] == "HEAD" else scope
            await self._app(inner, receive, send_with_headers)
        except Exception as error:
            if not isinstance(error, Problem):
                self._log(f"unexpected {error!r} at {scope['path']!r}")
            if status:
                raise  # part of the response is sent; only a closed connection tells that it is incomplete
            await as_problem(error).response()(scope, receive, send_with_headers)
        finally:
            path = scope["path"] if scope["path"] in self._paths else "other"
            self._metrics.requests.labels(path, str(status)).inc()
            self._metrics.seconds.labels(path).observe(time.perf_counter() - started)

    def _check(self, scope: Scope) -> None:
        self._check_host([value for name, value in scope["headers"] if name == b"host"])
        if self._token is None or scope["path"] in OPEN_PATHS:
            return
        given = next((value for name, value in scope["headers"] if name == b"authorization"), b"")
        scheme, _, token = given.partition(b" ")
        # In constant time, so that a wrong token does not reveal how much of it is right.
        if scheme.lower() != b"bearer" or not hmac.compare_digest(token.strip(), self._token):
            hint = "send the header Authorization: Bearer TOKEN with the token of the server"
            raise Problem(UNAUTHORIZED, "the token is missing or wrong", hint, headers={"WWW-Authenticate": "Bearer"})

    def _check_host(self, given: list[bytes]) -> None:
        if len(given) > 1:
            raise Problem(BAD_REQUEST, f"the request has {len(given)} Host headers", "send one")
        if self._hosts is None:
            return
        host = given[0].decode("latin-1") if given else ""
        name, _, port = host.rpartition(":")
        if (name if port.isdigit() else host).lower() not in self._hosts:
            names = ", ".join(sorted(self._hosts))
            hint = f"use one of these names: {names}; or start the server with another --host"
            raise Problem(WRONG_HOST, f"the server has no host name {quoted(host)}", hint)
