"""All that is asked of data, in one place, before any model: out comes a `Panel`, or a `DataError`."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from leapts.data.filling import fill_missing, leading, spread
from leapts.data.frequency import Stamps, counted_from, parse_frequency, positions_of, stamps_at
from leapts.data.inference import infer_frequency
from leapts.data.layout import Columns, columns_of, possible_names
from leapts.data.options import PanelOptions
from leapts.data.panel import FrameStyle, Panel
from leapts.data.reading import Table, read_table
from leapts.errors import DataError
from leapts.wording import counted, quoted, stamp_text

LARGEST_VALUE = 1e30  # squares of values beyond this leave float32 once scaled badly, and are no measurement
MOST_FILLING = 20  # filling may multiply the rows by this, and no more

_BRING_TO_MODEL = "bring the data to this frequency, at which the model was fitted, or fit again"

Index = npt.NDArray[np.int64]


def read_panel(source: str | Path | object, options: PanelOptions | None = None) -> Panel:
    """Reads and validates a path, standard input (`-`) or frame.

    Raises:
        DataError: Naming the source, the series or row, the value, and the cure.
    """
    options = options or PanelOptions()
    return panel_from_table(read_table(source, id_col=options.id_col), options)


def panel_from_table(table: Table, options: PanelOptions) -> Panel:
    """Validates a table: everything that can be wrong with it is found here."""
    columns = columns_of(table, options)
    rows = _in_order(columns, table, options)
    freq = _frequency(rows, table, options)
    rows = _placed(rows, freq, table, options)
    values, carried, offsets, lost = _complete(rows, freq, table, options)
    _refuse_huge(values, offsets, rows, table)
    first, skipped = np.resize(rows.stamps[rows.offsets[:-1]], len(rows.names)), lost
    if lost.any():
        first, skipped = counted_from(first, lost, freq, rows.zone)
    return Panel(
        # The panel owns its values: they may still be the frame's own memory, which is read-only here.
        values=torch.from_numpy(np.require(values, requirements=["W"])),
        offsets=torch.from_numpy(offsets),
        series=rows.names,
        first=first,
        freq=freq,
        zone=rows.zone,
        style=FrameStyle(
            kind=table.kind,
            id_col=options.id_col,
            time_col=columns.time_col,
            target_col=options.target_col,
            time_type=columns.time.dtype,
        ),
        unused=columns.unused,
        carried=None if carried is None else torch.from_numpy(carried),
        skipped=skipped if skipped.any() else None,
    )


def require_length(
    panel: Panel, steps: int, purpose: str = "one window", cure: str = "shorten the input or the horizon"
) -> None:
    """Refuses a panel with a series shorter than `steps`.

    Args:
        panel: The panel.
        steps: What every series needs, at least.
        purpose: What for, as the message shall say it.
        cure: What helps, beside leaving such series out.

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
            f"{cure}, or leave such series out"
        )


@dataclass(frozen=True)
class _Rows:
    """Rows sorted by series and time.

    In a wide frame all series share the rows: there is one group of them, and `values` has one line a series.
    `source` says which row of the table each came from; None is all in place.
    """

    names: tuple[str | int, ...]
    offsets: Index
    stamps: Stamps
    zone: str | None
    values: npt.NDArray[np.float64]
    source: Index | None
    positions: Index | None = None

    def group(self, row: int) -> int:
        return int(np.searchsorted(self.offsets, row, side="right")) - 1

    def stamp(self, row: int) -> str:
        return stamp_text(self.stamps[row], self.zone)

    def series_at(self, row: int) -> str:
        """What to call the series of a row: all share it in a wide frame of several."""
        shared = len(self.values) > 1
        return "every series" if shared else f"series {quoted(self.names[self.group(row)])}"


def _in_order(columns: Columns, table: Table, options: PanelOptions) -> _Rows:
    codes, stamps, values = columns.codes, columns.time.stamps, columns.values
    same = codes[1:] == codes[:-1]
    by_row = options.time == "row"
    sorted_already = not (codes[1:] < codes[:-1]).any() and (by_row or not (same & (stamps[1:] < stamps[:-1])).any())
    source = None
    if not sorted_already:
        source = np.argsort(codes, kind="stable") if by_row else np.lexsort((stamps, codes))
        codes, stamps, values = codes[source], stamps[source], values[:, source]
        same = codes[1:] == codes[:-1]
    if not by_row:
        repeats = np.flatnonzero(same & (stamps[1:] == stamps[:-1]))
        if len(repeats):
            if options.duplicates == "error":
                name = "" if columns.is_wide else f"{columns.names[codes[repeats[0]]]}, "
                example = f"{name}{stamp_text(stamps[repeats[0]], columns.time.zone)}"
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
            codes, stamps, values = codes[kept], stamps[kept], values[:, kept]
            source = np.flatnonzero(kept) if source is None else source[kept]
            same = codes[1:] == codes[:-1]
    offsets = np.concatenate([[0], np.flatnonzero(~same) + 1, [len(codes)]]).astype(np.int64)
    if by_row:
        stamps = np.arange(1, len(codes) + 1) - np.repeat(offsets[:-1], np.diff(offsets))
    return _Rows(columns.names, offsets, stamps, columns.time.zone, values, source)


def _escaped(text: str) -> str:
    return quoted(text)[1:-1]


def _frequency(rows: _Rows, table: Table, options: PanelOptions) -> str | int:
    if options.freq is None or options.time == "row":
        if options.time == "row":
            return 1
        try:
            return infer_frequency(rows.stamps, rows.offsets[:-1], rows.zone)
        except DataError as error:
            raise DataError(f"{table.name}: {error}") from None
    is_calendar = parse_frequency(options.freq).clock != "steps"
    if is_calendar != (rows.stamps.dtype.kind == "M"):
        have, want = ("integer steps", "an integer") if is_calendar else ("dates", "a pandas alias such as 'D'")
        cure = _BRING_TO_MODEL if options.is_fitted else f"pass freq as {want}"
        raise DataError(f"{table.name}: freq={quoted(options.freq)} does not fit a time column of {have}; {cure}")
    return options.freq


def _placed(rows: _Rows, freq: str | int, table: Table, options: PanelOptions) -> _Rows:
    """Finds each row's step within its series, and refuses stamps that fall between the steps."""
    first = np.repeat(rows.stamps[rows.offsets[:-1]], np.diff(rows.offsets))
    positions = positions_of(rows.stamps, first, freq, rows.zone)
    off = np.flatnonzero(positions < 0)
    if len(off):
        row = int(off[0])
        place = table.place(row if rows.source is None else int(rows.source[row]))
        start = rows.stamp(int(rows.offsets[rows.group(row)]))
        raise DataError(
            f"{table.name}: freq={quoted(freq)} does not fit {rows.series_at(row)}: {rows.stamp(row)} at "
            f"{place} is not a whole number of steps after {start} ({counted(len(off), 'row')} in all do not "
            f"fit); {_other_frequency(rows, freq, options)}"
            f"{'' if options.is_fitted else ', or number the steps 1, 2, 3'}"
        )
    return replace(rows, positions=positions)


def _likely_frequency(rows: _Rows) -> str | int | None:
    try:
        return infer_frequency(rows.stamps, rows.offsets[:-1], rows.zone)
    except DataError:
        return None


def _other_frequency(rows: _Rows, freq: str | int, options: PanelOptions) -> str:
    """The cure for a wrong frequency, with the right one when the stamps tell."""
    likely = _likely_frequency(rows)
    if likely not in (None, freq):
        return _BRING_TO_MODEL if options.is_fitted else f"pass freq={quoted(likely)}, as the stamps look"
    if rows.zone == "UTC":  # as text with offsets is taken, which may change between summer and winter
        return "write local times without their offsets from UTC, or give a column of one time zone"
    return _BRING_TO_MODEL if options.is_fitted else "pass the freq= the stamps have"


def _complete(
    rows: _Rows, freq: str | int, table: Table, options: PanelOptions
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
        total = (int(gaps.sum()) + len(rows.stamps)) * width
        most = MOST_FILLING * values.size + 1000
        if total > (most if options.most_values is None else min(most, options.most_values)):
            raise DataError(
                f"{table.name}: filling the gaps at freq={quoted(freq)} would make {total:,} values of "
                f"{values.size:,}; check the stamps (first {rows.stamp(0)}), or "
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
    carried = fill_missing(values, offsets, "ffill")[0] if options.fill == "interpolate" else None
    filled, kept, lost = fill_missing(values, offsets, options.fill)
    return filled, carried, kept, lost


def _repeated(offsets: Index, width: int) -> Index:
    """The offsets of `width` series that share their rows, one after the other."""
    if width == 1:
        return offsets
    return np.arange(width + 1, dtype=np.int64) * int(offsets[-1])


def _refuse_missing(missing: npt.NDArray[np.bool_], rows: _Rows, table: Table, options: PanelOptions) -> None:
    line, row = divmod(int(missing.argmax()), len(rows.stamps))
    group = rows.group(row) if len(rows.values) == 1 else line
    by_series = np.add.reduceat(missing, _repeated(rows.offsets, len(rows.values))[:-1], dtype=np.int64)
    value = rows.values[line, row]
    what = "a missing value (NaN)" if np.isnan(value) else f"an infinite value ({value})"
    others = int((by_series > 0).sum()) - 1
    also = f", and so {'do' if others > 1 else 'does'} {others} other series" if others else ""
    raise DataError(
        f"{table.name}: series {quoted(rows.names[group])} has {what} at {rows.stamp(row)} "
        f"({by_series[group]:,} of its values{also}); "
        f"fill it in, or {options.asked} fill='interpolate', 'ffill' or a number"
    )


def _refuse_gaps(gaps: Index, rows: _Rows, freq: str | int, table: Table, options: PanelOptions) -> None:
    assert rows.positions is not None
    group = int((gaps > 0).argmax())
    start, stop = rows.offsets[group], rows.offsets[group + 1]
    positions = rows.positions[start:stop]
    before = int(np.flatnonzero(np.diff(positions) > 1)[0])
    absent = stamps_at(rows.stamps[start : start + 1], positions[before : before + 1] + 1, freq, rows.zone)
    others = int((gaps > 0).sum()) - 1
    also = f", and {others} other series {'have' if others > 1 else 'has'} gaps too" if others else ""
    is_right = options.is_fitted and _likely_frequency(rows) == freq
    holidays = " (holidays, perhaps: 'ffill' carries the last value over them)" if freq == "B" else ""
    raise DataError(
        f"{table.name}: {rows.series_at(int(start))} has no row for {stamp_text(absent[0], rows.zone)} "
        f"({gaps[group]:,} of {positions[-1] + 1:,} steps are missing at freq={quoted(freq)}{also}); "
        f"add them, {'or ' if is_right else ''}{options.asked} fill='ffill', 'interpolate' or a number{holidays}"
        f"{'' if is_right else ', or ' + _other_frequency(rows, freq, options)}"
    )


def _refuse_huge(values: npt.NDArray[np.float64], offsets: Index, rows: _Rows, table: Table) -> None:
    if not values.size or max(values.max(), -values.min()) <= LARGEST_VALUE:
        return
    row = int((np.abs(values) > LARGEST_VALUE).argmax())
    series = int(np.searchsorted(offsets, row, side="right")) - 1
    raise DataError(
        f"{table.name}: series {quoted(rows.names[series])} holds {float(values[row])}, too near the limits "
        f"of floating point (at most {LARGEST_VALUE:g}); correct it, or measure in a larger unit"
    )
