"""`leapts serve`."""

import os
from pathlib import Path
from typing import Annotated

import typer

from leapts.cli import options
from leapts.cli.terminal import note, say
from leapts.serve import Limits, require_extra

_USUAL = Limits()

EXAMPLE = """\b
Examples:
  leapts serve model/ --port 8080
  leapts serve sales=models/2024 weather=models/w --token-file token.txt --host 0.0.0.0
"""


def serve(
    model: Annotated[
        list[str], typer.Argument(metavar="MODEL...", help="Folders leapts fit wrote; NAME=FOLDER gives one a name.")
    ],
    host: Annotated[str, typer.Option(help="The address to listen at; by default only this computer can call.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port to listen at; 0 takes a free one.")] = 8080,
    token_file: Annotated[
        Path | None,
        typer.Option(help="A file with the token callers have to show. [the variable LEAPTS_TOKEN; else none]"),
    ] = None,
    max_body: Annotated[int, typer.Option(min=1, help="Largest request, in bytes.")] = _USUAL.body,
    max_series: Annotated[int, typer.Option(min=1, help="Most series in a request.")] = _USUAL.series,
    max_length: Annotated[int, typer.Option(min=1, help="Most values in a series.")] = _USUAL.length,
    max_concurrent: Annotated[int, typer.Option(min=1, help="Forecasts at a time; others are told to retry.")] = (
        _USUAL.concurrency
    ),
    max_wait: Annotated[
        float,
        typer.Option(min=0.001, help="Most seconds of work to wait for, or one request; others are told to retry."),
    ] = _USUAL.wait,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds to read a request, and to answer it.")] = (
        _USUAL.seconds
    ),
    reload_every: Annotated[float, typer.Option(min=0.05, help="Seconds between looks at the folders.")] = 1.0,
    threads: options.Threads = 1,
    config: options.Config = None,  # noqa: ARG001 - read before the others
    debug: options.Debug = False,  # noqa: ARG001 - looked at where errors are caught
) -> None:
    """Serve models over HTTP: forecasts for programs, and a page for people. A signal to stop lets it finish first."""
    require_extra()
    from leapts.serve.app import create_app
    from leapts.serve.models import Shelf
    from leapts.serve.running import bound_socket, hosts_of, is_loopback, read_token, serve

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
    shelf = Shelf(model)
    app = create_app(shelf, limits=limits, token=token, hosts=hosts_of(host), reload_every=reload_every, tell=note)
    listening = bound_socket(host, port)
    if token is None and not is_loopback(host):
        note(f"anyone who can reach {host} can use this server; give it a --token-file")
    shown = f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{listening.getsockname()[1]}"
    names = ", ".join(served.name for served in shelf)
    serve(app, listening, limits, ready=lambda: say(f"serving   {names} at {address} (Ctrl-C stops)"))
