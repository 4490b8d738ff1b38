"""Starting and stopping the server: token, address, uvicorn."""

import gc
import signal
import socket
from collections.abc import Callable, Mapping
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp

from leapts.errors import ConfigError
from leapts.server.connections import LimitedProtocol
from leapts.server.limits import Limits

TOKEN_VARIABLE = "LEAPTS_TOKEN"
MIN_TOKEN_LENGTH = 16


def read_token(file: Path | None, environment: Mapping[str, str]) -> str | None:
    """Read the token from a file, else from the environment; None if there is neither.

    Raises:
        ConfigError: If it cannot be read, or is too short.
    """
    place = str(file or TOKEN_VARIABLE)
    try:
        token = environment.get(TOKEN_VARIABLE) if file is None else file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{place} cannot be read as a token; give a text file that holds nothing else") from error
    if token is None:
        return None
    token = token.strip()
    if len(token) < MIN_TOKEN_LENGTH or not token.isascii() or any(map(str.isspace, token)):
        raise ConfigError(
            f"the token in {place} is not {MIN_TOKEN_LENGTH} or more plain letters and digits; "
            'make one with: python -c "import secrets; print(secrets.token_urlsafe(32))"'
        )
    return token


def bound_socket(host: str, port: int) -> socket.socket:
    """Listen on an address; port 0 takes a free one.

    Raises:
        ConfigError: If the address is taken, or does not belong to this computer.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sends short responses without delay (TCP_NODELAY) only if the protocol is named.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(1024)
    except (OSError, OverflowError) as error:
        listening.close()
        raise ConfigError(f"cannot listen at {host} port {port} ({error}); choose another --port or --host") from error
    return listening


def is_loopback(host: str) -> bool:
    """Tell whether only this computer can reach an address."""
    return host in ("localhost", "::1") or host.startswith("127.")


def hosts_of(host: str) -> frozenset[str] | None:
    """List the host names of a loopback address; None for other addresses, whose names are not known."""
    return frozenset({"127.0.0.1", "localhost", "[::1]", host}) if is_loopback(host) else None


def serve(app: ASGIApp, listening: socket.socket, limits: Limits, *, ready: Callable[[], None]) -> None:
    """Serve until SIGINT or SIGTERM, then finish the open requests; `ready` is called when requests are accepted."""
    # Garbage collection skips the objects that exist now, which would take a seventh of the time.
    gc.collect()
    gc.freeze()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)  # uvicorn raises the signal again after a clean exit
    Server(app, limits, ready).run(sockets=[listening])


class Server(uvicorn.Server):
    """uvicorn with the limits of the server."""

    def __init__(self, app: ASGIApp, limits: Limits, ready: Callable[[], None]) -> None:
        LimitedProtocol.header_seconds = limits.header_seconds
        LimitedProtocol.response_seconds = limits.seconds
        super().__init__(
            uvicorn.Config(
                app,
                http=LimitedProtocol,
                ws="none",
                lifespan="on",
                log_level="error",
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_keep_alive=30,
                timeout_graceful_shutdown=int(2 * limits.seconds) + 1,
            )
        )
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept requests, and report it."""
        await super().startup(sockets)
        if self.started:
            self._ready()
