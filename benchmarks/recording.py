"""Results as JSON lines, each with what is needed to make it again."""

import json
import platform
import subprocess
from pathlib import Path
from typing import Any

import torch


def append(path: Path, figures: dict[str, Any]) -> None:
    """Add one line: the figures, the commit they were measured at, and the versions."""
    commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
    versions = {"python": platform.python_version(), "torch": torch.__version__}
    with path.open("a") as file:
        file.write(json.dumps({"commit": commit, "versions": versions, **figures}) + "\n")
