"""Fitting a model to windows: the loop, what it reports, and checkpoints that lose nothing."""

from leapts.training.checkpoint import Checkpoint
from leapts.training.loop import Progress, TrainingStep, WindowSource, clip_gradients, mean_absolute_error, train
from leapts.training.state import TrainingReport
from leapts.training.teaching import TaughtWindows, train_taught
from leapts.training.workers import Alone, ProcessGroup, Workers

__all__ = [
    "Alone",
    "Checkpoint",
    "ProcessGroup",
    "Progress",
    "TaughtWindows",
    "TrainingReport",
    "TrainingStep",
    "WindowSource",
    "Workers",
    "clip_gradients",
    "mean_absolute_error",
    "train",
    "train_taught",
]
