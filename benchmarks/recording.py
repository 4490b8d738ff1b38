"""Figures of the scripts in this folder as JSON lines, each with what is needed to make it again."""

from pathlib import Path
from typing import Any

from leapts_bench import results


def append(path: Path, figures: dict[str, Any]) -> None:
    """Add one line: the figures, the commit they were measured at, and the versions."""
    results.append(path, {**results.provenance(), **figures})
