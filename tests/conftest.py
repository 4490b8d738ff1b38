"""For every test: check the shapes in signatures, and audit forbidden operations. Neither costs users anything."""

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
    """Fail a test if the library did a forbidden operation during it or its fixtures."""
    yield
    audit.require_nothing_heard()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish() -> None:
    """Save coverage now, since a worker process that is slow to end is killed."""
    if "coverage" in sys.modules and (measuring := sys.modules["coverage"].Coverage.current()) is not None:
        measuring.save()


@pytest.fixture(scope="module")
def unchecked_shapes() -> Iterator[None]:
    """Turn shape checks off while a graph is exported, because its sizes are symbols."""
    config.update("jaxtyping_disable", True)
    yield
    config.update("jaxtyping_disable", False)


@pytest.fixture
def doubles() -> Iterator[None]:
    """Make float64 the default type of torch."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)
