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

if TYPE_CHECKING:
    from leapts.forecaster import LeapTS

__version__ = version("leapts")
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
]


def __getattr__(name: str) -> Any:
    if name == "LeapTS":
        from leapts.forecaster import LeapTS

        return LeapTS
    raise AttributeError(f"module 'leapts' has no attribute {name!r}")
