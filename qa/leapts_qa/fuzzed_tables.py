"""Fuzzed tables for requests: valid ones, ones with arbitrary cells, and arbitrary text."""

import csv
import io
from datetime import date

import numpy as np
from hypothesis import strategies as st

from leapts_qa.samples import LOOKBACK

_COLUMNS = ("unique_id", "ds", "y")


def tables() -> "st.SearchStrategy[bytes]":
    """Generate CSV bodies of requests."""
    names = st.just(["a", "b"]) | st.lists(st.text(max_size=8), max_size=3)
    days = st.just(date(2024, 1, 1)) | st.dates()
    lengths = st.sampled_from([3 * LOOKBACK, LOOKBACK, LOOKBACK - 1, 1, 0])
    cells = st.lists(st.tuples(st.integers(0, 100), st.text(max_size=12)), max_size=2)
    made = st.builds(table, names, days, lengths, st.just(1.0) | st.floats(), cells)
    return made | made | st.text().map(lambda text: text.encode("utf-8", "replace")) | st.binary()


def table(names: list[str], day: date, length: int, scale: float, cells: list[tuple[int, str]]) -> bytes:
    """Create a table of daily series with some cells replaced.

    Args:
        names: The names of the series.
        day: The first day.
        length: Number of days.
        scale: Increment of the value per day.
        cells: Positions, counted from the first cell of the header, and their new content.
    """
    stamps = (np.datetime64(day) + np.arange(length)).astype(str)
    rows = [(name, stamp, scale * step) for name in names for step, stamp in enumerate(stamps)]
    flat = [str(cell) for row in (_COLUMNS, *rows) for cell in row]
    for place, text in cells:
        flat[place % len(flat)] = text
    content = io.StringIO()
    csv.writer(content, lineterminator="\n").writerows(zip(*[iter(flat)] * len(_COLUMNS), strict=True))
    return content.getvalue().encode("utf-8", "replace")
