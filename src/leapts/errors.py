"""Every error LeapTS raises on purpose, under one root, so that a caller can catch them all."""


class LeapTSError(Exception):
    """Root of all errors raised on purpose. Its message names what is wrong and the cure."""


class ConfigError(LeapTSError, ValueError):
    """An option has a value that cannot work."""


class ShapeError(LeapTSError, ValueError):
    """A tensor does not have the shape the model was built for."""


class DataError(LeapTSError, ValueError):
    """The data, or the way they were described, cannot be forecast from as they are."""


class DownloadError(LeapTSError, OSError):
    """A file could not be downloaded, or is not the file it should be."""


class TrainingError(LeapTSError, ArithmeticError):
    """Training went wrong. The model keeps its last good weights, and `report` says how far it came."""

    def __init__(self, message: str, report: object = None) -> None:
        super().__init__(message)
        self.report = report


class WorkerLostError(LeapTSError, ConnectionError):
    """One of the processes that trained together is gone. What the last checkpoint holds is kept."""


class ModelFileError(LeapTSError, OSError):
    """A model folder or checkpoint cannot be read, or is not what it should be."""


class FolderInUseError(LeapTSError, OSError):
    """Another fit is writing to the same folder."""


class NotFittedError(LeapTSError, RuntimeError):
    """The forecaster was asked for something it can only do once fitted."""
