"""How a frame is to be read and what may be mended: frozen, and checked once."""

import math
from dataclasses import dataclass
from typing import Literal, get_args

from leapts.data.filling import Fill
from leapts.errors import ConfigError
from leapts.wording import quoted

Layout = Literal["auto", "long", "wide"]
Duplicates = Literal["error", "first", "last"]
Time = Literal["calendar", "row"]


@dataclass(frozen=True, kw_only=True)
class PanelOptions:
    """How to read a frame.

    Attributes:
        id_col: The column of series names, in a long frame.
        time_col: The column of time stamps.
        target_col: The column of values, in a long frame.
        layout: `long` (one row for each series and stamp), `wide` (one column for each series) or `auto`:
            wide when there is neither an id nor a target column.
        freq: The frequency; found from the stamps if left out.
        is_fitted: Whether the frequency is a fitted model's own, which data are brought to and nobody can pass.
        fill: What to do with gaps, NaN and infinities: nothing (they are errors), `interpolate`, `ffill`, or
            a number.
        duplicates: What to do with rows that repeat a series and stamp.
        time: `calendar` takes the stamps as they are; `row` ignores them and numbers the rows of each series
            1, 2, 3 ... in the order they come, for data whose calendar is irregular by nature.
        most_values: So many values there may be once gaps are filled; as many as the data bear, if left out.
    """

    id_col: str = "unique_id"
    time_col: str = "ds"
    target_col: str = "y"
    layout: Layout = "auto"
    freq: str | int | None = None
    is_fitted: bool = False
    fill: Fill | None = None
    duplicates: Duplicates = "error"
    time: Time = "calendar"
    most_values: int | None = None

    @property
    def asked(self) -> str:
        """How to ask for another option, for an error that proposes one: a fitted model reads as it was fitted."""
        return "fit the model with" if self.is_fitted else "pass"

    def __post_init__(self) -> None:
        for name, allowed in (("layout", Layout), ("duplicates", Duplicates), ("time", Time)):
            _require_choice(name, getattr(self, name), get_args(allowed))
        if isinstance(self.fill, str):
            _require_choice("fill", self.fill, ("interpolate", "ffill", "a number"))
        elif self.fill is not None and not math.isfinite(self.fill):
            raise ConfigError(f"fill={self.fill} would leave the values missing; pass a finite number")
        if len({self.id_col, self.time_col, self.target_col}) < 3:
            raise ConfigError(
                f"id_col={quoted(self.id_col)}, time_col={quoted(self.time_col)} and "
                f"target_col={quoted(self.target_col)} must be three different columns"
            )


def _require_choice(name: str, value: object, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ConfigError(f"{name}={quoted(value)} is not one of {', '.join(allowed)}")
