"""Frequencies: which stamps lie how many steps apart.

Stamps are numpy arrays: int64 steps, or datetime64[us], in UTC when there is a time zone. A frequency is an
integer (for integer steps) or a pandas alias. Hours and shorter are durations, counted in UTC, so that both
daylight-saving jumps are ordinary; days and longer follow the wall clock of the zone.

Two functions carry everything and invert each other, for all series at once: `stamps_at` and `positions_of`.
"""

import warnings
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from leapts.errors import DataError
from leapts.wording import quoted, stamp_text

Stamps = npt.NDArray[Any]
Positions = npt.NDArray[np.int64]

MICROSECONDS = {
    "D": 86_400_000_000,
    "h": 3_600_000_000,
    "min": 60_000_000,
    "s": 1_000_000,
    "ms": 1_000,
    "us": 1,
}
DAY = MICROSECONDS["D"]
FORMER_ALIASES = {
    "H": "h", "T": "min", "S": "s", "L": "ms", "U": "us",
    "M": "ME", "Q": "QE", "Y": "YE", "A": "YE", "AS": "YS", "BM": "BME", "BQ": "BQE", "BA": "BYE",
}  # fmt: skip


@dataclass(frozen=True)
class Frequency:
    """A parsed frequency.

    Attributes:
        alias: As written: an integer, or a pandas alias such as `h`, `15min`, `W-SUN`, `MS`.
        clock: What is counted: integer steps, microseconds in UTC, microseconds on the wall clock, or the
            dates of a calendar rule (business days, weeks, months, quarters, years).
        step: How many of these make one step.
        rule: The calendar rule with a step of one, for the calendar clock alone.
    """

    alias: str | int
    clock: Literal["steps", "duration", "wall", "calendar"]
    step: int
    rule: pd.offsets.BaseOffset | None = None


@lru_cache(maxsize=64)
def parse_frequency(freq: str | int) -> Frequency:
    """Reads an alias or an integer step.

    Raises:
        DataError: When it is no frequency, naming the one that may have been meant.
    """
    if isinstance(freq, int):
        if freq < 1:
            raise DataError(f"freq={freq} is not a step forward; integer steps start at 1")
        return Frequency(freq, "steps", freq)
    try:
        with warnings.catch_warnings():
            # Pandas 2 still takes former spellings, with a warning; pandas 3 does not.
            warnings.simplefilter("error", FutureWarning)
            offset = pd.tseries.frequencies.to_offset(freq)
    except (ValueError, FutureWarning):
        prefix, _, anchor = freq.lstrip("0123456789").partition("-")
        modern = FORMER_ALIASES.get(prefix)
        meant = f"{freq[: len(freq) - len(freq.lstrip('0123456789'))]}{modern}{'-' if anchor else ''}{anchor}"
        hint = (
            f"; pandas spells it {meant!r}"
            if modern
            else "; use a pandas alias such as 'h', '15min', 'D', 'W-SUN', 'MS'"
        )
        raise DataError(f"freq={quoted(freq)} is not a frequency{hint}") from None
    if offset.n < 1:
        raise DataError(f"freq={quoted(freq)} is not a step forward")
    if isinstance(offset, pd.offsets.Day):
        return Frequency(freq, "wall", offset.n * DAY)
    if isinstance(offset, pd.offsets.Tick):
        microseconds, rest = divmod(pd.Timedelta(offset).as_unit("ns").value, 1000)
        if rest or not microseconds:
            raise DataError(f"freq={quoted(freq)} is finer than a microsecond, the finest step there is")
        return Frequency(freq, "duration", microseconds)
    if isinstance(offset, pd.offsets.BusinessHour):
        raise DataError(f"freq={quoted(freq)} (business hours) is not supported; use integer steps with freq=1")
    return Frequency(freq, "calendar", offset.n, offset.base)


def stamps_at(first: Stamps, positions: Positions, freq: str | int, zone: str | None = None) -> Stamps:
    """The stamps that lie `positions` steps after `first`, element by element (the two broadcast).

    Args:
        first: Where to count from.
        positions: How many steps to go.
        freq: The frequency.
        zone: The time zone, whose wall clock days and longer steps follow.

    Raises:
        DataError: When `first` holds a stamp that is not on the frequency's calendar.
    """
    frequency = parse_frequency(freq)
    if frequency.clock in ("steps", "duration"):
        later: Stamps = first + _ticks(positions * frequency.step, first)
        return later
    return from_wall(_wall_at(first, positions, frequency, zone), zone)


def counted_from(
    first: Stamps, positions: Positions, freq: str | int, zone: str | None = None
) -> tuple[Stamps, Positions]:
    """Where to go on counting from what lies `positions` steps after `first`: a stamp, and steps from there.

    That is the stamp itself and no step, but where daylight saving skips its time of day. There the stamp is moved, and
    those counted from it would all be moved with it; so they are counted from `first` as before.
    """
    frequency = parse_frequency(freq)
    if zone is None or frequency.clock in ("steps", "duration"):
        return stamps_at(first, positions, freq, zone), np.zeros_like(positions)
    wall = _wall_at(first, positions, frequency, zone)
    stamps = from_wall(wall, zone)
    moved = nominal(stamps, zone) != wall
    return np.where(moved, first, stamps), np.where(moved, positions, 0)


def positions_of(stamps: Stamps, first: Stamps, freq: str | int, zone: str | None = None) -> Positions:
    """How many steps each stamp lies after `first`, or -1 where it is not a whole number of steps.

    Args:
        stamps: The stamps, none of them before its `first`.
        first: Where to count from, one for each stamp.
        freq: The frequency.
        zone: The time zone, whose wall clock days and longer steps follow.
    """
    frequency = parse_frequency(freq)
    if frequency.clock in ("steps", "duration"):
        distance = (stamps - first).astype(np.int64, copy=False)
        if frequency.step == 1:
            return distance
        positions, rest = np.divmod(distance, frequency.step)
        positions[rest != 0] = -1
        return positions
    wall, wall_first = to_wall(stamps, zone), nominal(first, zone)
    if frequency.clock == "wall":
        # Checked by going there: a time of day that is skipped, and moved, is still that of its day.
        positions = (wall - wall_first).astype(np.int64) // frequency.step
        fits = stamps_at(first, positions, freq, zone) == stamps
        return np.where(fits, positions, -1)
    wall = nominal(stamps, zone)
    days, first_days = wall.astype("datetime64[D]"), wall_first.astype("datetime64[D]")
    dates = _calendar(frequency, np.concatenate([days[:0], first_days, days]), 0)
    index, first_index = np.searchsorted(dates, days), np.searchsorted(dates, first_days)
    last = len(dates) - 1
    fits = (dates[np.minimum(index, last)] == days) & (dates[np.minimum(first_index, last)] == first_days)
    positions, rest = np.divmod(index - first_index, frequency.step)
    fits &= rest == 0
    other = fits & ((wall - days) != (wall_first - first_days))
    if other.any():  # a time of day that is skipped, and moved, as above
        fits[other] = stamps_at(first[other], positions[other], freq, zone) == stamps[other]
    return np.where(fits, positions, -1)


def future_stamps(last: Stamps, freq: str | int, h: int, zone: str | None = None) -> Stamps:
    """The `h` stamps that follow each series' last one, as [series, h]."""
    steps = np.arange(1, h + 1, dtype=np.int64)
    rows = np.broadcast_to(last[:, None], (len(last), h)).reshape(-1)
    return stamps_at(rows, np.tile(steps, len(last)), freq, zone).reshape(len(last), h)


def seasonal_period(freq: str | int) -> int:
    """How many steps make the season people expect: a day of hours, a week of days, a year of months.

    Frequencies without such a season (integers, years, steps that do not divide it) have period 1.
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


def _wall_at(first: Stamps, positions: Positions, frequency: Frequency, zone: str | None) -> Stamps:
    """What the wall clock would show so many steps of whole days after `first`, if it skipped no hour."""
    wall = nominal(first, zone)
    if frequency.clock == "wall":
        days_later: Stamps = wall + _ticks(positions * frequency.step, wall)
        return days_later
    days = wall.astype("datetime64[D]")
    furthest = int(positions.max(initial=0)) * frequency.step
    dates = _calendar(frequency, days, furthest)
    index = np.searchsorted(dates, days)
    off = dates[np.minimum(index, len(dates) - 1)] != days
    if off.any():
        alias, stamp = quoted(frequency.alias), stamp_text(first[off][0], zone)
        raise DataError(f"freq={alias} does not fit the stamp {stamp}; pass the frequency the stamps have")
    on_dates: Stamps = dates[index + positions * frequency.step] + (wall - days)
    return on_dates


def _ticks(counts: Positions, like: Stamps) -> npt.NDArray[Any]:
    """Counts as something that can be added to stamps."""
    return counts.astype("timedelta64[us]") if like.dtype.kind == "M" else counts


def to_wall(stamps: Stamps, zone: str | None) -> Stamps:
    """UTC stamps as the wall clock of the zone shows them; without a zone they are that already."""
    if zone is None:
        return stamps
    local = pd.DatetimeIndex(stamps).tz_localize("UTC").tz_convert(zone).tz_localize(None)
    return local.as_unit("us").to_numpy()


def nominal(stamps: Stamps, zone: str | None) -> Stamps:
    """The wall clock, but midnight where that was skipped and the day starts later: so a day is counted from there."""
    wall = to_wall(stamps, zone)
    if zone is None:
        return wall
    midnight = wall.astype("datetime64[D]").astype(wall.dtype)
    return np.where(from_wall(midnight, zone) == stamps, midnight, wall)


def from_wall(wall: Stamps, zone: str | None) -> Stamps:
    """Wall clock stamps in UTC. A skipped hour moves to its end, a repeated one is taken the first time."""
    if zone is None:
        return wall
    first_time = np.ones(len(wall), dtype=bool)
    local = pd.DatetimeIndex(wall).tz_localize(zone, ambiguous=first_time, nonexistent="shift_forward")
    return local.tz_convert("UTC").tz_localize(None).as_unit("us").to_numpy()


def _calendar(frequency: Frequency, days: Stamps, further: int) -> Stamps:
    """All dates of the rule from the earliest of `days` to the latest, and `further` ones after that."""
    if not len(days):
        return days
    earliest, latest = pd.Timestamp(days.min()).as_unit("us"), pd.Timestamp(days.max()).as_unit("us")
    # The unit is named, because pandas 2 would count in nanoseconds, which end in 2262.
    count = len(pd.date_range(earliest, latest, freq=frequency.rule, unit="us")) + further + 1
    return pd.date_range(earliest, periods=count, freq=frequency.rule, unit="us").to_numpy().astype("datetime64[D]")
