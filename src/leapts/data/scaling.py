"""Scaling: subtract the mean of each series, divide by its standard deviation."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Float32, Float64, Int64
from torch import Tensor

from leapts.data.panel import Panel, row_by_row
from leapts.errors import DataError
from leapts.messages import quoted

FLAT = 1e-12  # a standard deviation below this share of the mean is rounding noise: the series is constant


@dataclass(frozen=True, eq=False)
class Scaler:
    """Mean and population standard deviation of each series, in float64; 1 for a constant series."""

    mean: Float64[Tensor, " series"]
    std: Float64[Tensor, " series"]

    @property
    def constant(self) -> Bool[Tensor, " series"]:
        """Which series are constant."""
        return self.std == 1

    @classmethod
    def fit(cls, panel: Panel) -> "Scaler":
        """Compute mean and standard deviation of every series.

        Raises:
            DataError: When a series has no value.
        """
        lengths = panel.lengths
        if not bool((lengths > 0).all()):
            name = panel.series[int(lengths.argmin())]
            raise DataError(f"series {quoted(name)} has no value in the training part; train on more of it")
        mean = _segment_mean(panel.values, panel.offsets)
        centred = panel.values - row_by_row(mean, lengths)
        # Sums of many values lose digits; the error of the mean is computed from the centered values.
        drift = _segment_mean(centred, panel.offsets)
        mean += drift
        centred -= row_by_row(drift, lengths)
        # Squares of tiny values would vanish; a power of two brings them near 1 without rounding.
        unit = _power_of_two_above(torch.segment_reduce(centred.abs(), "max", offsets=panel.offsets))
        centred.div_(row_by_row(unit, lengths))
        deviation = _segment_mean(centred.square_(), panel.offsets).sqrt() * unit
        constant = deviation <= FLAT * mean.abs()
        # 1 marks constant series. A standard deviation of exactly 1, as of scaled data, becomes the next number.
        own = torch.where(deviation == 1, math.nextafter(1.0, 2.0), deviation)
        return cls(mean, torch.where(constant, 1.0, own))

    def where_constant(self, other: "Scaler") -> "Scaler":
        """Replace the scaling of constant series by another one."""
        mean = torch.where(self.constant, other.mean, self.mean)
        return Scaler(mean, torch.where(self.constant, other.std, self.std))

    def from_last_values(self, panel: Panel) -> "Scaler":
        """Subtract the last value of each series instead of its mean.

        A level far from the fitted mean would leave single precision no digits for the changes.
        """
        return Scaler(panel.values[panel.offsets[1:] - 1], self.std)

    def from_own_means(self, panel: Panel) -> "Scaler":
        """Subtract the mean of each series of a panel instead, for the same reason."""
        return Scaler(_segment_mean(panel.values, panel.offsets), self.std)

    def transform(self, panel: Panel) -> Float32[Tensor, " rows"]:
        """Scale a panel's values to float32; they are centered in float64."""
        lengths = panel.lengths
        centred = panel.values - row_by_row(self.mean, lengths)
        return centred.div_(row_by_row(self.std, lengths)).float()

    def inverse(self, values: Float[Tensor, "series ..."]) -> Float64[Tensor, "series ..."]:
        """Convert scaled values back to the units of the data, one row for each series."""
        shape = (-1,) + (1,) * (values.dim() - 1)
        return values.double() * self.std.view(shape) + self.mean.view(shape)


def _segment_mean(values: Float64[Tensor, " rows"], offsets: Int64[Tensor, " offsets"]) -> Float64[Tensor, " series"]:
    return torch.segment_reduce(values, "mean", offsets=offsets)


def _power_of_two_above(values: Float64[Tensor, " series"]) -> Float64[Tensor, " series"]:
    """Next power of two; 1 for zero."""
    exponent = torch.frexp(values).exponent.clamp(min=-1000)
    return torch.ldexp(torch.ones_like(values), torch.where(values > 0, exponent, 0))
