"""Frames as tables on a terminal, and as records."""

from collections import Counter
from typing import Any

from leapts.cli.terminal import note, show_table

MAX_SERIES = 8


def records(frame: Any) -> list[dict[str, Any]]:
    """Convert a frame to a list of rows, each a mapping of plain values."""
    import narwhals as nw

    rows: list[dict[str, Any]] = nw.from_native(frame, eager_only=True).to_arrow().to_pylist()
    return rows


def show_frame(frame: Any, *, rows: int, hint: str) -> None:
    """Show the first rows of the first series; a note counts the rest.

    Args:
        frame: Its first column names the series.
        rows: Number of rows of each series.
        hint: How to get all rows.
    """
    import narwhals as nw

    every = nw.from_native(frame, eager_only=True)
    columns = every.columns
    first = every[columns[0]].unique(maintain_order=True).head(MAX_SERIES)
    seen: Counter[Any] = Counter()
    shown = []
    for record in records(every.filter(nw.col(columns[0]).is_in(first)).to_native()):
        name, timestamp, *values = record.values()
        seen[name] += 1
        if seen[name] <= rows:
            # Names and timestamps that are numbers have no thousands separator: 2025, not 2,025.
            shown.append([str(name), str(timestamp), *values])
    # Bounds are shown without the name of the forecast: `LeapTS`, `lo-80`, `hi-80`.
    own = f"{columns[2]}-" if len(columns) > 2 else ""
    show_table([name.removeprefix(own) for name in columns], shown)
    if len(shown) < len(every):
        note(f"{len(shown):,} of {len(every):,} rows; {hint}")
