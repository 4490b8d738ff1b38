"""Check the names of time zones; `frequency` computes with them."""

import re
import zoneinfo
from importlib.util import find_spec
from pathlib import Path

_OFFSET = re.compile(r"(UTC)?[+-]\d\d:\d\d")
_NAME = re.compile(r"[A-Za-z0-9_+-]{1,32}(/[A-Za-z0-9_+-]{1,32}){0,3}")


def is_timezone(name: str) -> bool:
    """Whether this computer knows the time zone, without importing or opening anything.

    Libraries that look up time zones also accept file paths and search packages for unknown names, which is unsafe for
    names from an untrusted file.
    """
    if name == "UTC" or _OFFSET.fullmatch(name):
        return True
    return _NAME.fullmatch(name) is not None and any((folder / name).is_file() for folder in _folders())


def _folders() -> list[Path]:
    """List the folders of the time zone database: the system's, and that of the package tzdata."""
    package = find_spec("tzdata")
    inside = package.submodule_search_locations if package is not None else None
    return [*map(Path, zoneinfo.TZPATH), *(Path(place) / "zoneinfo" for place in inside or ())]
