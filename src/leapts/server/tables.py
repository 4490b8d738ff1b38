"""CSV tables: reading them within the limits, and the thread that forecasts them."""

import asyncio
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from leapts.config import ReadOptions
from leapts.data.panel import Panel
from leapts.data.reader import read_csv_text, without_blank_start
from leapts.data.validation import panel_from_table
from leapts.errors import LeapTSError
from leapts.server.admission import Admission
from leapts.server.limits import Limits
from leapts.server.model import ServedModel
from leapts.server.problems import BAD_DATA, Problem, from_message, too_large, too_slow
from leapts.server.schemas import TableIn

_MAX_EXTRA_COLUMNS = 100  # beside the columns of series: names, timestamps, and unused ones

T = TypeVar("T")


class TableWorker:
    """Works on one table at a time, in a thread: reading and drawing take longer than a JSON forecast."""

    def __init__(self, admission: Admission, seconds: float) -> None:
        self._admission = admission
        self._seconds = seconds
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="leapts-tables")

    def stop(self) -> None:
        """Drop work that has not begun."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def run(self, work: Callable[[], T]) -> T:
        """Do the work in the thread.

        A thread cannot be stopped: work that takes too long keeps its slot until it ends. Work that has not begun when
        its client gives up is dropped.

        Raises:
            Problem: If all slots are taken, the table is invalid, or the work takes too long.
        """
        slot = self._admission.slot("table")
        slot.__enter__()
        task = self._thread.submit(work)
        result = asyncio.wrap_future(task)

        def release(done: "asyncio.Future[T]") -> None:
            slot.__exit__(None, None, None)
            if not done.cancelled():
                done.exception()  # which nobody may be waiting for

        result.add_done_callback(release)
        try:
            async with asyncio.timeout(self._seconds):
                return await asyncio.shield(result)
        except LeapTSError as error:
            raise from_message(str(error)) from None
        except TimeoutError:
            raise too_slow(self._seconds) from None
        finally:
            task.cancel()


def read_table(content: bytes, model: ServedModel, query: TableIn, limits: Limits) -> Panel:
    """Read a CSV table as the model reads its training data.

    Raises:
        Problem: If it exceeds a limit.
        DataError: If it cannot be forecast.
    """
    _check_header(content, limits)
    estimator = model.estimator
    options = ReadOptions(
        id_col=query.id_col or estimator.id_col,
        time_col=query.time_col or estimator.time_col,
        target_col=query.target_col or estimator.target_col,
        layout=query.layout,
        freq=model.freq,
        is_fitted=True,
        fill=estimator.fill,
        duplicates=estimator.duplicates,
        max_values=limits.body // 2,  # more than a table of the largest size can hold
    )
    panel = panel_from_table(read_csv_text(content, id_col=options.id_col), options)
    if len(panel) > limits.series:
        raise too_large(f"the table has {len(panel):,} series", limits.series, "--max-series")
    longest = int(panel.lengths.max())
    if longest > limits.length:
        raise too_large(f"the table has a series of {longest:,} values", limits.length, "--max-length")
    return panel


def _check_header(content: bytes, limits: Limits) -> None:
    """Refuse a header of very many columns before it is parsed: a column takes far more memory than its comma."""
    header = re.split(rb"[\r\n]", without_blank_start(content), maxsplit=1)[0]
    if header.count(b'"') % 2:
        hint = "close the quotation mark in its first line"
        raise Problem(BAD_DATA, "the header of the table goes on after its first line", hint)
    columns = 1 + max(header.count(separator) for separator in (b",", b";", b"\t", b"|"))
    if columns > limits.series + _MAX_EXTRA_COLUMNS:
        raise too_large(f"the table has {columns:,} columns", limits.series + _MAX_EXTRA_COLUMNS, "--max-series")
