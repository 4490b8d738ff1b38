"""placeholder."""

from pathlib import Path


def write(folder: Path, out: Path) -> None:
    """To come."""
