"""`leapts serve`."""

import os
from pathlib import Path
from typing import Annotated

import typer

from leapts.cli import options
from leapts.cli.options import shared_options
from leapts.cli.terminal import note, say
from leapts.server import Limits, require_extra

_USUAL = Limits()

EXAMPLE = """\b
Examples:
  leapts serve model/ --port 8080
  leapts serve sales=models/2024 weather=models/w --token-file token.txt --host 0.0.0.0
"""


@shared_options
def serve(
    model: Annotated[
        list[str], typer.Argument(metavar="MODEL...", help="Model folders; NAME=FOLDER sets the name of a model.")
    ],
    host: Annotated[str, typer.Option(help="Address to listen on; the default accepts local clients only.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 chooses a free one.")] = 8080,
    token_file: Annotated[
        Path | None,
        typer.Option(help="File with the token that clients must send. [LEAPTS_TOKEN, if set]"),
    ] = None,
    max_body: Annotated[int, typer.Option(min=1, help="Largest request body in bytes.")] = _USUAL.body,
    max_series: Annotated[int, typer.Option(min=1, help="Largest number of series in a request.")] = _USUAL.series,
    max_length: Annotated[int, typer.Option(min=1, help="Largest number of values in a series.")] = _USUAL.length,
    max_concurrent: Annotated[
        int, typer.Option(min=1, help="Requests handled at a time; further ones get status 503.")
    ] = (_USUAL.concurrency),
    max_wait: Annotated[
        float,
        typer.Option(min=0.001, help="Longest expected waiting time in seconds; above it requests get status 503."),
    ] = _USUAL.wait,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds to receive a request, and to answer it.")] = (
        _USUAL.seconds
    ),
    reload_every: Annotated[
        float, typer.Option(min=0.05, help="Seconds between checks of the model folders for changes.")
    ] = 1.0,
    threads: options.Threads = 1,
) -> None:
    """Serve models over HTTP, with a web page. Open requests are finished before it stops."""
    require_extra()
    from leapts.server.app import create_app
    from leapts.server.registry import ModelRegistry
    from leapts.server.running import bound_socket, hosts_of, is_loopback, read_token, serve

    options.use_threads(threads)
    limits = Limits(
        body=max_body,
        bodies=4 * max_body,
        series=max_series,
        length=max_length,
        concurrency=max_concurrent,
        wait=max_wait,
        seconds=timeout,
    )
    token = read_token(token_file, os.environ)
    registry = ModelRegistry(model)
    app = create_app(registry, limits=limits, token=token, hosts=hosts_of(host), reload_every=reload_every, log=note)
    listening = bound_socket(host, port)
    if token is None and not is_loopback(host):
        note(f"note: anyone who can reach {host} can use this server; add --token-file")
    shown = f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{listening.getsockname()[1]}"
    names = ", ".join(served.name for served in registry)
    serve(app, listening, limits, ready=lambda: say(f"serving   {names} at {address} (Ctrl-C stops)"))
