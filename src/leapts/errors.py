"""Exceptions of LeapTS, with a common base class."""


class LeapTSError(Exception):
    """Base class. The message says what is wrong, where, and what to do."""


class ConfigError(LeapTSError, ValueError):
    """An option has an impossible value."""


class ShapeError(LeapTSError, ValueError):
    """A tensor does not have the shape the model was built for."""


class DataError(LeapTSError, ValueError):
    """The data, or the options to read them, are invalid."""


class DownloadError(LeapTSError, OSError):
    """A file could not be downloaded, or has the wrong checksum."""


class TrainingError(LeapTSError, ArithmeticError):
    """Training failed. The model keeps its best weights; `report` has the steps until then."""

    def __init__(self, message: str, report: object = None) -> None:
        super().__init__(message)
        self.report = report


class WorkerLostError(LeapTSError, ConnectionError):
    """A process of a distributed training stopped. The last checkpoint is kept."""


class ModelFileError(LeapTSError, OSError):
    """A model folder or checkpoint cannot be read, or is invalid."""


class FolderInUseError(LeapTSError, OSError):
    """Another process is writing to the same folder."""


class NotFittedError(LeapTSError, RuntimeError):
    """A method needs a fitted model."""
