"""Finding the frequency of stamps: the most common step, named as pandas names it."""

import numpy as np
import numpy.typing as npt
import pandas as pd

from leapts.data.frequency import DAY, MICROSECONDS, Stamps, nominal
from leapts.errors import DataError

ENOUGH = 200_000  # steps looked at: the most common one shows long before
WEEKDAYS = ("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")
MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")


def infer_frequency(stamps: Stamps, starts: npt.NDArray[np.int64], zone: str | None = None) -> str | int:
    """The frequency of stamps sorted within each series, a few gaps notwithstanding.

    Args:
        stamps: All series' stamps, one series after the other.
        starts: Where each series starts.
        zone: The time zone of aware stamps.

    Raises:
        DataError: When no series has two stamps, or the steps follow no frequency.
    """
    stamps, starts = stamps[:ENOUGH], starts[starts < ENOUGH]
    inside = np.ones(len(stamps), dtype=bool)
    inside[starts] = False
    steps = np.diff(stamps, prepend=stamps[:1])[inside]
    if not len(steps):
        raise DataError("no series has two time stamps to tell the frequency from; pass freq=")
    usual = _most_common(steps.astype(np.int64))
    if stamps.dtype.kind != "M":
        return usual
    wall = nominal(stamps, zone)
    if _most_common(np.diff(wall, prepend=wall[:1])[inside].astype(np.int64)) % DAY:
        return _duration_alias(usual)
    days = wall.astype("datetime64[D]")
    usual_days = _most_common(np.diff(days, prepend=days[:1])[inside].astype(np.int64))
    alias = _calendar_alias(days, inside, usual_days)
    if alias is None:
        raise DataError(
            f"the stamps are mostly {pd.Timedelta(usual, unit='us')} apart, which is no calendar frequency; "
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


def _calendar_alias(days: Stamps, inside: npt.NDArray[np.bool_], usual: int) -> str | None:
    weekday = (days.astype(np.int64) + 3) % 7  # the epoch was a Thursday
    if usual == 1:
        # Without weekends, and with steps over them: business days.
        return "B" if len(days) > 2 and (weekday < 5).all() and _spans_weekend(days, inside) else "D"
    if usual >= 28 and (alias := _monthly_alias(days, inside)) is not None:
        return alias
    if usual % 7 == 0 and (weekday == weekday[0]).all():
        weeks = usual // 7
        return f"{'' if weeks == 1 else weeks}W-{WEEKDAYS[weekday[0]]}"
    steps = np.diff(days, prepend=days[:1])[inside].astype(np.int64)
    # From a month on, a step that varies is a calendar's, which cannot be told as a number of days.
    return f"{usual}D" if usual < 28 or (steps == usual).all() else None


def _spans_weekend(days: Stamps, inside: npt.NDArray[np.bool_]) -> bool:
    weeks = (days.astype(np.int64) + 3) // 7
    return bool((np.diff(weeks, prepend=weeks[:1])[inside] > 0).any())


def _monthly_alias(days: Stamps, inside: npt.NDArray[np.bool_]) -> str | None:
    """Months, quarters and years, stamped at their first or last day or business day."""
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
    if usual % 12 and 12 % usual:  # 2023/24, 2024/25: seasons, not months
        return None
    return _months_alias(usual, *fitting[0], month=int(number[0]) % 12)


def _months_alias(months: int, business: str, edge: str, *, month: int) -> str:
    if months % 12 == 0:
        return f"{'' if months == 12 else months // 12}{business}Y{edge}-{MONTHS[month]}"
    if months == 3:
        # Anchors, as pandas writes them: quarters start from JAN, FEB or MAR, and end at DEC, JAN or FEB.
        anchor = month % 3 if edge == "S" else (month + 1) % 3 - 1
        return f"{business}Q{edge}-{MONTHS[anchor]}"
    return f"{'' if months == 1 else months}{business}M{edge}"
