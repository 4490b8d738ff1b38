"""The facade: fit, predict, cross_validation, update, calibrate, save, load."""

from leapts.forecasting.estimator import LeapTS

__all__ = ["LeapTS"]
