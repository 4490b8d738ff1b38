"""Running the server: one process, one event loop, and an end that leaves no caller without its answer."""

import contextlib
import gc
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import uvicorn

from leapts.errors import ConfigError
from leapts.server.connections import LimitedProtocol
from leapts.server.limits import Limits
from leapts.server.middleware import App

TOKEN_VARIABLE = "LEAPTS_TOKEN"
SHORTEST_TOKEN = 16
_GARBAGE = 20_000  # containers made beyond those dropped, until it is looked for garbage: some hundred requests


def read_token(file: Path | None, environment: Mapping[str, str]) -> str | None:
    """The token callers have to show: from a file, else from the environment; none when there is neither.

    Raises:
        ConfigError: When it cannot be read, or is no token to rely on.
    """
    if file is not None:
        try:
            token, place = file.read_text(encoding="utf-8").strip(), str(file)
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"{file} cannot be read as a token; give a text file that holds nothing else") from error
    elif TOKEN_VARIABLE in environment:
        token, place = environment[TOKEN_VARIABLE].strip(), TOKEN_VARIABLE
    else:
        return None
    if len(token) < SHORTEST_TOKEN or not token.isascii() or any(character.isspace() for character in token):
        raise ConfigError(
            f"the token in {place} is not {SHORTEST_TOKEN} or more plain letters and digits; "
            'make one with: python -c "import secrets; print(secrets.token_urlsafe(32))"'
        )
    return token


def bound_socket(host: str, port: int) -> socket.socket:
    """A socket that listens there; port 0 takes any that is free.

    Raises:
        ConfigError: When the address is taken, or is none of this computer's.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(1024)
    except (OSError, OverflowError) as error:
        listening.close()
        raise ConfigError(f"cannot listen at {host} port {port} ({error}); choose another --port or --host") from error
    return listening


def is_loopback(host: str) -> bool:
    """Whether only this computer can reach an address."""
    return host in ("localhost", "::1") or host.startswith("127.")


def hosts_of(host: str) -> frozenset[str] | None:
    """The names that lead to an address only this computer can reach; None where others can, by names of their own."""
    return frozenset({"127.0.0.1", "localhost", "[::1]", host}) if is_loopback(host) else None


def serve(app: App, listening: socket.socket, limits: Limits, *, ready: Callable[[], None]) -> None:
    """Serve until a signal says stop, then finish what was begun.

    Args:
        app: What to serve.
        listening: Where.
        limits: Whose times hold for connections, too.
        ready: Called once requests are taken.
    """
    # What was made until now stays: to look through it again and again for garbage would cost a seventh of the time.
    gc.collect()
    gc.freeze()
    gc.set_threshold(_GARBAGE, *gc.get_threshold()[1:])
    Server(app, limits, ready).run(sockets=[listening])


class Server(uvicorn.Server):
    """Stops with a good conscience: a signal that was obeyed is no reason to end as if killed by it."""

    def __init__(self, app: App, limits: Limits, ready: Callable[[], None]) -> None:
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
        """Take requests, and say so."""
        await super().startup(sockets)
        if self.started:
            self._ready()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """The first signal ends the server in order, the second one at once."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
