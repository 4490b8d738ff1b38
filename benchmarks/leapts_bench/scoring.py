"""Scores over all windows, of scaled values and in the units of the data."""

from dataclasses import asdict, dataclass
from typing import NamedTuple, Protocol

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from leapts.data.scaling import Scaler
from leapts.training.loop import WindowSource

# Rows (univariate windows) per batch.
_ROWS_AT_A_TIME = 8192

# Published code often scores only full batches of this size, and drops the remaining windows.
_BATCH = 32


class Predicted(NamedTuple):
    """A forecast of scaled values, with the number of leaps of each row if the model has leaps."""

    values: Float[Tensor, "batch variates horizon"]
    leaps: Float[Tensor, "batch variates"] | None


class Predictor(Protocol):
    """Anything that maps scaled histories to scaled forecasts."""

    def predict(self, history: Float[Tensor, "batch variates lookback"]) -> Predicted:
        """Forecast each window."""


@dataclass(frozen=True)
class Scores:
    """Errors over all windows, series and steps, with equal weights."""

    windows: int
    mse: float
    mae: float
    mse_original: float  # in the units of the data
    mae_original: float
    mse_whole_batches: float | None  # without the last incomplete batch of 32 windows, on scaled values
    mae_whole_batches: float | None
    leaps: float | None  # on average over windows and variates

    def to_dict(self) -> dict[str, float | int | None]:
        """Return plain values."""
        return asdict(self)


def score(predictor: Predictor, windows: WindowSource, scaler: Scaler) -> Scores:
    """Score every window."""
    deviation = scaler.std
    squared, absolute, leaps = [], [], []
    for index in torch.arange(len(windows)).split(max(1, _ROWS_AT_A_TIME // len(deviation))):
        batch = windows.gather(index)
        predicted = predictor.predict(batch.history)
        error = (predicted.values - batch.target).double()
        squared.append(error.square().mean(2))
        absolute.append(error.abs().mean(2))
        if predicted.leaps is not None:
            leaps.append(predicted.leaps.double())
    return _summed(torch.cat(squared), torch.cat(absolute), deviation, torch.cat(leaps) if leaps else None)


def _summed(
    squared: Float64[Tensor, "windows variates"],
    absolute: Float64[Tensor, "windows variates"],
    deviation: Float64[Tensor, " variates"],
    leaps: Float64[Tensor, "windows variates"] | None,
) -> Scores:
    """Compute scores from the mean error of each window and series; a scale factor can be taken out of a mean."""
    whole = len(squared) // _BATCH * _BATCH
    return Scores(
        windows=len(squared),
        mse=float(squared.mean()),
        mae=float(absolute.mean()),
        mse_original=float((squared * deviation.square()).mean()),
        mae_original=float((absolute * deviation).mean()),
        mse_whole_batches=float(squared[:whole].mean()) if whole else None,
        mae_whole_batches=float(absolute[:whole].mean()) if whole else None,
        leaps=None if leaps is None else float(leaps.mean()),
    )
