"""Tables for people: a CSV in, its forecast out as CSV, or as the report that shows every leap."""

import asyncio
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Annotated, TypeVar

from fastapi import Depends, FastAPI, Query, Request, Response

from leapts.config import Layout, ReadOptions
from leapts.data.frames import csv_bytes
from leapts.data.panel import Panel
from leapts.data.reader import read_csv_text, without_blank_start
from leapts.data.validation import panel_from_table
from leapts.errors import LeapTSError
from leapts.report import collect, report_html
from leapts.server.limits import Limits
from leapts.server.problems import BAD_DATA, Problem, in_two, too_large, too_slow
from leapts.server.registry import ModelRegistry, Served
from leapts.server.request_body import BodyReader

CSV = "text/csv"
_MOST_SERIES_SHOWN = 200
_MORE_COLUMNS = 100  # than there may be series: names, timestamps, and what is not used

T = TypeVar("T")

ColumnName = Annotated[str | None, Query(max_length=1000)]
Levels = Annotated[list[Annotated[float, Query(gt=0, lt=100)]], Query(max_length=20)]


@dataclass(frozen=True, kw_only=True)
class Columns:
    """How the caller's table is laid out; what is left out is as in the data of the fit."""

    id_col: ColumnName = None
    time_col: ColumnName = None
    target_col: ColumnName = None
    layout: Layout = "auto"


def add_tables(app: FastAPI, registry: ModelRegistry, reader: BodyReader) -> Callable[[], None]:
    """Add the addresses that take tables, and say how to end their work."""
    # Reading and drawing take long compared with a forecast, so they have a thread of their own.
    pool = ThreadPoolExecutor(1, thread_name_prefix="leapts-tables")

    @app.post("/v1/forecast/csv")
    async def forecast_csv(
        request: Request,
        columns: Annotated[Columns, Depends()],
        model: ColumnName = None,
        level: Levels = [],  # noqa: B006 - the framework copies it
        safe_cells: bool = False,
    ) -> Response:
        served = registry.find(model)
        levels = [int(one) if one.is_integer() else one for one in level]

        def work(content: bytes) -> bytes:
            panel = _panel(content, served, columns, reader.limits)
            return csv_bytes(
                served.model.predict(panel.in_frames_of("pyarrow"), level=levels or None), escape_formulas=safe_cells
            )

        content = await _worked(request, reader, pool, work)
        return Response(content, media_type=CSV, headers=_named("forecast.csv"))

    @app.post("/v1/report")
    async def report(
        request: Request,
        columns: Annotated[Columns, Depends()],
        model: ColumnName = None,
    ) -> Response:
        served = registry.find(model)

        def work(content: bytes) -> str:
            panel = _panel(content, served, columns, reader.limits)
            contents = collect(served.model, panel, max_series=_MOST_SERIES_SHOWN)
            return report_html(contents, title="LeapTS forecast")

        page = await _worked(request, reader, pool, work)
        # Whoever opens the answer itself gets a page that can reach nothing, this server included.
        headers = {**_named("report.html"), "Content-Security-Policy": "sandbox allow-scripts"}
        return Response(page, media_type="text/html; charset=utf-8", headers=headers)

    return lambda: pool.shutdown(wait=False, cancel_futures=True)


def _named(file: str) -> dict[str, str]:
    return {"Content-Disposition": f'attachment; filename="{file}"'}


async def _worked(request: Request, reader: BodyReader, pool: ThreadPoolExecutor, work: Callable[[bytes], T]) -> T:
    """Read a table and work on it in a thread.

    A thread cannot be stopped: work that takes too long keeps its place to its end, whoever still waits for it. What
    nobody waits for any more before it has begun is dropped.
    """
    reader.require_place("table")
    body = await reader.body(request.scope, request.receive, CSV)
    place = reader.place("table")
    place.__enter__()
    task = pool.submit(_in_problems, work, body)
    working = asyncio.wrap_future(task)

    def leave(done: "asyncio.Future[T]") -> None:
        place.__exit__(None, None, None)
        if not done.cancelled():
            done.exception()  # there may be nobody left to hear of it

    working.add_done_callback(leave)
    try:
        async with asyncio.timeout(reader.limits.seconds):
            return await asyncio.shield(working)
    except TimeoutError:
        raise too_slow(reader.limits.seconds) from None
    finally:
        task.cancel()


def _in_problems(work: Callable[[bytes], T], body: bytes) -> T:
    try:
        return work(body)
    except LeapTSError as error:
        raise Problem(BAD_DATA, *in_two(str(error))) from None


def _panel(content: bytes, served: Served, columns: Columns, limits: Limits) -> Panel:
    """The caller's table as the model reads its own."""
    _require_narrow(content, limits)
    model = served.model
    options = ReadOptions(
        id_col=columns.id_col or model.id_col,
        time_col=columns.time_col or model.time_col,
        target_col=columns.target_col or model.target_col,
        layout=columns.layout,
        freq=served.arrays.fitted.tail.freq,
        is_fitted=True,
        fill=model.fill,
        duplicates=model.duplicates,
        max_values=limits.body // 2,  # more than the largest table could spell out
    )
    panel = panel_from_table(read_csv_text(content, id_col=options.id_col), options)
    if len(panel) > limits.series:
        raise too_large(f"the table has {len(panel):,} series", limits.series, "--max-series")
    longest = int(panel.lengths.max())
    if longest > limits.length:
        raise too_large(f"the table has a series of {longest:,} values", limits.length, "--max-length")
    return panel


def _require_narrow(content: bytes, limits: Limits) -> None:
    """Refuse a header of a million columns, each of which costs far more memory than its comma."""
    header = re.split(rb"[\r\n]", without_blank_start(content), maxsplit=1)[0]
    if header.count(b'"') % 2:
        cure = "close the quotation mark in its first line"
        raise Problem(BAD_DATA, "the table's header goes on over its first line", cure)
    columns = 1 + max(header.count(separator) for separator in (b",", b";", b"\t", b"|"))
    most = limits.series + _MORE_COLUMNS
    if columns > most:
        raise too_large(f"the table has {columns:,} columns", most, "--max-series")
