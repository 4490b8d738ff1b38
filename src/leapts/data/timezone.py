"""Convert timestamps between UTC and local time, and check the names of timezones."""

import re
import zoneinfo
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

_OFFSET = re.compile(r"(UTC)?[+-]\d\d:\d\d")
_NAME = re.compile(r"[A-Za-z0-9_+-]{1,32}(/[A-Za-z0-9_+-]{1,32}){0,3}")


def is_timezone(name: str) -> bool:
    """Whether this computer knows the timezone, without importing or opening anything.

    Libraries that look up timezones also accept file paths and search packages for unknown names, which is unsafe for
    names from an untrusted file.
    """
    if name == "UTC" or _OFFSET.fullmatch(name):
        return True
    return _NAME.fullmatch(name) is not None and any((folder / name).is_file() for folder in _folders())


def _folders() -> list[Path]:
    """List the folders of the timezone database: the system's, and that of the package tzdata."""
    package = find_spec("tzdata")
    inside = package.submodule_search_locations if package is not None else None
    return [*map(Path, zoneinfo.TZPATH), *(Path(place) / "zoneinfo" for place in inside or ())]


def to_wall(timestamps: npt.NDArray[Any], timezone: str | None) -> npt.NDArray[Any]:
    """Convert UTC timestamps to local time; without a timezone, return them unchanged."""
    if timezone is None:
        return timestamps
    local = pd.DatetimeIndex(timestamps).tz_localize("UTC").tz_convert(timezone).tz_localize(None)
    return local.as_unit("us").to_numpy()


def from_wall(wall: npt.NDArray[Any], timezone: str | None) -> npt.NDArray[Any]:
    """Convert local times to UTC: a skipped time moves to the end of the gap, a repeated one is the first."""
    if timezone is None:
        return wall
    first_time = np.ones(len(wall), dtype=bool)
    local = pd.DatetimeIndex(wall).tz_localize(timezone, ambiguous=first_time, nonexistent="shift_forward")
    return local.tz_convert("UTC").tz_localize(None).as_unit("us").to_numpy()


def nominal(timestamps: npt.NDArray[Any], timezone: str | None) -> npt.NDArray[Any]:
    """Convert to local time, with midnight for the start of a day whose midnight was skipped."""
    wall = to_wall(timestamps, timezone)
    if timezone is None:
        return wall
    midnight = wall.astype("datetime64[D]").astype(wall.dtype)
    return np.where(from_wall(midnight, timezone) == timestamps, midnight, wall)
