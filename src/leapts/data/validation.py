"""Validate a table: the result is a `Panel`, or a `DataError`."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from leapts.config import ReadOptions
from leapts.data.columns import Columns, columns_of, possible_names
from leapts.data.covariates import CovariateRows, find_covariates, known_rows
from leapts.data.frequency import (
    Timestamps,
    infer_frequency,
    parse_frequency,
    positions_of,
    step_origin,
    timestamps_at,
)
from leapts.data.imputation import fill_missing, leading, spread
from leapts.data.panel import FrameStyle, Panel
from leapts.data.reader import Table, read_table
from leapts.errors import DataError
from leapts.messages import counted, quoted, timestamp_text

MAX_VALUE = 1e30  # larger values overflow float32 when squared, and are no measurements
MAX_IMPUTATION_RATIO = 20  # of the number of values after imputation to that before

_USE_FREQUENCY_OF_FIT = "convert the data to this frequency, which the model was fitted with, or fit again"

Index = npt.NDArray[np.int64]


def read_panel(source: str | Path | object, options: ReadOptions | None = None) -> Panel:
    """Read and validate a file, standard input (`-`) or a frame.

    Raises:
        DataError: With the source, the series or row, the value, and what to do.
    """
    options = options or ReadOptions()
    return panel_from_table(read_table(source, id_col=options.id_col), options)


def panel_from_table(table: Table, options: ReadOptions) -> Panel:
    """Validate a table."""
    columns = columns_of(table, options)
    rows = _in_order(columns, table, options)
    freq = _frequency(rows, table, options)
    every = rows = _placed(rows, freq, table, options)
    found = _covariates(rows, columns, table, options)
    if found is not None and found.future:
        rows = _with_target(rows)
    values, forward_filled, offsets, removed = _complete(rows, freq, table, options)
    _refuse_huge(values, offsets, rows, table)
    first, start_offsets = np.resize(rows.timestamps[rows.offsets[:-1]], len(rows.names)), removed
    if removed.any():
        first, start_offsets = step_origin(first, removed, freq, rows.timezone)
    return Panel(
        # Read-only values are the frame's own memory, and are copied.
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
        unused=tuple(name for name in columns.unused if name not in (found.names if found else ())),
        forward_filled=None if forward_filled is None else torch.from_numpy(forward_filled),
        start_offsets=start_offsets if start_offsets.any() else None,
        covariates=None if found is None else found.read(every.source, every.offsets, every.positions, removed),
    )


def require_length(
    panel: Panel, steps: int, purpose: str = "one window", hint: str = "shorten the input or the horizon"
) -> None:
    """Refuse series that are too short for a purpose.

    Raises:
        DataError: With the shortest series, its length, the length needed, and the hint.
    """
    lengths = panel.lengths
    short = int((lengths < steps).sum())
    if short:
        shortest = int(lengths.argmin())
        others = f" ({counted(short, 'series')} of {len(panel)} too short)" if short > 1 else ""
        raise DataError(
            f"series {quoted(panel.series[shortest])} has {counted(int(lengths[shortest]), 'value')}{others}, but "
            f"{purpose} needs {steps:,}; {hint}, or leave such series out"
        )


@dataclass(frozen=True)
class _Rows:
    """Rows sorted by series and time, with `values` as in `Columns`.

    The series of a wide table share all rows. `source` is the index of each row in the table, None if that was sorted;
    `positions` is the step of each row within its series.
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
        return "every series" if len(self.values) > 1 else f"series {quoted(self.names[self.group(row)])}"


def _in_order(columns: Columns, table: Table, options: ReadOptions) -> _Rows:
    """Sort rows by series and time, and handle repeated timestamps."""
    codes, timestamps, values = columns.codes, columns.time.timestamps, columns.values
    by_row, source = options.time == "row", None
    same = codes[1:] == codes[:-1]
    is_earlier = np.zeros(0, dtype=bool) if by_row else same & (timestamps[1:] < timestamps[:-1])
    if (codes[1:] < codes[:-1]).any() or is_earlier.any():
        source = np.argsort(codes, kind="stable") if by_row else np.lexsort((timestamps, codes))
        codes, timestamps, values = codes[source], timestamps[source], values[:, source]
        same = codes[1:] == codes[:-1]
    repeats = np.zeros(0, dtype=np.int64) if by_row else np.flatnonzero(same & (timestamps[1:] == timestamps[:-1]))
    if len(repeats):
        if options.duplicates == "error":
            name = "" if columns.is_wide else f"{columns.names[codes[repeats[0]]]}, "
            example = f"{name}{timestamp_text(timestamps[repeats[0]], columns.time.timezone)}"
            raise _repeated_rows(len(repeats), example, columns, table, options)
        kept = np.ones(len(codes), dtype=bool)
        kept[repeats if options.duplicates == "last" else repeats + 1] = False
        codes, timestamps, values = codes[kept], timestamps[kept], values[:, kept]
        source = np.flatnonzero(kept) if source is None else source[kept]
        same = codes[1:] == codes[:-1]
    offsets = np.concatenate([[0], np.flatnonzero(~same) + 1, [len(codes)]]).astype(np.int64)
    if by_row:
        timestamps = np.arange(1, len(codes) + 1) - np.repeat(offsets[:-1], np.diff(offsets))
    return _Rows(columns.names, offsets, timestamps, columns.time.timezone, values, source)


def _repeated_rows(count: int, example: str, columns: Columns, table: Table, options: ReadOptions) -> DataError:
    named = possible_names(columns, table, options)
    hint = f"keep one of each, or {options.asked} duplicates='last'"
    if named is not None:
        how = f"call it {quoted(options.id_col)}" if options.is_fitted else f"pass id_col={quoted(named)}"
        hint = f"if column {quoted(named)} names the series, {how}"
    return DataError(
        f"{table.name}: {counted(count, 'row')} repeat{'s' if count == 1 else ''} an earlier one, first "
        f"({quoted(example)[1:-1]}); {hint}"
    )


def _covariates(rows: _Rows, columns: Columns, table: Table, options: ReadOptions) -> CovariateRows | None:
    """Find the columns of covariates; known-future ones have values in rows without a target."""
    if not (columns.unused or options.futr_exog_list or options.hist_exog_list or options.stat_exog_list):
        return None
    ahead = np.zeros(0, dtype=np.int64)
    if options.futr_exog_list is None and columns.unused and not columns.is_wide:
        ahead = np.flatnonzero(~known_rows(rows.values[0], rows.offsets))
        ahead = ahead if rows.source is None else rows.source[ahead]
    return find_covariates(table, options, columns.unused, ahead, is_wide=columns.is_wide)


def _with_target(rows: _Rows) -> _Rows:
    """Drop the rows after the last known target of each series."""
    kept = known_rows(rows.values[0], rows.offsets)
    if kept.all():
        return rows
    assert rows.positions is not None
    counts = np.add.reduceat(kept, rows.offsets[:-1], dtype=np.int64)
    return replace(
        rows,
        offsets=np.concatenate([[0], np.cumsum(counts)]),
        timestamps=rows.timestamps[kept],
        values=rows.values[:, kept],
        source=np.flatnonzero(kept) if rows.source is None else rows.source[kept],
        positions=rows.positions[kept],
    )


def _frequency(rows: _Rows, table: Table, options: ReadOptions) -> str | int:
    """Infer the frequency, or check that the given one is of the kind of the timestamps."""
    if options.time == "row":
        return 1
    if options.freq is None:
        try:
            return infer_frequency(rows.timestamps, rows.offsets[:-1], rows.timezone)
        except DataError as error:
            raise DataError(f"{table.name}: {error}") from None
    is_calendar = parse_frequency(options.freq).clock != "steps"
    if is_calendar != (rows.timestamps.dtype.kind == "M"):
        have, want = ("integer steps", "an integer") if is_calendar else ("dates", "a pandas alias such as 'D'")
        hint = _USE_FREQUENCY_OF_FIT if options.is_fitted else f"pass freq as {want}"
        raise DataError(f"{table.name}: freq={quoted(options.freq)} does not fit a time column of {have}; {hint}")
    return options.freq


def _placed(rows: _Rows, freq: str | int, table: Table, options: ReadOptions) -> _Rows:
    """Find the step of each row within its series, and refuse timestamps between steps."""
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
    """Advise on a wrong frequency, with the likely one if it can be inferred."""
    likely = _likely_frequency(rows)
    if likely in (None, freq) and rows.timezone == "UTC":  # text with UTC offsets, which change with the season
        return "write local times without their offsets from UTC, or give a column of one timezone"
    if options.is_fitted:
        return _USE_FREQUENCY_OF_FIT
    known = likely not in (None, freq)
    return f"pass freq={quoted(likely)}, which fits the timestamps" if known else "pass the freq= of the timestamps"


def _complete(
    rows: _Rows, freq: str | int, table: Table, options: ReadOptions
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64] | None, Index, Index]:
    """Impute gaps and missing values, or refuse them.

    Returns:
        The values, the values filled forward (if interpolated), their offsets, and the leading steps removed from each
        series.
    """
    assert rows.positions is not None
    width = len(rows.values)
    lengths = np.diff(rows.offsets)
    gaps = rows.positions[rows.offsets[1:] - 1] + 1 - lengths
    values = rows.values.reshape(-1)
    offsets = _repeated(rows.offsets, width)
    missing = ~np.isfinite(values)
    none_removed = np.zeros(len(offsets) - 1, dtype=np.int64)
    if options.fill is None:
        if missing.any():
            _refuse_missing(missing, rows, table, options)
        if gaps.any():
            _refuse_gaps(gaps, rows, freq, table, options)
        return values, None, offsets, none_removed
    if gaps.any():
        total = (int(gaps.sum()) + len(rows.timestamps)) * width
        limit = MAX_IMPUTATION_RATIO * values.size + 1000
        if total > (limit if options.max_values is None else min(limit, options.max_values)):
            raise DataError(
                f"{table.name}: imputing the gaps at freq={quoted(freq)} would make {total:,} values of "
                f"{values.size:,}; check the timestamps (first {rows.timestamp(0)}), or "
                f"{_USE_FREQUENCY_OF_FIT if options.is_fitted else 'pass a longer freq='}"
            )
        values, offsets = spread(values, offsets, np.tile(rows.positions, width))
        missing = ~np.isfinite(values)
    if not missing.any():
        return values, None, offsets, none_removed
    empty = np.flatnonzero(leading(values, offsets) == np.diff(offsets))
    if len(empty):
        raise DataError(
            f"{table.name}: series {quoted(rows.names[empty[0]])} has no number at all, so that nothing can "
            f"be imputed ({counted(len(empty), 'series')} in all); leave it out"
        )
    forward_filled = fill_missing(values, offsets, "ffill")[0] if options.fill == "interpolate" else None
    filled, offsets, removed = fill_missing(values, offsets, options.fill)
    return filled, forward_filled, offsets, removed


def _repeated(offsets: Index, width: int) -> Index:
    """Offsets of `width` series that share their rows."""
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
    holidays = " (perhaps holidays: 'ffill' repeats the last value)" if freq == "B" else ""
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
        f"{table.name}: series {quoted(rows.names[series])} holds {float(values[row])}, above the limit of "
        f"{MAX_VALUE:g}; correct it, or use a larger unit"
    )
