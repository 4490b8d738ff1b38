"""Turns on the shape checks written in signatures, for every test; users never pay for them."""

import torch
from hypothesis import HealthCheck, settings
from jaxtyping import install_import_hook

install_import_hook(["leapts.core", "leapts.intervals", "leapts.baselines"], "beartype.beartype")

# Time limits on single examples only measure the machine.
settings.register_profile(
    "leapts", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow], max_examples=50
)
settings.load_profile("leapts")
torch.set_num_threads(1)
