"""The stamps of a forecast, from the last one of the history, as text."""

from datetime import UTC, datetime
from functools import lru_cache

import numpy as np
import pandas as pd

from leapts.data.frequency import Stamps, from_wall, future_stamps
from leapts.data.panel import Panel
from leapts.errors import DataError
from leapts.wording import quoted

Stamp = str | int
_END = np.datetime64("9999-12-31")  # the last year that ISO 8601 spells without a sign
_AS_ISO = "write it as 2024-01-31 or 2024-01-31T13:00:00"


def future_texts(last: Stamp, fitted: Panel, h: int) -> list[Stamp]:
    """The `h` stamps after the last one of a history.

    Args:
        last: A time stamp in ISO 8601, or a step number, as the data of the fit have it.
        fitted: The data of the fit, whose frequency, zone and kind of stamps it goes by.
        h: The horizon.

    Raises:
        DataError: When it is no such stamp, or does not lie on the frequency.
    """
    dates = fitted.first.dtype.kind == "M"
    if isinstance(last, str) != dates:
        wanted = f"a time stamp; {_AS_ISO}" if dates else "a step number; give a whole number"
        raise DataError(f"the last stamp is {quoted(last)}, and the model was fitted on {wanted}")
    return list(_future(last, fitted.freq, fitted.zone, fitted.style.has_dates, h))


@lru_cache(maxsize=1024)
def _future(last: Stamp, freq: str | int, zone: str | None, days: bool, h: int) -> tuple[Stamp, ...]:
    if isinstance(last, int):
        if abs(last) > 2**53:
            raise DataError(f"the last stamp is {last}, beyond the whole numbers JSON can tell apart; count from less")
        return tuple(future_stamps(np.array([last]), freq, h)[0].tolist())
    try:
        stamps = future_stamps(_parsed(last, zone), freq, h, zone)[0]
        if (stamps >= _END).any():
            raise OverflowError
        return _texts(stamps, zone, days)
    except (OverflowError, pd.errors.OutOfBoundsDatetime):
        raise DataError(f"{h} steps after {quoted(last)} the calendar ends; give an earlier stamp") from None


def _parsed(last: str, zone: str | None) -> Stamps:
    try:
        stamp = datetime.fromisoformat(last)
    except ValueError:
        raise DataError(f"the last stamp is {quoted(last)}; {_AS_ISO}") from None
    if stamp.tzinfo is None:
        return from_wall(np.array([stamp], dtype="datetime64[us]"), zone)
    if zone is None:
        raise DataError(f"the last stamp is {quoted(last)}, and the model knows no time zones; leave the zone out")
    return np.array([stamp.astimezone(UTC).replace(tzinfo=None)], dtype="datetime64[us]")


def _texts(stamps: Stamps, zone: str | None, days: bool) -> tuple[str, ...]:
    if zone is not None:
        local = pd.DatetimeIndex(stamps).tz_localize("UTC").tz_convert(zone)
        return tuple(stamp.isoformat() for stamp in local)
    if days:
        return tuple(np.datetime_as_string(stamps, unit="D").tolist())
    whole = bool((stamps == stamps.astype("datetime64[s]")).all())
    return tuple(np.datetime_as_string(stamps, unit="s" if whole else "us").tolist())
