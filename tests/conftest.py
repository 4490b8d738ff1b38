"""For every test: the shape checks written in signatures, and an ear for what the library may not do.

Users pay for neither.
"""

import os
import sys
from collections.abc import Iterator

import pytest
import torch
from hypothesis import HealthCheck, settings
from jaxtyping import config, install_import_hook

from tests import audit

# Programs the tests start compute with one thread too: several side by side would wait for each other.
os.environ["OMP_NUM_THREADS"] = "1"

install_import_hook(
    ["leapts.model", "leapts.forecasting.intervals", "leapts.forecasting.baselines"], "beartype.beartype"
)

# Time limits on single examples only measure the machine.
settings.register_profile(
    "leapts", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow], max_examples=50
)
settings.load_profile("leapts")
torch.set_num_threads(1)

audit.install()


@pytest.fixture(autouse=True)
def _audited() -> Iterator[None]:
    """Fails the test during which, or for whose fixtures, the library did what it may not."""
    yield
    audit.require_nothing_heard()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish() -> None:
    """What was measured is kept now: a process of several that is slow to end is ended, and loses it."""
    if "coverage" in sys.modules and (measuring := sys.modules["coverage"].Coverage.current()) is not None:
        measuring.save()


@pytest.fixture(scope="module")
def unchecked_shapes() -> Iterator[None]:
    """No shape checks while a graph is exported: its sizes are symbols, which the checks take for mistakes."""
    config.update("jaxtyping_disable", True)
    yield
    config.update("jaxtyping_disable", False)


@pytest.fixture
def doubles() -> Iterator[None]:
    """A program whose numbers are double by default."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)
