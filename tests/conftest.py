"""Turns on the shape checks written in signatures, for every test; users never pay for them."""

import os
from collections.abc import Iterator

import pytest
import torch
from hypothesis import HealthCheck, settings
from jaxtyping import config, install_import_hook

# Programs the tests start compute with one thread too: several side by side would wait for each other.
os.environ["OMP_NUM_THREADS"] = "1"

install_import_hook(["leapts.core", "leapts.intervals", "leapts.baselines"], "beartype.beartype")

# Time limits on single examples only measure the machine.
settings.register_profile(
    "leapts", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow], max_examples=50
)
settings.load_profile("leapts")
torch.set_num_threads(1)


@pytest.fixture(scope="module")
def unchecked_shapes() -> Iterator[None]:
    """No shape checks while a graph is exported: its sizes are symbols, which the checks take for mistakes."""
    config.update("jaxtyping_disable", True)
    yield
    config.update("jaxtyping_disable", False)
