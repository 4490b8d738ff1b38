"""Names of time zones, looked up before they are believed."""

import re
import zoneinfo
from importlib.util import find_spec
from pathlib import Path

_OFFSET = re.compile(r"(UTC)?[+-]\d\d:\d\d")
_NAME = re.compile(r"[A-Za-z0-9_+-]{1,32}(/[A-Za-z0-9_+-]{1,32}){0,3}")


def is_zone(name: str) -> bool:
    """Whether this computer knows a time zone of that name, found out without importing or reading anything it names.

    What makes zones of names also takes paths of files, and looks for names it does not know among the modules of a
    package: fine for what a user types, not for what a stranger wrote into a file.
    """
    if name == "UTC" or _OFFSET.fullmatch(name):
        return True
    return _NAME.fullmatch(name) is not None and any((folder / name).is_file() for folder in _folders())


def _folders() -> list[Path]:
    """The system's zones, and those of the package that stands in for them where a system has none."""
    package = find_spec("tzdata")
    inside = package.submodule_search_locations if package is not None else None
    return [*map(Path, zoneinfo.TZPATH), *(Path(place) / "zoneinfo" for place in inside or ())]
