"""The trace for other tools: a table, or the timeline format that Perfetto and Chrome's tracing page open."""

import json
from pathlib import Path
from typing import Any

from leapts.data.writing import SUFFIXES, require_writable, write_frame
from leapts.files import write_file
from leapts.forecaster.tracing import leaps_of

TRACE_SUFFIXES = (*SUFFIXES, ".json")
_STEP = 1000  # a step of the horizon is shown as a millisecond; the format counts microseconds


def write_trace(trace: Any, path: str | Path, *, safe_cells: bool = False) -> Path:
    """Write the trace of `LeapTS.predict` as CSV, Parquet or, where the name ends in `.json`, as a timeline.

    Args:
        trace: The trace.
        path: The file.
        safe_cells: As in `leapts.data.writing.csv_bytes`.

    Raises:
        DataError: When the name ends otherwise, or the folder is not there.
    """
    target = Path(path)
    require_writable(target, TRACE_SUFFIXES)
    if target.suffix != ".json":
        return write_frame(leaps_of(trace).to_native(), target, safe_cells=safe_cells)
    write_file(target, json.dumps(timeline(trace), ensure_ascii=False).encode("utf-8", "backslashreplace"))
    return target


def timeline(trace: Any) -> dict[str, Any]:
    """The trace in Chrome's trace format: a process for each cutoff, a track for each series, a slice for each leap.

    Open the file at ui.perfetto.dev, or under chrome://tracing; it is read there, not sent anywhere.

    Args:
        trace: What `LeapTS.predict` gives, or a frame of it, pandas, polars or pyarrow.
    """
    rows = leaps_of(trace)
    id_col = rows.columns[0]
    cutoffs: dict[object, int] = {}
    series: dict[object, int] = {}
    names: list[dict[str, Any]] = []
    slices = []
    for row in rows.iter_rows(named=True):
        if row["cutoff"] not in cutoffs:
            cutoffs[row["cutoff"]] = len(cutoffs) + 1
            names.append(_named("process_name", f"cutoff {row['cutoff']}", cutoffs[row["cutoff"]], 0))
        process = cutoffs[row["cutoff"]]
        track = series.setdefault(row[id_col], len(series) + 1)
        if row["leap"] == 0:
            names.append(_named("thread_name", str(row[id_col]), process, track))
        slices.append(
            {
                "name": f"{row['scale']} {row['length']}",
                "cat": row["scale"],
                "ph": "X",
                "pid": process,
                "tid": track,
                "ts": int(row["start"]) * _STEP,
                "dur": int(row["length"]) * _STEP,
                "args": {
                    "leap": int(row["leap"]),
                    **{name: float(row[name]) for name in ("p_short", "p_mid", "p_long", "control", "temporal")},
                },
            }
        )
    return {"traceEvents": [*names, *slices], "displayTimeUnit": "ms"}


def _named(kind: str, name: str, process: int, track: int) -> dict[str, Any]:
    return {"name": kind, "ph": "M", "pid": process, "tid": track, "args": {"name": name}}
