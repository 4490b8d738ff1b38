"""Frames on a terminal, and as plain records."""

from dataclasses import dataclass
from typing import Any

import narwhals as nw

from leapts.cli.terminal import note, show_table

MOST_SERIES = 8


@dataclass(frozen=True)
class RowsOfEach:
    """How many rows of each series to show, the first ones."""

    count: int


def records(frame: Any) -> list[dict[str, Any]]:
    """A frame as a list of rows, each a mapping of plain values."""
    rows: list[dict[str, Any]] = nw.from_native(frame, eager_only=True).to_arrow().to_pylist()
    return rows


def show_frame(frame: Any, rows: RowsOfEach, *, hint: str) -> None:
    """The first rows of the first series; a note says what is left out.

    Args:
        frame: Whose first column names the series.
        rows: How many of each series.
        hint: How to get all of them.
    """
    every = records(frame)
    columns = list(every[0]) if every else []
    seen: dict[Any, int] = {}
    shown = []
    for record in every:
        name = record[columns[0]]
        if name not in seen and len(seen) == MOST_SERIES:
            continue
        seen[name] = seen.get(name, 0) + 1
        if seen[name] <= rows.count:
            values = list(record.values())
            # Names and stamps are shown as they are, even if they are numbers: 2025, not 2,025.
            shown.append([*map(str, values[:2]), *values[2:]])
    # Beside the forecast's own column its bounds need not repeat the name: `LeapTS`, `lo-80`, `hi-80`.
    own = f"{columns[2]}-" if len(columns) > 2 else ""
    show_table([name.removeprefix(own) for name in columns], shown)
    if len(shown) < len(every):
        note(f"{len(shown):,} of {len(every):,} rows; {hint}")
