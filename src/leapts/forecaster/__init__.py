"""The facade: fit, predict, cross_validation, update, calibrate, save, load."""

from leapts.forecaster.facade import LeapTS

__all__ = ["LeapTS"]
