"""A search for better options, judged on the validation windows: Optuna proposes, `LeapTS` fits, the best one wins."""

from leapts.tuning.fits import Candidate, Engine, FitHere, Outcome, fit_once
from leapts.tuning.search import Trial, Tuned, tune

__all__ = ["Candidate", "Engine", "FitHere", "Outcome", "Trial", "Tuned", "fit_once", "tune"]
