"""`leapts serve`.

Examples:
  leapts serve model/ --port 8080
  leapts serve sales=models/2024 weather=models/w --token-file token.txt --host 0.0.0.0
"""

import os
from pathlib import Path
from typing import Annotated

import typer

from leapts.cli import options
from leapts.cli.terminal import note, say
from leapts.server import Limits, require_extra

_USUAL = Limits()
_MODEL = "Model folders; NAME=FOLDER sets the name of a model."
_HOST = "Address to listen on; the default accepts local clients only."
_TOKEN_FILE = "File with the token that clients must send. [LEAPTS_TOKEN, if set]"
_CONCURRENT = "Requests handled at a time; further ones get status 503."
_WAIT = "Longest expected waiting time in seconds; above it requests get status 503."
_RELOAD = "Seconds between checks of the model folders for changes."
_Timeout = Annotated[float, typer.Option(min=0.1, help="Seconds to receive a request, and to answer it.")]


@options.shared_options
def serve(
    model: Annotated[list[str], typer.Argument(metavar="MODEL...", help=_MODEL)],
    host: Annotated[str, typer.Option(help=_HOST)] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 chooses a free one.")] = 8080,
    token_file: Annotated[Path | None, typer.Option(help=_TOKEN_FILE)] = None,
    max_body: Annotated[int, typer.Option(min=1, help="Largest request body in bytes.")] = _USUAL.body,
    max_series: Annotated[int, typer.Option(min=1, help="Largest number of series in a request.")] = _USUAL.series,
    max_length: Annotated[int, typer.Option(min=1, help="Largest number of values in a series.")] = _USUAL.length,
    max_concurrent: Annotated[int, typer.Option(min=1, help=_CONCURRENT)] = _USUAL.concurrency,
    max_wait: Annotated[float, typer.Option(min=0.001, help=_WAIT)] = _USUAL.wait,
    timeout: _Timeout = _USUAL.seconds,
    reload_every: Annotated[float, typer.Option(min=0.05, help=_RELOAD)] = 1.0,
    threads: options.Threads = 1,
) -> None:
    """Serve models over HTTP, with a web page. Open requests are finished before it stops."""
    require_extra()
    from leapts.server.app import create_app
    from leapts.server.registry import ModelRegistry
    from leapts.server.running import bound_socket, hosts_of, is_loopback, read_token, serve

    options.use_threads(threads)
    sizes = {"body": max_body, "bodies": 4 * max_body, "series": max_series, "length": max_length}
    limits = Limits(**sizes, concurrency=max_concurrent, wait=max_wait, seconds=timeout)
    token = read_token(token_file, os.environ)
    registry = ModelRegistry(model)
    app = create_app(registry, limits=limits, token=token, hosts=hosts_of(host), reload_every=reload_every, log=note)
    listening = bound_socket(host, port)
    if token is None and not is_loopback(host):
        note(f"note: anyone who can reach {host} can use this server; add --token-file")
    address = f"http://{f'[{host}]' if ':' in host else host}:{listening.getsockname()[1]}"
    names = ", ".join(served.name for served in registry)
    serve(app, listening, limits, ready=lambda: say(f"serving   {names} at {address} (Ctrl-C stops)"))
