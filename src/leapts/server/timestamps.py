"""Timestamps of a forecast as text, from the last timestamp of the history."""

from datetime import UTC, datetime
from functools import lru_cache

import numpy as np
import pandas as pd

from leapts.data.frequency import Timestamps, future_timestamps
from leapts.data.panel import Panel
from leapts.data.timezone import from_wall
from leapts.errors import DataError
from leapts.messages import quoted

Timestamp = str | int
_END = np.datetime64("9999-12-31")  # the last year that ISO 8601 spells without a sign
_AS_ISO = "write it as 2024-01-31 or 2024-01-31T13:00:00"


def future_texts(last: Timestamp, fitted: Panel, h: int) -> list[Timestamp]:
    """List the `h` timestamps after the last one of a history: a timestamp in ISO 8601, or a step number.

    Raises:
        DataError: If it is not a timestamp of the kind of the training data.
    """
    dates = fitted.first.dtype.kind == "M"
    if isinstance(last, str) != dates:
        wanted = f"a timestamp; {_AS_ISO}" if dates else "a step number; give a whole number"
        raise DataError(f"the last timestamp is {quoted(last)}, and the model was fitted on {wanted}")
    return list(_future(last, fitted.freq, fitted.timezone, fitted.style.has_dates, h))


@lru_cache(maxsize=1024)
def _future(last: Timestamp, freq: str | int, timezone: str | None, days: bool, h: int) -> tuple[Timestamp, ...]:
    if isinstance(last, int):
        return tuple(future_timestamps(np.array([last]), freq, h)[0].tolist())
    try:
        timestamps = future_timestamps(_parsed(last, timezone), freq, h, timezone)[0]
        if (timestamps >= _END).any():
            raise OverflowError
        return _texts(timestamps, timezone, days)
    except (OverflowError, pd.errors.OutOfBoundsDatetime):
        raise DataError(f"{h} steps after {quoted(last)} the calendar ends; give an earlier timestamp") from None


def _parsed(last: str, timezone: str | None) -> Timestamps:
    try:
        timestamp = datetime.fromisoformat(last)
    except ValueError:
        raise DataError(f"the last timestamp is {quoted(last)}; {_AS_ISO}") from None
    if timestamp.tzinfo is None:
        return from_wall(np.array([timestamp], dtype="datetime64[us]"), timezone)
    if timezone is None:
        raise DataError(
            f"the last timestamp is {quoted(last)}, and the training data have no timezone; leave the timezone out"
        )
    return np.array([timestamp.astimezone(UTC).replace(tzinfo=None)], dtype="datetime64[us]")


def _texts(timestamps: Timestamps, timezone: str | None, days: bool) -> tuple[str, ...]:
    if timezone is not None:
        local = pd.DatetimeIndex(timestamps).tz_localize("UTC").tz_convert(timezone)
        return tuple(timestamp.isoformat() for timestamp in local)
    if days:
        return tuple(np.datetime_as_string(timestamps, unit="D").tolist())
    whole = bool((timestamps == timestamps.astype("datetime64[s]")).all())
    return tuple(np.datetime_as_string(timestamps, unit="s" if whole else "us").tolist())
