"""Infer frequencies, and count steps between timestamps.

Timestamps are numpy arrays of int64 steps or datetime64[us], in UTC when there is a timezone. A frequency is an
integer (for integer steps) or a pandas alias. Hours and shorter steps are durations, counted in UTC, so that daylight
saving does not matter; days and longer steps follow the local time ("wall clock") of the timezone.
"""

import warnings
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from leapts.data.timezone import from_wall, nominal, to_wall
from leapts.errors import DataError
from leapts.messages import quoted, timestamp_text

Timestamps = npt.NDArray[Any]
Positions = npt.NDArray[np.int64]

MICROSECONDS = {"D": 86_400_000_000, "h": 3_600_000_000, "min": 60_000_000, "s": 1_000_000, "ms": 1_000, "us": 1}
DAY = MICROSECONDS["D"]
FORMER_ALIASES = {
    "H": "h", "T": "min", "S": "s", "L": "ms", "U": "us",
    "M": "ME", "Q": "QE", "Y": "YE", "A": "YE", "AS": "YS", "BM": "BME", "BQ": "BQE", "BA": "BYE",
}  # fmt: skip
MAX_INFERENCE_ROWS = 200_000  # rows are enough to find the most common step
WEEKDAYS = ("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")
MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
# Dates outside of these years cannot be written as ISO 8601 without a sign.
MIN_DATE, MAX_DATE = np.datetime64("0001-01-01", "us"), np.datetime64("9999-12-31T23:59:59.999999", "us")
MAX_STEP = 2**53  # units in a step: microseconds, days of a rule, or integers


@dataclass(frozen=True)
class Frequency:
    """A parsed frequency."""

    alias: str | int  # an integer, or a pandas alias such as `h`, `15min`, `W-SUN`, `MS`
    # The unit: integer steps, microseconds in UTC, microseconds of local time, or dates of a calendar rule (business
    # days, weeks, months, quarters, years).
    clock: Literal["steps", "duration", "wall", "calendar"]
    step: int  # units in one step
    rule: pd.offsets.BaseOffset | None = None  # calendar rule with a step of one


@lru_cache(maxsize=64)
def parse_frequency(freq: str | int) -> Frequency:
    """Parse a pandas alias or an integer step.

    Raises:
        DataError: When it is not a frequency, with the likely spelling.
    """
    if isinstance(freq, int):
        return Frequency(freq, "steps", _valid_step(freq, freq))
    try:
        with warnings.catch_warnings():
            # Pandas 2 accepts old aliases with a warning; pandas 3 refuses them.
            warnings.simplefilter("error", FutureWarning)
            offset = pd.tseries.frequencies.to_offset(freq)
    except (ValueError, OverflowError, FutureWarning):
        prefix, _, anchor = freq.lstrip("0123456789").partition("-")
        modern = FORMER_ALIASES.get(prefix)
        meant = f"{freq[: len(freq) - len(freq.lstrip('0123456789'))]}{modern}{'-' if anchor else ''}{anchor}"
        hint = f"pandas spells it {meant!r}" if modern else "use a pandas alias such as 'h', '15min', 'D', 'MS'"
        raise DataError(f"freq={quoted(freq)} is not a frequency; {hint}") from None
    _valid_step(offset.n, freq)
    if isinstance(offset, pd.offsets.Day):
        return Frequency(freq, "wall", _valid_step(offset.n * DAY, freq))
    if isinstance(offset, pd.offsets.Tick):
        microseconds, rest = divmod(offset.n * offset.base.nanos, 1000)
        if rest or not microseconds:
            raise DataError(f"freq={quoted(freq)} is finer than a microsecond; use integer steps with freq=1")
        return Frequency(freq, "duration", _valid_step(microseconds, freq))
    if isinstance(offset, pd.offsets.BusinessHour):
        raise DataError(f"freq={quoted(freq)} (business hours) is not supported; use integer steps with freq=1")
    return Frequency(freq, "calendar", offset.n, offset.base)


def _valid_step(step: int, freq: str | int) -> int:
    if not 1 <= step <= MAX_STEP:
        raise DataError(f"freq={quoted(freq)}: the step must be {'at least 1' if step < 1 else 'shorter'}")
    return step


def timestamps_at(first: Timestamps, positions: Positions, freq: str | int, timezone: str | None = None) -> Timestamps:
    """Return the timestamps `positions` steps after `first`, element by element (the two broadcast).

    Raises:
        DataError: When a timestamp of `first` is not on the frequency's calendar, or the result is after year 9999.
    """
    frequency = parse_frequency(freq)
    _require_in_range(first, positions, frequency)
    if frequency.clock in ("steps", "duration"):
        later: Timestamps = first + _ticks(positions * frequency.step, first)
        return later
    wall = _wall_at(first, positions, frequency, timezone)
    return wall if timezone is None else from_wall(wall, timezone)


def _require_in_range(first: Timestamps, positions: Positions, frequency: Frequency) -> None:
    """Refuse steps that end after year 9999, or after the largest integer."""
    if not first.size or not positions.size:
        return
    step = frequency.step * (DAY if frequency.rule is not None else 1)  # a rule's step takes a day or more
    end = MAX_DATE.astype(np.int64) if first.dtype.kind == "M" else np.iinfo(np.int64).max
    if int(first.max().astype(np.int64)) + int(positions.max()) * step > int(end):
        raise _out_of_range(first, positions, frequency)


def _out_of_range(first: Timestamps, positions: Positions, frequency: Frequency) -> DataError:
    start, steps = timestamp_text(first.max()), int(positions.max())
    return DataError(
        f"freq={quoted(frequency.alias)}: {steps:,} steps after {start} is later than any possible timestamp; "
        "forecast fewer steps, or check the timestamps"
    )


def step_origin(
    first: Timestamps, positions: Positions, freq: str | int, timezone: str | None = None
) -> tuple[Timestamps, Positions]:
    """Return a timestamp to count steps from, and the number of steps from it to each position.

    This is the timestamp at the position, and 0. Where daylight saving moved that timestamp, steps counted from it
    would move too; there it is `first`, and the position.
    """
    frequency = parse_frequency(freq)
    if timezone is None or frequency.clock in ("steps", "duration"):
        return timestamps_at(first, positions, freq, timezone), np.zeros_like(positions)
    wall = _wall_at(first, positions, frequency, timezone)
    timestamps = from_wall(wall, timezone)
    moved = nominal(timestamps, timezone) != wall
    return np.where(moved, first, timestamps), np.where(moved, positions, 0)


def positions_of(timestamps: Timestamps, first: Timestamps, freq: str | int, timezone: str | None = None) -> Positions:
    """Count the steps from `first` to each timestamp; -1 where that is not a whole number.

    Inverts `timestamps_at`. No timestamp may lie before its `first`.
    """
    frequency = parse_frequency(freq)
    if frequency.clock in ("steps", "duration"):
        distance = (timestamps - first).astype(np.int64, copy=False)
        if frequency.step == 1:
            return distance
        positions, rest = np.divmod(distance, frequency.step)
        positions[rest != 0] = -1
        return positions
    wall_first = _wall(first, timezone)
    if frequency.clock == "wall":
        wall = timestamps if timezone is None else to_wall(timestamps, timezone)
        # Compare with the timestamps at these positions: one that daylight saving moved still fits its day.
        positions = (wall - wall_first).astype(np.int64) // frequency.step
        fits = timestamps_at(first, positions, freq, timezone) == timestamps
        return np.where(fits, positions, -1)
    wall = _wall(timestamps, timezone)
    days, first_days = wall.astype("datetime64[D]"), wall_first.astype("datetime64[D]")
    dates = _calendar(frequency, np.concatenate([days[:0], first_days, days]), 0)
    index, first_index = np.searchsorted(dates, days), np.searchsorted(dates, first_days)
    last = len(dates) - 1
    fits = (dates[np.minimum(index, last)] == days) & (dates[np.minimum(first_index, last)] == first_days)
    positions, rest = np.divmod(index - first_index, frequency.step)
    fits &= rest == 0
    other = fits & ((wall - days) != (wall_first - first_days))
    if other.any():  # times of day that daylight saving moved, as above
        fits[other] = timestamps_at(first[other], positions[other], freq, timezone) == timestamps[other]
    return np.where(fits, positions, -1)


def future_timestamps(last: Timestamps, freq: str | int, h: int, timezone: str | None = None) -> Timestamps:
    """Return the `h` timestamps after each series' last one, as [series, h]."""
    steps = np.arange(1, h + 1, dtype=np.int64)
    rows = np.broadcast_to(last[:, None], (len(last), h)).reshape(-1)
    return timestamps_at(rows, np.tile(steps, len(last)), freq, timezone).reshape(len(last), h)


def _wall_at(first: Timestamps, positions: Positions, frequency: Frequency, timezone: str | None) -> Timestamps:
    """Return local times `positions` steps after `first`, ignoring hours that daylight saving skips."""
    wall = _wall(first, timezone)
    if frequency.clock == "wall":
        days_later: Timestamps = wall + _ticks(positions * frequency.step, wall)
        return days_later
    days = wall.astype("datetime64[D]")
    try:
        dates = _calendar(frequency, days, int(positions.max(initial=0)) * frequency.step)
    except (OverflowError, ValueError):  # of pandas, which differs by version
        raise _out_of_range(first, positions, frequency) from None
    index = np.searchsorted(dates, days)
    off = dates[np.minimum(index, len(dates) - 1)] != days
    if off.any():
        alias, timestamp = quoted(frequency.alias), timestamp_text(first[off][0], timezone)
        raise DataError(f"freq={alias} does not fit the timestamp {timestamp}; pass the frequency the timestamps have")
    on_dates: Timestamps = dates[index + positions * frequency.step] + (wall - days)
    if on_dates.size and on_dates.max() > MAX_DATE:
        raise _out_of_range(first, positions, frequency)
    return on_dates


def _wall(timestamps: Timestamps, timezone: str | None) -> Timestamps:
    return timestamps if timezone is None else nominal(timestamps, timezone)


def _ticks(counts: Positions, like: Timestamps) -> npt.NDArray[Any]:
    """Convert counts to a type that can be added to timestamps."""
    return counts.astype("timedelta64[us]") if like.dtype.kind == "M" else counts


def _calendar(frequency: Frequency, days: Timestamps, further: int) -> Timestamps:
    """Return the rule's dates from the earliest to the latest of `days`, and `further` more."""
    if not len(days):
        return days
    earliest, latest = pd.Timestamp(days.min()).as_unit("us"), pd.Timestamp(days.max()).as_unit("us")
    # Pandas 2 counts in nanoseconds unless told otherwise, and those end in 2262.
    count = len(pd.date_range(earliest, latest, freq=frequency.rule, unit="us")) + further + 1
    return pd.date_range(earliest, periods=count, freq=frequency.rule, unit="us").to_numpy().astype("datetime64[D]")


def seasonal_period(freq: str | int) -> int:
    """Return the usual season length: a day of hours, a week of days, a year of months.

    It is 1 for frequencies without a usual season: integers, years, steps that do not divide the season.
    """
    frequency = parse_frequency(freq)
    if frequency.clock == "steps":
        return 1
    if frequency.clock == "calendar":
        assert frequency.rule is not None
        prefix = frequency.rule.freqstr.split("-")[0].lstrip("BC") or "B"
        season = {"B": 5, "W": 52, "SMS": 24, "SME": 24, "MS": 12, "ME": 12, "QS": 4, "QE": 4}.get(prefix, 1)
        return _whole(season, frequency.step)
    if frequency.step >= DAY:
        return _whole(7 * DAY, frequency.step)
    season = DAY if frequency.step >= MICROSECONDS["min"] else MICROSECONDS["h"]
    return _whole(season, frequency.step)


def _whole(season: int, step: int) -> int:
    return season // step if season % step == 0 else 1


def infer_frequency(timestamps: Timestamps, starts: npt.NDArray[np.int64], timezone: str | None = None) -> str | int:
    """Infer the frequency of sorted series, one after the other, from the most common step.

    Raises:
        DataError: When no series has two timestamps, or the steps follow no frequency.
    """
    timestamps, starts = timestamps[:MAX_INFERENCE_ROWS], starts[starts < MAX_INFERENCE_ROWS]
    inside = np.ones(len(timestamps), dtype=bool)
    inside[starts] = False
    steps = np.diff(timestamps, prepend=timestamps[:1])[inside]
    if not len(steps):
        raise DataError("no series has two timestamps to infer the frequency from; pass freq=")
    usual = _most_common(steps.astype(np.int64))
    if timestamps.dtype.kind != "M":
        return usual
    wall = _wall(timestamps, timezone)
    if _most_common(np.diff(wall, prepend=wall[:1])[inside].astype(np.int64)) % DAY:
        return _duration_alias(usual)
    days = wall.astype("datetime64[D]")
    usual_days = _most_common(np.diff(days, prepend=days[:1])[inside].astype(np.int64))
    alias = _calendar_alias(days, inside, usual_days)
    if alias is None:
        raise DataError(
            f"the timestamps are mostly {pd.Timedelta(usual, unit='us')} apart, which is no calendar frequency; "
            "pass freq=, or number the steps 1, 2, 3 and pass freq=1"
        )
    return alias


def _most_common(steps: npt.NDArray[np.int64]) -> int:
    values, counts = np.unique(steps[steps > 0] if (steps > 0).any() else steps, return_counts=True)
    return int(values[counts.argmax()])


def _duration_alias(microseconds: int) -> str:
    unit = next(name for name, size in MICROSECONDS.items() if microseconds % size == 0)
    count = microseconds // MICROSECONDS[unit]
    return unit if count == 1 else f"{count}{unit}"


def _calendar_alias(days: Timestamps, inside: npt.NDArray[np.bool_], usual: int) -> str | None:
    weekday = (days.astype(np.int64) + 3) % 7  # the epoch was a Thursday
    if usual == 1:
        # No timestamp at a weekend, and some steps across one: business days.
        return "B" if len(days) > 2 and (weekday < 5).all() and _spans_weekend(days, inside) else "D"
    if usual >= 28 and (alias := _monthly_alias(days, inside)) is not None:
        return alias
    if usual % 7 == 0 and (weekday == weekday[0]).all():
        weeks = usual // 7
        return f"{'' if weeks == 1 else weeks}W-{WEEKDAYS[weekday[0]]}"
    steps = np.diff(days, prepend=days[:1])[inside].astype(np.int64)
    # A varying step of a month or more follows a calendar, which no number of days describes.
    return f"{usual}D" if usual < 28 or (steps == usual).all() else None


def _spans_weekend(days: Timestamps, inside: npt.NDArray[np.bool_]) -> bool:
    weeks = (days.astype(np.int64) + 3) // 7
    return bool((np.diff(weeks, prepend=weeks[:1])[inside] > 0).any())


def _monthly_alias(days: Timestamps, inside: npt.NDArray[np.bool_]) -> str | None:
    """Name months, quarters and years that are dated at their first or last day or business day."""
    months = days.astype("datetime64[M]")
    start, end = months.astype("datetime64[D]"), (months + 1).astype("datetime64[D]")
    edges = {
        ("", "S"): start,
        ("", "E"): end - 1,
        ("B", "S"): np.busday_offset(start, 0, roll="forward"),
        ("B", "E"): np.busday_offset(end, -1, roll="forward"),
    }
    fitting = [edge for edge, expected in edges.items() if np.array_equal(days, expected)]
    if not fitting:
        return None
    number = months.astype(np.int64)
    usual = _most_common(np.diff(number, prepend=number[:1])[inside])
    if usual % 12 and 12 % usual:  # no whole number of steps in a year, nor of years in a step
        return None
    return _months_alias(usual, *fitting[0], month=int(number[0]) % 12)


def _months_alias(months: int, business: str, edge: str, *, month: int) -> str:
    if months % 12 == 0:
        return f"{'' if months == 12 else months // 12}{business}Y{edge}-{MONTHS[month]}"
    if months == 3:
        # Pandas anchors quarters that start in JAN, FEB or MAR, and that end in DEC, JAN or FEB.
        anchor = month % 3 if edge == "S" else (month + 1) % 3 - 1
        return f"{business}Q{edge}-{MONTHS[anchor]}"
    return f"{'' if months == 1 else months}{business}M{edge}"
