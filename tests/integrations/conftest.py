"""Other people's tools warn about themselves and each other; only warnings raised in our own code are errors here."""

from pathlib import Path

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("ignore", "error:::leapts"))
