"""LeapTS: forecasting as adaptive multi-horizon scheduling.

`LeapTS` is imported when it is first asked for, so that `import leapts` is quick and does not load torch.
"""

from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from leapts.errors import (
    ConfigError,
    DataError,
    FolderInUseError,
    LeapTSError,
    ModelFileError,
    NotFittedError,
    TrainingError,
    WorkerLostError,
)
from leapts.renamed import install as _install_old_names

if TYPE_CHECKING:
    from leapts.forecasting import LeapTS
    from leapts.model.build import register_scheduler, register_state_cell

__version__ = version("leapts")
_install_old_names()
__all__ = [
    "ConfigError",
    "DataError",
    "FolderInUseError",
    "LeapTS",
    "LeapTSError",
    "ModelFileError",
    "NotFittedError",
    "TrainingError",
    "WorkerLostError",
    "__version__",
    "register_scheduler",
    "register_state_cell",
]


def __getattr__(name: str) -> Any:
    if name == "LeapTS":
        from leapts.forecasting import LeapTS

        return LeapTS
    if name in ("register_scheduler", "register_state_cell"):
        from leapts.model import build

        return getattr(build, name)
    raise AttributeError(f"module 'leapts' has no attribute {name!r}")
