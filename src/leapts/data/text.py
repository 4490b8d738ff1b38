"""Parse the text of a table as timestamps and numbers; refuse what could be read in two ways."""

import re
import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from leapts.data.reader import Table
from leapts.messages import quoted

# Z or +01:00; after a time of day also +0100 and +01.
UTC_OFFSET = r"(?:[Zz]|[+-]\d{2}:\d{2}|:\d{2}(?:[.,]\d+)?\s*[+-]\d{2}(?:\d{2})?)$"
_TWO_NUMBERS = r"^(\d{1,2})[/.-](\d{1,2})[/.-]\d"
# Parts of a year as statistical offices write them, such as 2024M07, which pandas would read as seconds.
_PART_OF_YEAR = re.compile(r"\d{4}-?[A-PR-Za-pr-z]\d{1,3}")
_TIME_OF_DAY = re.compile(r"\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?:\s*[ap]\.?m\.?)?", re.IGNORECASE)
_MONTHS, _WEEKS, _DAYS, _HOURS = 12, 53, 31, 24
_FIRST_YEAR, _LAST_YEAR = 1800, 2200
WRITE_ISO = "write timestamps as 2024-01-31 or 2024-01-31 13:00:00"


def look_like_dates(steps: npt.NDArray[Any]) -> bool:
    """Whether all integers are dates such as 20240131 or 202401: as steps they would have gaps.

    These are days (with or without a time, the year first or last, four digits or two), months, or weeks of a year.
    """
    if steps.min() < 0:
        return False
    has_time = any(
        _are_days(steps // unit) and (steps % unit // (unit // 100) < _HOURS).all() for unit in (100, 10**4, 10**6)
    )
    year, rest = np.divmod(steps, 100)
    month_day = steps // 10_000
    has_year_last = _are_years(steps % 10_000) and any(
        _are_month_and_day(each) for each in (month_day, month_day % 100 * 100 + month_day // 100)
    )
    if _are_days(steps) or has_time or has_year_last or (_are_years(year) and _are_within(rest, _MONTHS)):
        return True
    # Weeks, and days with a year of two digits, could be steps; gaps at the end of a year or month show the difference.
    are_weeks = _are_years(year) and _are_within(rest, _WEEKS)
    are_short_days = steps.max() < 10**6 <= 10 * steps.min() and _are_month_and_day(steps % 10_000)
    return bool((are_weeks or are_short_days) and np.ptp(steps) >= len(np.unique(steps)))


def _are_days(numbers: npt.NDArray[Any]) -> bool:
    return _are_years(numbers // 10_000) and _are_month_and_day(numbers % 10_000)


def _are_years(numbers: npt.NDArray[Any]) -> bool:
    return bool(numbers.min() >= _FIRST_YEAR and numbers.max() <= _LAST_YEAR)


def _are_month_and_day(numbers: npt.NDArray[Any]) -> bool:
    return _are_within(numbers // 100, _MONTHS) and _are_within(numbers % 100, _DAYS)


def _are_within(numbers: npt.NDArray[Any], most: int) -> bool:
    return bool(numbers.min() >= 1 and numbers.max() <= most)


def _first(mask: npt.NDArray[np.bool_]) -> int | None:
    return int(mask.argmax()) if mask.any() else None


def timestamps_from_text(data: pa.ChunkedArray, table: Table, name: str) -> pa.ChunkedArray:
    """Parse text as ISO 8601, or with day and month in the only order that fits every row."""
    text = pd.Series(pc.utf8_trim_whitespace(data.cast(pa.string())).to_pandas())
    aware = text.str.contains(UTC_OFFSET, regex=True).to_numpy(dtype=bool) & text.str.contains(":").to_numpy(dtype=bool)
    odd = _first(aware != aware[0])
    if odd is not None:
        raise table.error(
            name,
            f"mixes timestamps with and without a timezone: {quoted(text[0])} at {table.place(0)}, "
            f"{quoted(text[odd])} at {table.place(odd)}; write all in one way",
        )
    timestamps = pd.to_datetime(text, format="ISO8601", errors="coerce", utc=bool(aware[0]))
    bad = _first(timestamps.isna().to_numpy())
    # Pandas guesses the format from the first row; where that fails, it would try many formats on every row.
    if bad == 0 and _is_date(text[0]):
        timestamps = _parsed_by_convention(text, table, name)
        bad = _first(timestamps.isna().to_numpy())
    if bad is not None:
        raise table.error(
            name,
            f"has no readable timestamp at {table.place(bad)}: {quoted(text[bad])}; {WRITE_ISO}, or number the "
            "steps with integers",
        )
    unit = pa.timestamp("us", tz="UTC" if aware[0] else None)
    read = pa.chunked_array([pa.array(timestamps.dt.as_unit("us"), type=unit)])
    # Dates without a time of day stay dates, as the CSV parser reads those in ISO 8601.
    has_times = aware[0] or text.str.contains(":").any() or (timestamps != timestamps.dt.normalize()).any()
    return read.cast(pa.date32()) if table.is_text and not has_times else read


def _is_date(text: str) -> bool:
    """Whether pandas reads the text as a date in some order; a time alone would be a time of today."""
    if _TIME_OF_DAY.fullmatch(text) or _PART_OF_YEAR.fullmatch(text):
        return False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return any(not pd.isna(pd.to_datetime(text, errors="coerce", dayfirst=order)) for order in (True, False))


def _parsed_by_convention(text: "pd.Series[str]", table: Table, name: str) -> "pd.Series[pd.Timestamp]":
    """Parse with the day or the month first, whichever reads more rows; refuse text that fits both."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        day_first, month_first = _in_order(text, day_first=True), _in_order(text, day_first=False)
    # Pandas swaps the numbers row by row in some formats (years of two digits, AM and PM), so they are checked here.
    first, second = (numbers.astype(float) for _, numbers in text.str.extract(_TWO_NUMBERS).items())
    day_first, month_first = day_first.mask(second > _MONTHS), month_first.mask(first > _MONTHS)
    if not day_first.isna().any() and not month_first.isna().any() and not day_first.equals(month_first):
        row = int((day_first != month_first).to_numpy().argmax())
        raise table.error(
            name, f"can be read with the day or the month first: {quoted(text[row])} at {table.place(row)}; {WRITE_ISO}"
        )
    return day_first if day_first.isna().sum() < month_first.isna().sum() else month_first


def _in_order(text: "pd.Series[str]", *, day_first: bool) -> "pd.Series[pd.Timestamp]":
    """Parse timestamps in the given order of day and month; NaT for those with UTC offsets or without a year."""
    none = pd.Series(pd.NaT, index=text.index, dtype="datetime64[us]")
    try:
        timestamps = pd.to_datetime(text, errors="coerce", dayfirst=day_first)
    except ValueError:  # several offsets, which pandas 2 returns as objects
        return none
    if isinstance(timestamps.dtype, pd.DatetimeTZDtype) or timestamps.dtype == object:
        return none
    return timestamps.mask(timestamps.dt.year == 1)  # pandas reads 01-Jul and Jan-24 as dates of the year 1


def numbers_from_text(data: pa.ChunkedArray, table: Table, name: str) -> pa.ChunkedArray:
    """Parse text as numbers; refuse other text, with the place of the first and how to write it."""
    text = pd.Series(pc.utf8_trim_whitespace(data.cast(pa.string())).to_pandas())
    blank = text.isna() | (text == "")
    numbers = pd.to_numeric(text.mask(blank), errors="coerce")
    bad = (numbers.isna() & ~blank & ~text.str.lower().isin(["nan", "na", "n/a", "null", "none"])).to_numpy(dtype=bool)
    if not bad.any():
        return pa.chunked_array([pa.array(numbers.astype(np.float64).to_numpy())])
    row = int(bad.argmax())
    value = str(text[row])
    if re.fullmatch(r"[+-]?\d{1,3}(?:[,.' ]\d{3})+(?:[,.]\d+)?", value):
        hint = "write numbers without thousands separators and with a decimal point, as 1234.5"
    elif re.fullmatch(r"[+-]?\d+,\d+", value):
        hint = "write decimals with a point, as 3.14"
    else:
        hint = f"correct it, drop the column, or pass id_col={name!r} if it holds the series names"
    raise table.error(name, f"has no number at {table.place(row)}: {quoted(value)}; {hint}")
