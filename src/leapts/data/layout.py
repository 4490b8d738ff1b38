"""Telling long frames (one row for each series and stamp) from wide ones (one column for each series)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from leapts.data.columns import TimeColumn, is_text, name_column, number_column, time_column
from leapts.data.options import PanelOptions
from leapts.data.reading import Table
from leapts.errors import DataError
from leapts.wording import listed, nearest, quoted

_DIGITS = re.compile(r"([0-9]+)")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_TEXT_AND_NUMBER = r"^(?P<text>[^0-9]*)0*(?P<digits>[0-9]*)$"

USUAL_TIME_NAMES = ("ds", "date", "datetime", "time", "timestamp", "year", "t", "index")
_AMBIGUOUS_TIME_NAMES = ("year", "t", "index")  # may be a series, or row numbers, beside a column of stamps


@dataclass(frozen=True)
class Columns:
    """What a frame holds, whichever way it is laid out.

    Attributes:
        names: The series.
        codes: For each row which series it belongs to; all zero in a wide frame, whose rows belong to all.
        time: The stamps, one for each row.
        values: [1, rows] in a long frame, [series, rows] in a wide one.
        time_col: The name of the time column.
        is_wide: Which of the two it was.
        unused: What else the frame has: columns of a long one that are not read.
    """

    names: tuple[str | int, ...]
    codes: npt.NDArray[np.int32]
    time: TimeColumn
    values: npt.NDArray[np.float64]
    time_col: str
    is_wide: bool
    unused: tuple[str, ...] = ()


def columns_of(table: Table, options: PanelOptions) -> Columns:
    """Reads the columns that matter, having decided on the layout."""
    layout = options.layout
    if layout == "auto":
        has_target, has_id = options.target_col in table.columns, options.id_col in table.columns
        layout = "wide" if not has_target and not has_id and _time_name(table, options) else "long"
    return _wide(table, options) if layout == "wide" else _long(table, options)


def _long(table: Table, options: PanelOptions) -> Columns:
    for option, name in (("time_col", options.time_col), ("target_col", options.target_col)):
        _require(table, option, name)
    if options.id_col in table.columns:
        ids = name_column(table, options.id_col)
        names, codes = _in_natural_order(ids.names, ids.codes)
    else:  # a single series goes by the name of its values
        _refuse_names_in_index(table, options.id_col)
        names, codes = (options.target_col,), np.zeros(len(table), dtype=np.int32)
    time = _time(table, options, options.time_col)
    values = number_column(table, options.target_col)[None]
    used = {options.id_col, options.time_col, options.target_col}
    unused = tuple(name for name in table.columns if name not in used and not _is_blank(table, name))
    return Columns(names, codes, time, values, options.time_col, is_wide=False, unused=unused)


def possible_names(columns: Columns, table: Table, options: PanelOptions) -> str | None:
    """A column that may name the series of a table where none was said to: with it, no stamp is there twice."""
    if options.id_col in table.columns:
        return None
    found = []
    for name in table.columns:
        kind = table.column(name).type
        is_name = is_text(kind) or pa.types.is_integer(kind) or pa.types.is_dictionary(kind)
        if name in (columns.time_col, options.target_col) or not is_name:
            continue
        rows = pd.DataFrame({"name": table.column(name).to_pandas(), "stamp": columns.time.stamps})
        names = rows["name"].nunique()
        if 1 < names <= len(rows) // 2 and not rows.duplicated().any():
            found.append((names, name))
    return min(found)[1] if found else None


def _in_natural_order(
    names: tuple[str | int, ...], codes: npt.NDArray[np.int32]
) -> tuple[tuple[str | int, ...], npt.NDArray[np.int32]]:
    """Series by name, numbers in names counting as numbers: the order of the rows then makes no difference."""
    order = natural_order(names)
    ranks = np.arange(len(names), dtype=np.int32)
    if np.array_equal(order, ranks):
        return names, codes
    place = np.empty_like(ranks)
    place[order] = ranks
    return tuple(names[index] for index in order), place[codes]


def natural_order(names: Sequence[str | int]) -> npt.NDArray[np.integer[Any]]:
    """Where the names stand, in their natural order."""
    if not names or isinstance(names[0], int):
        return np.argsort(np.array(names), kind="stable")
    # Most names are a text and a number, which Arrow sorts far sooner than Python: there may be very many.
    parts = pc.extract_regex(pa.array(names), _TEXT_AND_NUMBER)
    if parts.null_count:
        return np.array(sorted(range(len(names)), key=lambda index: natural_key(str(names[index]))))
    text, digits = parts.flatten()
    keys = {"text": text, "length": pc.utf8_length(digits), "digits": digits, "name": pa.array(names)}
    order = pc.sort_indices(pa.table(keys), sort_keys=[(key, "ascending") for key in keys])
    return np.asarray(order.to_numpy())


def natural_key(name: str) -> tuple[object, object]:
    """What to compare names by."""
    # Text and numbers alternate, text first, so that like meets like. Of two numbers the one with more digits is the
    # larger, which holds however long they are; the name itself settles ties.
    parts: list[Any] = _DIGITS.split(name)
    parts[1::2] = [(len(digits), digits) for digits in [part.lstrip("0") for part in parts[1::2]]]
    return (parts, name)


def _wide(table: Table, options: PanelOptions) -> Columns:
    time_col = _time_name(table, options)
    if time_col is None:
        _require(table, "time_col", options.time_col)
        raise AssertionError("unreachable: the time column is there")
    names = tuple(name for name in table.columns if name != time_col and not _is_blank(table, name))
    if not names:
        raise DataError(f"{table.name} has only the time column {quoted(time_col)}; add one column for each series")
    for name in names:
        if not name or name.startswith(("Unnamed: ", "__index_level_")):
            raise DataError(
                f"{table.name}: column {quoted(name)} looks like row numbers, not a series; name or drop it "
                "(pandas writes them unless told index=False)"
            )
    values = np.empty((len(names), len(table)))
    for index, name in enumerate(names):
        values[index] = number_column(table, name)
        if name.casefold() == "index" and len(table) > 1 and np.array_equal(values[index], _counted(values[index])):
            raise DataError(f"{table.name}: column {quoted(name)} holds row numbers, not a series; drop it")
    codes = np.zeros(len(table), dtype=np.int32)
    return Columns(names, codes, _time(table, options, time_col), values, time_col, is_wide=True)


def _is_blank(table: Table, name: str) -> bool:
    """Whether a column has neither a name nor a value, as a comma at the end of every line leaves it."""
    return not name and table.column(name).null_count == len(table)


def _counted(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Rows numbered on from the first value, where that is 0 or 1."""
    return np.arange(len(values)) + (values[0] if values[0] in (0, 1) else np.nan)


def _time(table: Table, options: PanelOptions, name: str) -> TimeColumn:
    if options.time == "calendar":
        return time_column(table, name)
    return TimeColumn(np.arange(1, len(table) + 1, dtype=np.int64), None, "int64")


def _time_name(table: Table, options: PanelOptions) -> str | None:
    """The time column of a wide frame: as named, by a usual name, or the one that holds stamps."""
    if options.time_col in table.columns:
        return options.time_col
    folded = {name.casefold(): name for name in reversed(table.columns)}
    usual = [name for name in USUAL_TIME_NAMES if name in folded]
    if usual and usual[0] not in _AMBIGUOUS_TIME_NAMES:
        return folded[usual[0]]
    temporal = [name for name in table.columns if pa.types.is_temporal(table.column(name).type)]
    if len(temporal) == 1:
        if table.is_text and _DATE.match(temporal[0]):
            raise DataError(
                f"{table.name}: the first line holds {quoted(temporal[0])} where the name of a column should be; "
                "put a line of names above it, such as ds,y"
            )
        return temporal[0]
    return folded[usual[0]] if usual else None


def _refuse_names_in_index(table: Table, id_col: str) -> None:
    index = getattr(table.frame.to_native(), "index", None)
    if isinstance(index, pd.Index) and id_col in index.names:
        raise DataError(f"{table.name} has its series names in its index; pass frame.reset_index()")


def _require(table: Table, option: str, name: str) -> None:
    if name in table.columns:
        return
    near = nearest(name, table.columns)
    if near is None and option == "time_col":
        near = next((known for known in table.columns if known.casefold() in USUAL_TIME_NAMES), None)
    hint = f"did you mean {option}={quoted(near)}?" if near else f"pass {option}="
    index = getattr(table.frame.to_native(), "index", None)
    if option == "time_col" and isinstance(index, pd.DatetimeIndex | pd.PeriodIndex):
        hint = "the time stamps are in its index: pass frame.reset_index()"
    raise DataError(f"{table.name} has no column {quoted(name)}, only {listed(table.columns)}; {hint}")
