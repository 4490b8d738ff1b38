"""Read the time column: integers, dates, timestamps, or text that spells them."""

import re
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from leapts.data.frequency import Timestamps
from leapts.data.reader import DATES_OF_TEXT, Table, is_text
from leapts.errors import DataError
from leapts.messages import quoted

# Z, +01:00, and after a time of day +0100 and +01 too.
UTC_OFFSET = r"(?:[Zz]|[+-]\d{2}:\d{2}|:\d{2}(?:[.,]\d+)?\s*[+-]\d{2}(?:\d{2})?)$"
_TWO_NUMBERS = r"^(\d{1,2})[/.-](\d{1,2})[/.-]\d"
# Months and other parts of a year by their number, as statistical offices write them; pandas takes them for seconds.
_PART_OF_YEAR = re.compile(r"\d{4}-?[A-PR-Za-pr-z]\d{1,3}")
_TIME_OF_DAY = re.compile(r"\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?:\s*[ap]\.?m\.?)?", re.IGNORECASE)
_MONTHS, _WEEKS, _DAYS, _HOURS = 12, 53, 31, 24
_FIRST_YEAR, _LAST_YEAR = 1800, 2200
WRITE_ISO = "write timestamps as 2024-01-31 or 2024-01-31 13:00:00"


@dataclass(frozen=True)
class TimeColumn:
    """Timestamps in one form.

    Attributes:
        timestamps: int64 steps, or datetime64[us], in UTC when there is a timezone.
        timezone: The time zone of aware timestamps.
        dtype: The Arrow type that came in, or that text was read as, for the output to have too; `DATES_OF_TEXT`.
    """

    timestamps: Timestamps
    timezone: str | None
    dtype: str


def time_column(table: Table, name: str) -> TimeColumn:
    """The time column: integers, dates, timestamps with or without a timezone, or text that spells them."""
    data = table.column(name)
    table.refuse_nulls(data, name, "timestamp")
    if pa.types.is_dictionary(data.type):
        data = data.cast(data.type.value_type)
    if is_text(data.type):
        data = _parsed(data, table, name)
    if pa.types.is_integer(data.type):
        try:
            steps = _numpy(data.cast(pa.int64()))
        except pa.ArrowInvalid:
            raise DataError(
                f"{table.name}: column {quoted(name)} holds {pc.max(data).as_py()}, which no step is numbered by; "
                "count steps from 1"
            ) from None
        _refuse_dates_as_integers(steps, table, name)
        return TimeColumn(steps, None, str(data.type))
    if pa.types.is_date(data.type):
        dtype = DATES_OF_TEXT if table.is_text else str(data.type)
        return TimeColumn(_numpy(data.cast(pa.timestamp("us"))), None, dtype)
    if "period" in str(data.type):
        raise DataError(
            f"{table.name}: column {quoted(name)} holds periods, not timestamps; "
            f"pass frame.assign({name}=frame[{name!r}].dt.to_timestamp())"
        )
    if not pa.types.is_timestamp(data.type):
        raise DataError(
            f"{table.name}: column {quoted(name)} holds {data.type}, not timestamps (first value "
            f"{quoted(data[0].as_py())}); {WRITE_ISO}, or number the steps with integers"
        )
    try:
        timestamps = _numpy(data.cast(pa.timestamp("us", tz=data.type.tz)))
    except pa.ArrowInvalid:
        raise DataError(
            f"{table.name}: column {quoted(name)} holds timestamps finer than a microsecond; "
            "round them, or number the steps with integers"
        ) from None
    return TimeColumn(timestamps.astype("datetime64[us]"), data.type.tz, f"timestamp[{data.type.unit}]")


def _numpy(data: pa.ChunkedArray) -> npt.NDArray[np.generic]:
    return np.asarray(data.to_numpy())


def _refuse_dates_as_integers(steps: npt.NDArray[Any], table: Table, name: str) -> None:
    """Refuses 20240131, 202401 and the like, which would be steps with a gap after every month or year."""
    if len(steps) and _look_like_dates(steps):
        raise DataError(
            f"{table.name}: column {quoted(name)} holds integers that look like dates (first {steps[0]}); {WRITE_ISO}"
        )


def _look_like_dates(steps: npt.NDArray[Any]) -> bool:
    """Whether all are days, with or without a time, months or weeks of a year, or days with the year last or short."""
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
    # Weeks, and days with two digits for the year, might be steps; what is missing at the end of a year or month tells.
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


def _parsed(data: pa.ChunkedArray, table: Table, name: str) -> pa.ChunkedArray:
    """Text as timestamps: ISO 8601, or days and months in the one order that reads every row."""
    text = pd.Series(pc.utf8_trim_whitespace(data.cast(pa.string())).to_pandas())
    aware = text.str.contains(UTC_OFFSET, regex=True).to_numpy(dtype=bool) & text.str.contains(":").to_numpy(dtype=bool)
    odd = _first(aware != aware[0])
    if odd is not None:
        raise DataError(
            f"{table.name}: column {quoted(name)} mixes timestamps with and without a time zone: "
            f"{quoted(text[0])} at {table.place(0)}, {quoted(text[odd])} at {table.place(odd)}; "
            "write all alike"
        )
    timestamps = pd.to_datetime(text, format="ISO8601", errors="coerce", utc=bool(aware[0]))
    bad = _first(timestamps.isna().to_numpy())
    # Without a first row to tell the way of writing by, every row would be tried in many ways, which takes very long.
    if bad == 0 and _is_written_by_convention(text[0]):
        other = _parsed_by_convention(text, table, name)
        bad = _first(other.isna().to_numpy())
        timestamps = other
    if bad is not None:
        raise DataError(
            f"{table.name}: column {quoted(name)} has no readable timestamp at {table.place(bad)}: "
            f"{quoted(text[bad])}; {WRITE_ISO}, or number the steps with integers"
        )
    unit = pa.timestamp("us", tz="UTC" if aware[0] else None)
    read = pa.chunked_array([pa.array(timestamps.dt.as_unit("us"), type=unit)])
    # As the parser of CSV has it of dates in ISO 8601: a time of day that nobody wrote is none.
    has_times = aware[0] or text.str.contains(":").any() or (timestamps != timestamps.dt.normalize()).any()
    return read.cast(pa.date32()) if table.is_text and not has_times else read


def _is_written_by_convention(text: str) -> bool:
    """Whether it can be read as a date, in whatever order; a time alone would be one of today's."""
    if _TIME_OF_DAY.fullmatch(text) or _PART_OF_YEAR.fullmatch(text):
        return False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return any(not pd.isna(pd.to_datetime(text, errors="coerce", dayfirst=order)) for order in (True, False))


def _parsed_by_convention(text: "pd.Series[str]", table: Table, name: str) -> "pd.Series[pd.Timestamp]":
    """Day first or month first, whichever reads more; refused when both read all rows and differ."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        day_first, month_first = _in_order(text, day_first=True), _in_order(text, day_first=False)
    # Of years with two digits, and before noon and after it, pandas takes the numbers either way round, row by row.
    first, second = (numbers.astype(float) for _, numbers in text.str.extract(_TWO_NUMBERS).items())
    day_first, month_first = day_first.mask(second > _MONTHS), month_first.mask(first > _MONTHS)
    if not day_first.isna().any() and not month_first.isna().any() and not day_first.equals(month_first):
        row = int((day_first != month_first).to_numpy().argmax())
        raise DataError(
            f"{table.name}: column {quoted(name)} can be read with the day or the month first: "
            f"{quoted(text[row])} at {table.place(row)}; {WRITE_ISO}"
        )
    return day_first if day_first.isna().sum() < month_first.isna().sum() else month_first


def _in_order(text: "pd.Series[str]", *, day_first: bool) -> "pd.Series[pd.Timestamp]":
    """Parse timestamps in the given order of day and month; NaT for those with UTC offsets."""
    none = pd.Series(pd.NaT, index=text.index, dtype="datetime64[us]")
    try:
        timestamps = pd.to_datetime(text, errors="coerce", dayfirst=day_first)
    except ValueError:  # several offsets, which pandas 2 gives as objects
        return none
    if isinstance(timestamps.dtype, pd.DatetimeTZDtype) or timestamps.dtype == object:
        return none
    return _with_a_year(timestamps)


def _with_a_year(timestamps: "pd.Series[pd.Timestamp]") -> "pd.Series[pd.Timestamp]":
    """01-Jul and Jan-24 are read as of the year 1, which is to say that they have none."""
    return timestamps.mask(timestamps.dt.year == 1)
