"""Lists what LeapTS needs, and under which licences, from what the installed packages say of themselves.

python tools/licences.py
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

TARGET = Path(__file__).parents[1] / "docs" / "licences.md"
EXTRAS = ("dev", "docs")

# Licences that ask for no more than to be kept with copies.
PERMISSIVE = frozenset(
    {
        "0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "CC0-1.0", "HPND", "ISC", "MIT", "MIT-0",
        "MIT-CMU", "PSF-2.0", "Python-2.0", "Unlicense", "Zlib", "bzip2-1.0.6",
    }
)  # fmt: skip
# Of tools only: it asks that changes to its own files stay open, and nothing of those who merely run them.
FOR_TOOLS = PERMISSIVE | {"MPL-2.0"}
RUNNING, DEVELOPING = "LeapTS itself", "development"
_CLASSIFIERS = {
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD-3-Clause",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}
_SPELLINGS = {
    "apache 2.0": "Apache-2.0",
    "apache license 2.0": "Apache-2.0",
    "apache license, version 2.0": "Apache-2.0",
    "apache software license 2.0": "Apache-2.0",
    "3-clause bsd license": "BSD-3-Clause",
    "bsd": "BSD-3-Clause",
    "new bsd": "BSD-3-Clause",
    "psf": "PSF-2.0",
    "mit license": "MIT",
}


@dataclass(frozen=True, order=True)
class Package:
    """One package, what it may be used under, and why it is there."""

    name: str
    version: str
    licence: str
    needed_by: str


def main() -> None:
    """Write the page."""
    TARGET.write_text(page(packages()))


def packages() -> list[Package]:
    """What LeapTS needs to run, then what it is developed with; what is not installed is left out."""
    running = dict.fromkeys(needed("leapts", ()), RUNNING)
    developing = dict.fromkeys(needed("leapts", EXTRAS), DEVELOPING)
    found = {**developing, **running}
    del found["leapts"]
    return sorted(
        Package(name, distribution(name).version, licence_of(distribution(name)), use) for name, use in found.items()
    )


def needed(name: str, extras: tuple[str, ...]) -> Iterator[str]:
    """The package and all it needs, in turn, as far as they are installed."""
    waiting, seen = [(name, extras)], set()
    while waiting:
        current = waiting.pop()
        if current in seen:
            continue
        seen.add(current)
        try:
            lines = distribution(current[0]).requires or []
        except PackageNotFoundError:
            continue
        yield str(canonicalize_name(current[0]))
        for requirement in map(Requirement, lines):
            wanted = requirement.marker is None or any(
                requirement.marker.evaluate({"extra": extra}) for extra in ("", *current[1])
            )
            if wanted:
                waiting.append((requirement.name, tuple(sorted(requirement.extras))))


def licence_of(package: Distribution) -> str:
    """What a package says its licence is, as an SPDX expression where it can be told; else as it says."""
    said = package.metadata.json
    if expression := said.get("license_expression"):
        return str(expression)
    classifiers = [str(line).split(" :: ")[-1] for line in said.get("classifier", [])]
    known = sorted({_CLASSIFIERS[name] for name in classifiers if name in _CLASSIFIERS})
    if known:
        return " AND ".join(known)
    first = str(said.get("license") or "unknown").strip().splitlines()[0]
    return _SPELLINGS.get(first.lower(), first)


def is_accepted(package: Package) -> bool:
    """Whether the licence is permissive, or good enough for a tool where the package is one."""
    accepted = PERMISSIVE if package.needed_by == RUNNING else FOR_TOOLS
    # In brackets, a choice may belong to a part alone; then every licence that is named has to do.
    choices = [package.licence] if "(" in package.licence else re.split(r"\s+OR\s+", package.licence)
    return any(_parts(choice) <= accepted for choice in choices)


def _parts(choice: str) -> set[str]:
    """The licences that hold together; an exception only loosens the licence it is added to."""
    return {re.split(r"\s+WITH\s+", part)[0] for part in re.split(r"\s+(?:AND|OR)\s+", re.sub(r"[()]", "", choice))}


def page(found: list[Package]) -> str:
    """The list as a page."""
    lines = [
        "# Licences",
        "",
        "LeapTS is under Apache-2.0. Made by `tools/licences.py` from what the installed packages say of themselves.",
    ]
    for use in ("LeapTS itself", DEVELOPING):
        rows = [f"| {one.name} | {one.version} | {one.licence} |" for one in found if one.needed_by == use]
        lines += ["", f"## Needed by {use}", "", "| package | version | licence |", "|---|---|---|", *rows]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
