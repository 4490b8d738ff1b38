"""The data of the published benchmarks, for tests that need them."""

import os
from pathlib import Path

import pytest


def folder_with(files: list[str]) -> Path:
    """The data folder; skips the test where one of the files is not in it."""
    folder = os.environ.get("LEAPTS_DATA")
    if not folder:
        pytest.skip("LEAPTS_DATA is not set: the benchmark's data are needed")
    absent = [file for file in files if not (Path(folder) / file).exists()]
    if absent:
        pytest.skip(f"not in the data folder: {', '.join(absent)}")
    return Path(folder)
