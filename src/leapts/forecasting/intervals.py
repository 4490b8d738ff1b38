"""Prediction intervals and quantiles a user can ask for: their levels, and the columns they get."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from numbers import Real
from typing import Any, Literal

import numpy as np

from leapts.errors import ConfigError

Level = int | float

_DIGITS = 11  # of a quantile


@dataclass(frozen=True)
class Bound:
    """One side of an interval, and its column."""

    column: str  # LeapTS-lo-80
    level: Level  # in percent; 0 for the point forecast itself
    side: Literal[-1, 1]  # -1 for the lower bound, 1 for the upper one

    @property
    def quantile(self) -> float:
        """The level of the quantile that this bound is."""
        return round(0.5 + self.side * self.level / 200, _DIGITS + 2)


def interval_bounds(levels: Sequence[Level], model: str = "LeapTS") -> tuple[Bound, ...]:
    """Bounds of intervals, from the lowest to the highest: `lo-95`, `lo-80`, `hi-80`, `hi-95`.

    Raises:
        ConfigError: When a level is not from 1 to below 100 percent, or is given twice.
    """
    rising = sorted(_checked(levels))
    if rising and rising[0] < 1:  # nobody asks for 0.8 %, but some tools take 0.8 for 80 %
        percent = _level_text(round(100 * rising[0], _DIGITS))
        raise ConfigError(
            f"level {rising[0]} is less than one percent; levels are percentages: for {percent} % say {percent}"
        )
    lower = [Bound(f"{model}-lo-{_level_text(level)}", level, -1) for level in reversed(rising)]
    upper = [Bound(f"{model}-hi-{_level_text(level)}", level, 1) for level in rising]
    return (*lower, *upper)


def quantile_bounds(quantiles: Sequence[float], model: str = "LeapTS") -> tuple[Bound, ...]:
    """Bounds that are these quantiles, in the order given: 0.1 is `lo-80`, 0.9 is `hi-80`, 0.5 is `median`.

    Raises:
        ConfigError: When a quantile is not between 0 and 1, or is given twice.
    """
    for quantile in quantiles:
        if not _is_number(quantile) or not 0 < quantile < 1:
            raise ConfigError(f"quantile {quantile!r} is not between 0 and 1")
    # Computed numbers have rounding errors: numpy.linspace(0.1, 0.9, 9)[2] is 0.30000000000000004.
    exact = [round(float(quantile), _DIGITS) for quantile in quantiles]
    _refuse_repeats("quantile", exact)
    found: list[Bound] = []
    for quantile in exact:
        level = _plain(float(abs(200 * Fraction(str(quantile)) - 100)))
        if level == 0:
            found.append(Bound(f"{model}-median", 0, 1))
        else:
            low = quantile < 0.5
            name = f"{model}-{'lo' if low else 'hi'}-{_level_text(level)}"
            found.append(Bound(name, level, -1 if low else 1))
    return tuple(found)


def requested_bounds(
    level: Sequence[Level] | None, quantiles: Sequence[float] | None, model: str = "LeapTS"
) -> tuple[Bound, ...]:
    """Bounds of the intervals or of the quantiles a user asked for; none of either: no bounds.

    Raises:
        ConfigError: When both are given, or a value is impossible.
    """
    if level is not None and quantiles is not None:
        raise ConfigError("give level or quantiles, not both")
    if quantiles is not None:
        return quantile_bounds(quantiles, model)
    return interval_bounds(level or (), model)


def as_list(name: str, values: Any) -> list[Level] | None:
    """Convert levels or quantiles, such as a numpy array, to a list of Python's numbers."""
    if values is None:
        return None
    if isinstance(values, Real):
        raise ConfigError(f"{name}={values} is a single number; give a list: {name}=[{values}]")
    # By way of its text, a number of single precision is the one that was written: 0.1, not 0.10000000149011612.
    plain = [float(str(one)) if isinstance(one, np.floating) else one for one in values]
    return [one.item() if isinstance(one, np.generic) else one for one in plain]


def _checked(levels: Sequence[Level]) -> list[Level]:
    for level in levels:
        if not _is_number(level) or not 0 < level < 100:
            raise ConfigError(f"level {level!r} is not between 0 and 100; levels are percentages such as 80 or 99.5")
    plain = [_plain(level) for level in levels]
    _refuse_repeats("level", plain)
    return plain


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _refuse_repeats(what: str, values: Sequence[Level]) -> None:
    repeated = [value for value in dict.fromkeys(values) if list(values).count(value) > 1]
    if repeated:
        raise ConfigError(f"{what} {_level_text(repeated[0])} is given twice; give each once")


def _plain(level: Level) -> Level:
    """Convert whole levels to integers, and numpy's numbers to Python's."""
    return int(level) if float(level).is_integer() else float(level)


def _level_text(level: Level) -> str:
    return str(_plain(level))
