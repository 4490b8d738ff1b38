"""Hyperparameter tuning: Optuna proposes options, `LeapTS` fits them, validation windows decide."""

from leapts.integrations.tuning.engine import Candidate, Engine, LocalEngine, Outcome, fit_once
from leapts.integrations.tuning.search import Trial, Tuned, tune
from leapts.renamed import renamed_attribute

__all__ = ["Candidate", "Engine", "LocalEngine", "Outcome", "Trial", "Tuned", "fit_once", "tune"]
__getattr__ = renamed_attribute(__name__, {"FitHere": "LocalEngine"})
