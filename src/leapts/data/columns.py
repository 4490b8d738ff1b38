"""Read the columns of a table, long or wide: series names, timestamps and values."""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from leapts.config import ReadOptions
from leapts.data.frequency import MAX_DATE, MIN_DATE, Timestamps
from leapts.data.reader import DATES_OF_TEXT, Table, is_text
from leapts.data.text import WRITE_ISO, look_like_dates, numbers_from_text, timestamps_from_text
from leapts.errors import DataError
from leapts.messages import listed, nearest, quoted

Codes = npt.NDArray[np.int32]

_LOOK_ALIKE = "they look the same but differ in blanks, invisible characters or accents; write both in one way"
_DIGITS = re.compile(r"([0-9]+)")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_TEXT_AND_NUMBER = r"^(?P<text>[^0-9]*)0*(?P<digits>[0-9]*)$"

USUAL_TIME_NAMES = ("ds", "date", "datetime", "time", "timestamp", "year", "t", "index")
_AMBIGUOUS_TIME_NAMES = ("year", "t", "index")  # may be a series, or row numbers, beside a column of timestamps


@dataclass(frozen=True)
class TimeColumn:
    """Timestamps of a table."""

    timestamps: Timestamps  # int64 steps, or datetime64[us], in UTC when there is a timezone
    timezone: str | None  # timezone of aware timestamps
    dtype: str  # arrow type of the column, for output frames; `DATES_OF_TEXT` for dates in a text file


@dataclass(frozen=True)
class Columns:
    """Columns of a long or wide table."""

    names: tuple[str | int, ...]  # series names
    codes: Codes  # index of each row's series; all zero in a wide table, where a row has a value of every series
    time: TimeColumn  # timestamps, one for each row
    values: npt.NDArray[np.float64]  # [1, rows] of a long table, [series, rows] of a wide one
    time_col: str  # name of the time column
    is_wide: bool  # whether the table is wide
    unused: tuple[str, ...] = ()  # names of columns of a long table that are not read


def columns_of(table: Table, options: ReadOptions) -> Columns:
    """Read names, timestamps and values of a long or wide table.

    Raises:
        DataError: With the column and what to do.
    """
    names = list(dict.fromkeys([options.id_col, options.time_col, options.target_col, *table.columns]))
    if alike := look_alikes(names):
        one, other = (ascii(names[index]) for index in alike)
        raise DataError(f"{table.name}: the column names {one} and {other} are not the same; {_LOOK_ALIKE}")
    layout = options.layout
    if layout == "auto":
        has_target, has_id = options.target_col in table.columns, options.id_col in table.columns
        layout = "wide" if not has_target and not has_id and _time_name(table, options) else "long"
    return _wide(table, options) if layout == "wide" else _long(table, options)


def _long(table: Table, options: ReadOptions) -> Columns:
    for option, name in (("time_col", options.time_col), ("target_col", options.target_col)):
        _require(table, option, name)
    if options.id_col in table.columns:
        names, codes = _in_natural_order(*name_column(table, options.id_col))
    else:  # a single series is named after its target column
        _refuse_names_in_index(table, options.id_col)
        names, codes = (options.target_col,), np.zeros(len(table), dtype=np.int32)
    time = _time(table, options, options.time_col)
    values = number_column(table, options.target_col)[None]
    used = {options.id_col, options.time_col, options.target_col}
    unused = tuple(name for name in table.columns if name not in used and not _is_blank(table, name))
    return Columns(names, codes, time, values, options.time_col, is_wide=False, unused=unused)


def possible_names(columns: Columns, table: Table, options: ReadOptions) -> str | None:
    """Find a column that may hold the series names: with it, no timestamp repeats."""
    if options.id_col in table.columns:
        return None
    found = []
    for name in table.columns:
        kind = table.column(name).type
        is_name = is_text(kind) or pa.types.is_integer(kind) or pa.types.is_dictionary(kind)
        if name in (columns.time_col, options.target_col) or not is_name:
            continue
        rows = pd.DataFrame({"name": table.column(name).to_pandas(), "time": columns.time.timestamps})
        names = rows["name"].nunique()
        if 1 < names <= len(rows) // 2 and not rows.duplicated().any():
            found.append((names, name))
    return min(found)[1] if found else None


def _in_natural_order(names: list[str | int], codes: Codes) -> tuple[tuple[str | int, ...], Codes]:
    """Sort series by name, numbers within names by value, so that the order of rows does not matter."""
    order = natural_order(names)
    ranks = np.arange(len(names), dtype=np.int32)
    if np.array_equal(order, ranks):
        return tuple(names), codes
    place = np.empty_like(ranks)
    place[order] = ranks
    return tuple(names[index] for index in order), place[codes]


def natural_order(names: Sequence[str | int]) -> npt.NDArray[np.integer[Any]]:
    """Sort names with the numbers in them by value; returns their indices."""
    if not names or isinstance(names[0], int):
        return np.argsort(np.array(names), kind="stable")
    # Most names are a text and a number, which Arrow sorts much faster than Python.
    parts = pc.extract_regex(pa.array(names), _TEXT_AND_NUMBER)
    if parts.null_count:
        return np.array(sorted(range(len(names)), key=lambda index: natural_key(str(names[index]))))
    text, digits = parts.flatten()
    keys = {"text": text, "length": pc.utf8_length(digits), "digits": digits, "name": pa.array(names)}
    order = pc.sort_indices(pa.table(keys), sort_keys=[(key, "ascending") for key in keys])
    return np.asarray(order.to_numpy())


def natural_key(name: str) -> tuple[object, object]:
    """Return the sort key of a name in natural order."""
    # Text and numbers alternate, text first. Of two numbers the one with more digits is larger; the name breaks ties.
    parts: list[Any] = _DIGITS.split(name)
    parts[1::2] = [(len(digits), digits) for digits in [part.lstrip("0") for part in parts[1::2]]]
    return (parts, name)


def _wide(table: Table, options: ReadOptions) -> Columns:
    time_col = _time_name(table, options)
    if time_col is None:
        _require(table, "time_col", options.time_col)
        raise AssertionError("unreachable: the time column exists")
    names = tuple(name for name in table.columns if name != time_col and not _is_blank(table, name))
    if not names:
        raise DataError(f"{table.name} has only the time column {quoted(time_col)}; add one column for each series")
    for name in names:
        if not visible_name(name) or name.startswith(("Unnamed: ", "__index_level_")):
            raise table.error(
                name,
                "looks like row numbers, not a series; name it or drop it "
                "(pandas writes row numbers unless index=False)",
            )
    values = np.empty((len(names), len(table)))
    for index, name in enumerate(names):
        values[index] = number_column(table, name)
        if name.casefold() == "index" and len(table) > 1 and np.array_equal(values[index], _counted(values[index])):
            raise table.error(name, "holds row numbers, not a series; drop it")
    codes = np.zeros(values.shape[1], dtype=np.int32)
    return Columns(names, codes, _time(table, options, time_col), values, time_col, is_wide=True)


def _is_blank(table: Table, name: str) -> bool:
    """Whether a column has neither name nor values, as after a comma at the end of every line."""
    return not name and table.column(name).null_count == len(table)


def _counted(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return row numbers from the first value on, if that is 0 or 1."""
    return np.arange(len(values)) + (values[0] if values[0] in (0, 1) else np.nan)


def _time(table: Table, options: ReadOptions, name: str) -> TimeColumn:
    if options.time == "calendar":
        return time_column(table, name)
    return TimeColumn(np.arange(1, len(table) + 1, dtype=np.int64), None, "int64")


def _time_name(table: Table, options: ReadOptions) -> str | None:
    """Find the time column of a wide table: by the option, a usual name, or its type."""
    if options.time_col in table.columns:
        return options.time_col
    if options.time_col != ReadOptions.model_fields["time_col"].default:  # a column that was asked for
        return None
    folded = {name.casefold(): name for name in reversed(table.columns)}
    usual = [name for name in USUAL_TIME_NAMES if name in folded]
    if usual and usual[0] not in _AMBIGUOUS_TIME_NAMES:
        return folded[usual[0]]
    temporal = [name for name in table.columns if pa.types.is_temporal(table.column(name).type)]
    if len(temporal) == 1:
        if table.is_text and _DATE.match(temporal[0]):
            raise DataError(
                f"{table.name}: the first line holds {quoted(temporal[0])} instead of a column name; "
                "add a header line such as ds,y"
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
        hint = "the timestamps are in its index: pass frame.reset_index()"
    raise DataError(f"{table.name} has no column {quoted(name)}, only {listed(table.columns)}; {hint}")


def time_column(table: Table, name: str) -> TimeColumn:
    """Read a column of integers, dates, timestamps, or text that spells them."""
    data = table.column(name)
    table.refuse_nulls(data, name, "timestamp")
    if pa.types.is_dictionary(data.type):
        data = data.cast(data.type.value_type)
    if is_text(data.type):
        data = timestamps_from_text(data, table, name)
    if pa.types.is_integer(data.type):
        try:
            steps = _numpy(data.cast(pa.int64()))
        except pa.ArrowInvalid:
            raise table.error(name, f"holds the step {pc.max(data).as_py()}, above 2**63 - 1; count from 1") from None
        if len(steps) and look_like_dates(steps):
            raise table.error(name, f"holds integers that look like dates (first {steps[0]}); {WRITE_ISO}")
        return TimeColumn(steps, None, str(data.type))
    if "period" in str(data.type):
        raise table.error(
            name, f"holds periods, not timestamps; pass frame.assign({name}=frame[{name!r}].dt.to_timestamp())"
        )
    is_date = pa.types.is_date(data.type)
    if not is_date and not pa.types.is_timestamp(data.type):
        raise table.error(
            name,
            f"holds {data.type}, not timestamps (first value {quoted(data[0].as_py())}); {WRITE_ISO}, or "
            "number the steps with integers",
        )
    timezone = None if is_date else data.type.tz
    try:
        timestamps = _numpy(data.cast(pa.timestamp("us", tz=timezone))).astype("datetime64[us]")
    except pa.ArrowInvalid:
        raise table.error(
            name, "holds timestamps finer than a microsecond; round them, or number the steps with integers"
        ) from None
    outside = (timestamps < MIN_DATE) | (timestamps > MAX_DATE)
    if outside.any():
        place = table.place(int(outside.argmax()))
        raise table.error(name, f"holds a timestamp outside of years 1 to 9999 at {place}; correct it")
    dtype = str(data.type) if is_date else f"timestamp[{data.type.unit}]"
    return TimeColumn(timestamps, timezone, DATES_OF_TEXT if is_date and table.is_text else dtype)


def _numpy(data: pa.ChunkedArray) -> npt.NDArray[np.generic]:
    return np.asarray(data.to_numpy())


def number_column(table: Table, name: str) -> npt.NDArray[np.float64]:
    """Read a column of values as float64, with NaN for missing values."""
    data = table.column(name)
    if pa.types.is_null(data.type):
        data = data.cast(pa.float64())
    if pa.types.is_dictionary(data.type):
        data = data.cast(data.type.value_type)
    is_number = pa.types.is_integer(data.type) or pa.types.is_floating(data.type) or pa.types.is_decimal(data.type)
    if not is_number and not is_text(data.type):
        raise table.error(
            name,
            f"holds {data.type}, not numbers (first value {quoted(data[0].as_py())}); convert it to numbers or drop it",
        )
    if not is_number:
        data = numbers_from_text(data, table, name)
    return np.asarray(data.cast(pa.float64(), safe=False).to_numpy()).astype(np.float64, copy=False)


def name_column(table: Table, name: str) -> tuple[list[str | int], Codes]:
    """Read the series names, text or integers: each name once, and the index of each row's name."""
    data = table.column(name)
    has_categories = pa.types.is_dictionary(data.type)
    kind = data.type.value_type if has_categories else data.type
    if not (is_text(kind) or pa.types.is_integer(kind)):
        raise table.error(name, f"holds {kind}, not series names (text or integers); convert it to text")
    if not has_categories:
        data = data.dictionary_encode()
    array = data.unify_dictionaries().combine_chunks()
    if isinstance(array, pa.ChunkedArray):  # no rows or several chunks, depending on the version
        array = array.chunk(0)
    table.refuse_nulls(array.indices, name, "series name")
    codes = array.indices.to_numpy(zero_copy_only=False).astype(np.int32, copy=False)
    names = array.dictionary.to_pylist()
    if has_categories:  # some of them may have no row
        is_used = np.zeros(len(names), dtype=bool)
        is_used[codes] = True
        names = [name for name, used in zip(names, is_used, strict=True) if used]
        codes = (np.cumsum(is_used, dtype=np.int32) - 1)[codes]

    def place(index: int) -> str:
        return table.place(int(np.argmax(codes == index)))

    if alike := look_alikes(names):
        one, other = (f"{names[index]!a} at {place(index)}" for index in alike)
        raise table.error(name, f"spells one series name in two ways, {one} and {other}; {_LOOK_ALIKE}")
    blank = next((index for index, name in enumerate(names) if isinstance(name, str) and not visible_name(name)), None)
    if blank is not None:
        raise table.error(name, f"has no series name at {place(blank)}; fill it in or drop the row")
    return [name.rstrip() if isinstance(name, str) else name for name in names], codes


def look_alikes(names: Sequence[str | int]) -> tuple[int, int] | None:
    """Find two names that differ only in invisible characters, outer blanks or Unicode composition."""
    seen: dict[str | int, int] = {}
    for index, name in enumerate(names):
        other = seen.setdefault(visible_name(name) if isinstance(name, str) else name, index)
        if other != index:
            return other, index
    return None


# Joiners, fillers and variation selectors: letters and marks that nothing is drawn for.
_INVISIBLE = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]")


def visible_name(name: str) -> str:
    """Reduce a name to its visible text: composed (NFC), without control and zero-width characters."""
    if not (name.isascii() and name.isprintable()):
        shown = (letter for letter in name if unicodedata.category(letter) not in ("Cc", "Cf"))
        name = unicodedata.normalize("NFC", _INVISIBLE.sub("", "".join(shown)))
    return name.strip()
