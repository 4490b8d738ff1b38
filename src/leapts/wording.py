"""How error messages quote what they found, so that every one of them stays short and safe to print."""

import difflib
from collections.abc import Iterable

import numpy as np

LONGEST_QUOTE = 40
LONGEST_LIST = 8


def quoted(value: object) -> str:
    """The value as Python would write it: control characters escaped, and cut when long."""
    if isinstance(value, np.generic):
        value = value.item()
    text = repr(value)
    return text if len(text) <= LONGEST_QUOTE else f"{text[: LONGEST_QUOTE - 3]}...{text[-1]}"


def listed(names: Iterable[object]) -> str:
    """Names in a row, cut after a few: `'a', 'b' and 3 more`."""
    names = list(names)
    shown = ", ".join(quoted(name) for name in names[:LONGEST_LIST])
    return shown if len(names) <= LONGEST_LIST else f"{shown} and {len(names) - LONGEST_LIST} more"


def nearest(name: str, names: Iterable[str]) -> str | None:
    """The name most like the one asked for, if any comes near; case does not count."""
    by_folded = {candidate.casefold(): candidate for candidate in names}
    close = difflib.get_close_matches(name.casefold(), by_folded, n=1, cutoff=0.6)
    return by_folded[close[0]] if close else None


def counted(number: int, noun: str) -> str:
    """`1 row`, `1,204 rows`, `3 series`."""
    plural = noun if number == 1 or noun.endswith("s") else f"{noun}s"
    return f"{number:,} {plural}"


def stamp_text(stamp: object, zone: str | None = None) -> str:
    """A time stamp without the parts that are zero: `2024-01-05`, `2024-01-05 13:00`, or a step number.

    Args:
        stamp: A numpy datetime64 (in UTC when there is a zone) or an integer step.
        zone: The time zone to show it in.
    """
    if not isinstance(stamp, np.datetime64):
        return str(stamp)
    if zone is not None:
        import pandas as pd

        return pd.Timestamp(stamp).tz_localize("UTC").tz_convert(zone).isoformat(sep=" ")
    text = np.datetime_as_string(stamp.astype("datetime64[us]")).replace("T", " ")
    return text.removesuffix(".000000").removesuffix(":00").removesuffix(" 00:00")


def printable(text: object) -> str:
    r"""The text on one line, with whatever could move a cursor, hide or reverse text escaped, such as `\x1b`."""
    text = str(text)
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)
