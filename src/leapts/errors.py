"""Every error LeapTS raises on purpose, under one root, so that a caller can catch them all."""


class LeapTSError(Exception):
    """Root of all errors raised on purpose. Its message names what is wrong and the cure."""


class ConfigError(LeapTSError, ValueError):
    """An option has a value that cannot work."""


class ShapeError(LeapTSError, ValueError):
    """A tensor does not have the shape the model was built for."""
