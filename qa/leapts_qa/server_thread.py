"""A server in a thread of this process."""

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from leapts.server import Limits
from leapts.server.app import create_app
from leapts.server.registry import ModelRegistry
from leapts.server.running import Server, bound_socket


@contextlib.contextmanager
def served(
    registry: ModelRegistry, *, log: Callable[[str], None] | None = None, reload_every: float = 60.0
) -> Iterator[str]:
    """Start a server and yield its address."""
    ready, limits = threading.Event(), Limits()
    server = Server(create_app(registry, limits=limits, log=log, reload_every=reload_every), limits, ready.set)
    listening = bound_socket("127.0.0.1", 0)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        if not ready.wait(60):
            raise RuntimeError("the server did not start")
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(60)


def under_many_names(folder: Path, names: Sequence[str]) -> ModelRegistry:
    """Serve one model under several names."""
    registry = ModelRegistry([folder])
    (one,) = registry
    registry._models = {name: replace(one, name=name) for name in names}
    registry._folders = dict.fromkeys(names, folder)
    return registry
