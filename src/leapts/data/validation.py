"""All that is asked of data, in one place, before any model: out comes a `Panel`, or a `DataError`."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from leapts.config import ReadOptions
from leapts.data.columns import Columns, columns_of, possible_names
from leapts.data.frequency import (
    Timestamps,
    counted_from,
    infer_frequency,
    parse_frequency,
    positions_of,
    timestamps_at,
)
from leapts.data.imputation import fill_missing, leading, spread
from leapts.data.panel import FrameStyle, Panel
from leapts.data.reader import Table, read_table
from leapts.errors import DataError
from leapts.messages import counted, quoted, timestamp_text

MAX_VALUE = 1e30  # squares of values beyond this leave float32 once scaled badly, and are no measurement
MAX_FILLING = 20  # filling may multiply the rows by this, and no more

_BRING_TO_MODEL = "bring the data to this frequency, at which the model was fitted, or fit again"

Index = npt.NDArray[np.int64]


def read_panel(source: str | Path | object, options: ReadOptions | None = None) -> Panel:
    """Reads and validates a path, standard input (`-`) or frame.

    Raises:
        DataError: Naming the source, the series or row, the value, and the cure.
    """
    options = options or ReadOptions()
    return panel_from_table(read_table(source, id_col=options.id_col), options)


def panel_from_table(table: Table, options: ReadOptions) -> Panel:
    """Validates a table: everything that can be wrong with it is found here."""
    columns = columns_of(table, options)
    rows = _in_order(columns, table, options)
    freq = _frequency(rows, table, options)
    rows = _placed(rows, freq, table, options)
    values, forward_filled, offsets, lost = _complete(rows, freq, table, options)
    _refuse_huge(values, offsets, rows, table)
    first, start_offsets = np.resize(rows.timestamps[rows.offsets[:-1]], len(rows.names)), lost
    if lost.any():
        first, start_offsets = counted_from(first, lost, freq, rows.timezone)
    return Panel(
        # The panel owns its values: they may still be the frame's own memory, which is read-only here.
        values=torch.from_numpy(np.require(values, requirements=["W"])),
        offsets=torch.from_numpy(offsets),
        series=rows.names,
        first=first,
        freq=freq,
        timezone=rows.timezone,
        style=FrameStyle(
            kind=table.kind,
            id_col=options.id_col,
            time_col=columns.time_col,
            target_col=options.target_col,
            time_type=columns.time.dtype,
        ),
        unused=columns.unused,
        forward_filled=None if forward_filled is None else torch.from_numpy(forward_filled),
        start_offsets=start_offsets if start_offsets.any() else None,
    )


def require_length(
    panel: Panel, steps: int, purpose: str = "one window", hint: str = "shorten the input or the horizon"
) -> None:
    """Refuses a panel with a series shorter than `steps`.

    Args:
        panel: The panel.
        steps: What every series needs, at least.
        purpose: What for, as the message shall say it.
        hint: What to do about it, beside leaving such series out.

    Raises:
        DataError: Naming the shortest series, its length, and what is needed.
    """
    lengths = panel.lengths
    short = int((lengths < steps).sum())
    if short:
        shortest = int(lengths.argmin())
        others = f" ({counted(short, 'series')} of {len(panel)} too short)" if short > 1 else ""
        raise DataError(
            f"series {quoted(panel.series[shortest])} has {counted(int(lengths[shortest]), 'value')}"
            f"{others}, but {purpose} needs {steps:,}; "
            f"{hint}, or leave such series out"
        )


@dataclass(frozen=True)
class _Rows:
    """Rows sorted by series and time.

    In a wide frame all series share the rows: there is one group of them, and `values` has one line a series.
    `source` says which row of the table each came from; None is all in place.
    """

    names: tuple[str | int, ...]
    offsets: Index
    timestamps: Timestamps
    timezone: str | None
    values: npt.NDArray[np.float64]
    source: Index | None
    positions: Index | None = None

    def group(self, row: int) -> int:
        return int(np.searchsorted(self.offsets, row, side="right")) - 1

    def timestamp(self, row: int) -> str:
        return timestamp_text(self.timestamps[row], self.timezone)

    def series_at(self, row: int) -> str:
        """What to call the series of a row: all share it in a wide frame of several."""
        shared = len(self.values) > 1
        return "every series" if shared else f"series {quoted(self.names[self.group(row)])}"


def _in_order(columns: Columns, table: Table, options: ReadOptions) -> _Rows:
    codes, timestamps, values = columns.codes, columns.time.timestamps, columns.values
    same = codes[1:] == codes[:-1]
    by_row = options.time == "row"
    sorted_already = not (codes[1:] < codes[:-1]).any() and (
        by_row or not (same & (timestamps[1:] < timestamps[:-1])).any()
    )
    source = None
    if not sorted_already:
        source = np.argsort(codes, kind="stable") if by_row else np.lexsort((timestamps, codes))
        codes, timestamps, values = codes[source], timestamps[source], values[:, source]
        same = codes[1:] == codes[:-1]
    if not by_row:
        repeats = np.flatnonzero(same & (timestamps[1:] == timestamps[:-1]))
        if len(repeats):
            if options.duplicates == "error":
                name = "" if columns.is_wide else f"{columns.names[codes[repeats[0]]]}, "
                example = f"{name}{timestamp_text(timestamps[repeats[0]], columns.time.timezone)}"
                named = possible_names(columns, table, options)
                cure = f"keep one of each, or {options.asked} duplicates='last'"
                if named is not None:
                    how = f"call it {quoted(options.id_col)}" if options.is_fitted else f"pass id_col={quoted(named)}"
                    cure = f"if column {quoted(named)} names the series, {how}"
                raise DataError(
                    f"{table.name}: {counted(len(repeats), 'row')} repeat{'s' if len(repeats) == 1 else ''} "
                    f"an earlier one, first ({_escaped(example)}); {cure}"
                )
            kept = np.ones(len(codes), dtype=bool)
            kept[repeats if options.duplicates == "last" else repeats + 1] = False
            codes, timestamps, values = codes[kept], timestamps[kept], values[:, kept]
            source = np.flatnonzero(kept) if source is None else source[kept]
            same = codes[1:] == codes[:-1]
    offsets = np.concatenate([[0], np.flatnonzero(~same) + 1, [len(codes)]]).astype(np.int64)
    if by_row:
        timestamps = np.arange(1, len(codes) + 1) - np.repeat(offsets[:-1], np.diff(offsets))
    return _Rows(columns.names, offsets, timestamps, columns.time.timezone, values, source)


def _escaped(text: str) -> str:
    return quoted(text)[1:-1]


def _frequency(rows: _Rows, table: Table, options: ReadOptions) -> str | int:
    if options.freq is None or options.time == "row":
        if options.time == "row":
            return 1
        try:
            return infer_frequency(rows.timestamps, rows.offsets[:-1], rows.timezone)
        except DataError as error:
            raise DataError(f"{table.name}: {error}") from None
    is_calendar = parse_frequency(options.freq).clock != "steps"
    if is_calendar != (rows.timestamps.dtype.kind == "M"):
        have, want = ("integer steps", "an integer") if is_calendar else ("dates", "a pandas alias such as 'D'")
        cure = _BRING_TO_MODEL if options.is_fitted else f"pass freq as {want}"
        raise DataError(f"{table.name}: freq={quoted(options.freq)} does not fit a time column of {have}; {cure}")
    return options.freq


def _placed(rows: _Rows, freq: str | int, table: Table, options: ReadOptions) -> _Rows:
    """Finds each row's step within its series, and refuses timestamps that fall between the steps."""
    first = np.repeat(rows.timestamps[rows.offsets[:-1]], np.diff(rows.offsets))
    positions = positions_of(rows.timestamps, first, freq, rows.timezone)
    off = np.flatnonzero(positions < 0)
    if len(off):
        row = int(off[0])
        place = table.place(row if rows.source is None else int(rows.source[row]))
        start = rows.timestamp(int(rows.offsets[rows.group(row)]))
        raise DataError(
            f"{table.name}: freq={quoted(freq)} does not fit {rows.series_at(row)}: {rows.timestamp(row)} at "
            f"{place} is not a whole number of steps after {start} ({counted(len(off), 'row')} in all do not "
            f"fit); {_other_frequency(rows, freq, options)}"
            f"{'' if options.is_fitted else ', or number the steps 1, 2, 3'}"
        )
    return replace(rows, positions=positions)


def _likely_frequency(rows: _Rows) -> str | int | None:
    try:
        return infer_frequency(rows.timestamps, rows.offsets[:-1], rows.timezone)
    except DataError:
        return None


def _other_frequency(rows: _Rows, freq: str | int, options: ReadOptions) -> str:
    """The cure for a wrong frequency, with the right one when the timestamps tell."""
    likely = _likely_frequency(rows)
    if likely not in (None, freq):
        return _BRING_TO_MODEL if options.is_fitted else f"pass freq={quoted(likely)}, as the timestamps look"
    if rows.timezone == "UTC":  # as text with offsets is taken, which may change between summer and winter
        return "write local times without their offsets from UTC, or give a column of one time zone"
    return _BRING_TO_MODEL if options.is_fitted else "pass the freq= the timestamps have"


def _complete(
    rows: _Rows, freq: str | int, table: Table, options: ReadOptions
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64] | None, Index, Index]:
    """Values without gaps: [rows] in one piece, their offsets, and the leading steps each series lost.

    Where gaps are interpolated, the second are the values with the last one carried into them instead.
    """
    assert rows.positions is not None
    width = len(rows.values)
    lengths = np.diff(rows.offsets)
    gaps = rows.positions[rows.offsets[1:] - 1] + 1 - lengths
    values = rows.values.reshape(-1)
    offsets = _repeated(rows.offsets, width)
    missing = ~np.isfinite(values)
    none_lost = np.zeros(len(offsets) - 1, dtype=np.int64)
    if options.fill is None:
        if missing.any():
            _refuse_missing(missing, rows, table, options)
        if gaps.any():
            _refuse_gaps(gaps, rows, freq, table, options)
        return values, None, offsets, none_lost
    if gaps.any():
        total = (int(gaps.sum()) + len(rows.timestamps)) * width
        most = MAX_FILLING * values.size + 1000
        if total > (most if options.max_values is None else min(most, options.max_values)):
            raise DataError(
                f"{table.name}: filling the gaps at freq={quoted(freq)} would make {total:,} values of "
                f"{values.size:,}; check the timestamps (first {rows.timestamp(0)}), or "
                f"{_BRING_TO_MODEL if options.is_fitted else 'pass a longer freq='}"
            )
        values, offsets = spread(values, offsets, np.tile(rows.positions, width))
        missing = ~np.isfinite(values)
    if not missing.any():
        return values, None, offsets, none_lost
    empty = np.flatnonzero(leading(values, offsets) == np.diff(offsets))
    if len(empty):
        raise DataError(
            f"{table.name}: series {quoted(rows.names[empty[0]])} has no number at all to fill from "
            f"({counted(len(empty), 'series')} in all); leave it out"
        )
    forward_filled = fill_missing(values, offsets, "ffill")[0] if options.fill == "interpolate" else None
    filled, kept, lost = fill_missing(values, offsets, options.fill)
    return filled, forward_filled, kept, lost


def _repeated(offsets: Index, width: int) -> Index:
    """The offsets of `width` series that share their rows, one after the other."""
    if width == 1:
        return offsets
    return np.arange(width + 1, dtype=np.int64) * int(offsets[-1])


def _refuse_missing(missing: npt.NDArray[np.bool_], rows: _Rows, table: Table, options: ReadOptions) -> None:
    line, row = divmod(int(missing.argmax()), len(rows.timestamps))
    group = rows.group(row) if len(rows.values) == 1 else line
    by_series = np.add.reduceat(missing, _repeated(rows.offsets, len(rows.values))[:-1], dtype=np.int64)
    value = rows.values[line, row]
    what = "a missing value (NaN)" if np.isnan(value) else f"an infinite value ({value})"
    others = int((by_series > 0).sum()) - 1
    also = f", and so {'do' if others > 1 else 'does'} {others} other series" if others else ""
    raise DataError(
        f"{table.name}: series {quoted(rows.names[group])} has {what} at {rows.timestamp(row)} "
        f"({by_series[group]:,} of its values{also}); "
        f"fill it in, or {options.asked} fill='interpolate', 'ffill' or a number"
    )


def _refuse_gaps(gaps: Index, rows: _Rows, freq: str | int, table: Table, options: ReadOptions) -> None:
    assert rows.positions is not None
    group = int((gaps > 0).argmax())
    start, stop = rows.offsets[group], rows.offsets[group + 1]
    positions = rows.positions[start:stop]
    before = int(np.flatnonzero(np.diff(positions) > 1)[0])
    absent = timestamps_at(rows.timestamps[start : start + 1], positions[before : before + 1] + 1, freq, rows.timezone)
    others = int((gaps > 0).sum()) - 1
    also = f", and {others} other series {'have' if others > 1 else 'has'} gaps too" if others else ""
    is_right = options.is_fitted and _likely_frequency(rows) == freq
    holidays = " (holidays, perhaps: 'ffill' carries the last value over them)" if freq == "B" else ""
    raise DataError(
        f"{table.name}: {rows.series_at(int(start))} has no row for {timestamp_text(absent[0], rows.timezone)} "
        f"({gaps[group]:,} of {positions[-1] + 1:,} steps are missing at freq={quoted(freq)}{also}); "
        f"add them, {'or ' if is_right else ''}{options.asked} fill='ffill', 'interpolate' or a number{holidays}"
        f"{'' if is_right else ', or ' + _other_frequency(rows, freq, options)}"
    )


def _refuse_huge(values: npt.NDArray[np.float64], offsets: Index, rows: _Rows, table: Table) -> None:
    if not values.size or max(values.max(), -values.min()) <= MAX_VALUE:
        return
    row = int((np.abs(values) > MAX_VALUE).argmax())
    series = int(np.searchsorted(offsets, row, side="right")) - 1
    raise DataError(
        f"{table.name}: series {quoted(rows.names[series])} holds {float(values[row])}, too near the limits "
        f"of floating point (at most {MAX_VALUE:g}); correct it, or measure in a larger unit"
    )
