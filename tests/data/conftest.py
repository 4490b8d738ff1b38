"""Check shapes and types in the data layer, and make property tests repeatable."""

from hypothesis import HealthCheck, settings
from jaxtyping import install_import_hook

# All but the options, which check themselves and say it more kindly.
SHAPED = (
    "columns",
    "frequency",
    "frames",
    "imputation",
    "timestamps",
    "panel",
    "scaling",
    "splits",
    "windows",
)
install_import_hook([f"leapts.data.{module}" for module in SHAPED], "beartype.beartype")

settings.register_profile(
    "steady",
    deadline=None,
    derandomize=True,
    max_examples=40,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("steady")
