"""Standardising each series by the mean and deviation of its training part."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Float32, Float64, Int64
from torch import Tensor

from leapts.data.panel import Panel, row_by_row
from leapts.errors import DataError
from leapts.messages import quoted

FLAT = 1e-12  # a deviation below this share of the mean is rounding noise: the series is constant


@dataclass(frozen=True, eq=False)
class Scaler:
    """Each series' mean and population deviation, in float64; a constant series has deviation 1.

    Plain tensors, to be saved as they are.
    """

    mean: Float64[Tensor, " series"]
    std: Float64[Tensor, " series"]

    @property
    def constant(self) -> Bool[Tensor, " series"]:
        """Which series have no deviation to count in."""
        return self.std == 1

    @classmethod
    def fit(cls, panel: Panel) -> "Scaler":
        """Measures every series of the training part.

        Raises:
            DataError: When a series has no value to measure.
        """
        lengths = panel.lengths
        if not bool((lengths > 0).all()):
            name = panel.series[int(lengths.argmin())]
            raise DataError(f"series {quoted(name)} has no value in the training part; train on more of it")
        mean = _segment_mean(panel.values, panel.offsets)
        centred = panel.values - row_by_row(mean, lengths)
        # Sums of many values drift; what the mean is off by, measured around it, is known to the last digit.
        drift = _segment_mean(centred, panel.offsets)
        mean += drift
        centred -= row_by_row(drift, lengths)
        # Squares of tiny values would vanish. Brought near one by a power of two nothing does, and no bit changes.
        unit = _power_of_two_above(torch.segment_reduce(centred.abs(), "max", offsets=panel.offsets))
        centred.div_(row_by_row(unit, lengths))
        deviation = _segment_mean(centred.square_(), panel.offsets).sqrt() * unit
        constant = deviation <= FLAT * mean.abs()
        # A deviation of 1 is the mark of constant series. Whose is just that, as of what was standardised before, has
        # the next number.
        own = torch.where(deviation == 1, math.nextafter(1.0, 2.0), deviation)
        return cls(mean, torch.where(constant, 1.0, own))

    def where_constant(self, other: "Scaler") -> "Scaler":
        """The same, with another's measure of the series that had been constant."""
        mean = torch.where(self.constant, other.mean, self.mean)
        return Scaler(mean, torch.where(self.constant, other.std, self.std))

    def from_last_values(self, panel: Panel) -> "Scaler":
        """The same deviations, counted from each series' last value: for windows whose level does not matter.

        A level far from the fitted mean, in deviations, would leave single precision no digits for what happens there.
        """
        return Scaler(panel.values[panel.offsets[1:] - 1], self.std)

    def from_own_means(self, panel: Panel) -> "Scaler":
        """The same deviations, counted from the mean of each series of a panel, for the same reason."""
        return Scaler(_segment_mean(panel.values, panel.offsets), self.std)

    def transform(self, panel: Panel) -> Float32[Tensor, " rows"]:
        """The panel's values standardised, in float32; centred in float64 first, so that nothing is lost."""
        lengths = panel.lengths
        centred = panel.values - row_by_row(self.mean, lengths)
        return centred.div_(row_by_row(self.std, lengths)).float()

    def inverse(self, values: Float[Tensor, "series ..."]) -> Float64[Tensor, "series ..."]:
        """Standardised values back in their units, one line for each series."""
        shape = (-1,) + (1,) * (values.dim() - 1)
        return values.double() * self.std.view(shape) + self.mean.view(shape)


def _segment_mean(values: Float64[Tensor, " rows"], offsets: Int64[Tensor, " offsets"]) -> Float64[Tensor, " series"]:
    return torch.segment_reduce(values, "mean", offsets=offsets)


def _power_of_two_above(values: Float64[Tensor, " series"]) -> Float64[Tensor, " series"]:
    """The next power of two; of zero, and where there is none that a number can be divided by, 1."""
    exponent = torch.frexp(values).exponent.clamp(min=-1000)
    return torch.ldexp(torch.ones_like(values), torch.where(values > 0, exponent, 0))
