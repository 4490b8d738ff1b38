"""Format values, lists, counts and invalid options for messages: short, and safe to print."""

import difflib
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import ValidationError
    from pydantic_core import ErrorDetails

MAX_QUOTE = 40
MAX_LISTED = 8


def quoted(value: object) -> str:
    """Format a value as Python source, shortened; control characters are escaped."""
    if type(value).__module__ == "numpy" and hasattr(value, "item"):  # without importing numpy, for a fast start
        value = value.item()
    text = repr(value)
    return text if len(text) <= MAX_QUOTE else f"{text[: MAX_QUOTE - 3]}...{text[-1]}"


def listed(names: Iterable[object]) -> str:
    """List names, shortened: `'a', 'b' and 3 more`."""
    names = list(names)
    shown = ", ".join(quoted(name) for name in names[:MAX_LISTED])
    return shown if len(names) <= MAX_LISTED else f"{shown} and {len(names) - MAX_LISTED} more"


def nearest(name: str, names: Iterable[str]) -> str | None:
    """Find the most similar name, ignoring case; None if there is none."""
    by_folded = {candidate.casefold(): candidate for candidate in names}
    close = difflib.get_close_matches(name.casefold(), by_folded, n=1, cutoff=0.6)
    return by_folded[close[0]] if close else None


def counted(number: int, noun: str) -> str:
    """Count things: `1 row`, `1,204 rows`, `3 series`."""
    plural = noun if number == 1 or noun.endswith("s") else f"{noun}s"
    return f"{number:,} {plural}"


def timestamp_text(timestamp: object, timezone: str | None = None) -> str:
    """Format a timestamp without parts that are zero: `2024-01-05`, `2024-01-05 13:00`, or an integer.

    Args:
        timestamp: A numpy datetime64 (in UTC when there is a timezone) or an integer step.
        timezone: The timezone to convert it to.
    """
    import numpy as np

    if not isinstance(timestamp, np.datetime64):
        return str(timestamp)
    if timezone is not None:
        import pandas as pd

        return pd.Timestamp(timestamp).tz_localize("UTC").tz_convert(timezone).isoformat(sep=" ")
    text = np.datetime_as_string(timestamp.astype("datetime64[us]")).replace("T", " ")
    return text.removesuffix(".000000").removesuffix(":00").removesuffix(" 00:00")


def printable(text: object) -> str:
    r"""Escape control and invisible characters, such as `\x1b`, for a terminal."""
    text = str(text)
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)


def explain(error: "ValidationError", known: Collection[str] = ()) -> str:
    """Describe each invalid option in plain words: its name, the value given, and what it must be.

    Args:
        error: Pydantic's error, whose own phrases are not shown.
        known: Names of options, to find the one that was meant by a misspelled name.
    """
    # Each member of a union complains by itself; the first complaint about an option is enough.
    problems = {problem["loc"][:1] or index: problem for index, problem in reversed(list(enumerate(error.errors())))}
    return "; ".join(_explain_one(problem, known) for problem in reversed(problems.values()))


def _explain_one(problem: "ErrorDetails", known: Collection[str]) -> str:
    name, kind = ".".join(str(part) for part in problem["loc"]), problem["type"]
    if kind == "extra_forbidden":
        near = nearest(name, known) if len(problem["loc"]) == 1 else None
        return f"{name}: there is no such option{f'; did you mean {near}?' if near else ''}"
    if kind == "missing":
        return f"{name}: must be given"
    if kind == "value_error":
        message = str(problem["ctx"]["error"])
    elif kind in _MUST_BE:
        message = f"must be {must_be(problem)}"
    else:
        message = "is not a value this option can have"
    return f"{name}={quoted(problem['input'])}: {message}" if name else message


def must_be(problem: "ErrorDetails") -> str:
    """Say in plain words which values an invalid option or field can have."""
    return _MUST_BE.get(problem["type"], "another value").format(**problem.get("ctx", {}))


_WHOLE, _NUMBER, _TRUTH, _TABLE = "a whole number", "a number", "true or false", "a table of options"
# What a value must be, by the type of pydantic's error.
_MUST_BE = {
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float", "int_parsing_size"), _WHOLE),
    **dict.fromkeys(("float_type", "float_parsing"), _NUMBER),
    **dict.fromkeys(("bool_type", "bool_parsing"), _TRUTH),
    **dict.fromkeys(("model_type", "model_attributes_type", "dict_type", "mapping_type", "is_instance_of"), _TABLE),
    **dict.fromkeys(("tuple_type", "list_type"), "a list"),
    "too_long": "a list of at most {max_length} values",
    "too_short": "a list of at least {min_length} values",
    "finite_number": "a finite number",
    **dict.fromkeys(("string_type", "string_unicode"), "text"),
    "string_too_long": "text of at most {max_length} characters",
    "greater_than_equal": "at least {ge:g}",
    "greater_than": "greater than {gt:g}",
    "less_than_equal": "at most {le:g}",
    "less_than": "less than {lt:g}",
    "literal_error": "{expected}",
    "union_tag_invalid": "a table whose {discriminator} is one of {expected_tags}",
    "union_tag_not_found": "a table with {discriminator}",
}
