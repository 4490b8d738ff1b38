"""Frames on a terminal, and as plain records."""

from collections import Counter
from typing import Any

import narwhals as nw

from leapts.cli.terminal import note, show_table

MOST_SERIES = 8


def records(frame: Any) -> list[dict[str, Any]]:
    """A frame as a list of rows, each a mapping of plain values."""
    rows: list[dict[str, Any]] = nw.from_native(frame, eager_only=True).to_arrow().to_pylist()
    return rows


def show_frame(frame: Any, *, rows: int, hint: str) -> None:
    """The first rows of the first series; a note says what is left out.

    Args:
        frame: Whose first column names the series.
        rows: How many of each series.
        hint: How to get all of them.
    """
    every = nw.from_native(frame, eager_only=True)
    columns = every.columns
    first = every[columns[0]].unique(maintain_order=True).head(MOST_SERIES)
    seen: Counter[Any] = Counter()
    shown = []
    for record in records(every.filter(nw.col(columns[0]).is_in(first)).to_native()):
        name, stamp, *values = record.values()
        seen[name] += 1
        if seen[name] <= rows:
            # Names and stamps are shown as they are, even if they are numbers: 2025, not 2,025.
            shown.append([str(name), str(stamp), *values])
    # Beside the forecast's own column its bounds need not repeat the name: `LeapTS`, `lo-80`, `hi-80`.
    own = f"{columns[2]}-" if len(columns) > 2 else ""
    show_table([name.removeprefix(own) for name in columns], shown)
    if len(shown) < len(every):
        note(f"{len(shown):,} of {len(every):,} rows; {hint}")
