"""What is known about the values of each series: mean and standard deviation, and its support.

Scaling subtracts the mean and divides by the standard deviation. The support has the values that can occur, which a
forecast never leaves.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Float32, Float64, Int64
from torch import Tensor

from leapts.config import SupportName
from leapts.data.panel import Panel, row_by_row
from leapts.errors import DataError
from leapts.messages import quoted

FLAT = 1e-12  # a standard deviation below this share of the mean is rounding noise: the series is constant
_UPPER_LIMITS = (1.0, 100.0)  # of shares and percentages
_MIN_AT_LIMIT = 0.01  # share of the values that equal an upper limit, for it to be one
_MAX_WHOLE = 2.0**53  # larger whole numbers have no fraction to round


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

    @classmethod
    def joined(cls, parts: Sequence["Scaler"]) -> "Scaler":
        """Put the series of several scalers one after the other."""
        if len(parts) == 1:
            return parts[0]
        return cls(torch.cat([part.mean for part in parts]), torch.cat([part.std for part in parts]))

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


@dataclass(frozen=True, eq=False)
class Support:
    """Limits of the values of each series, and whether they are whole numbers."""

    lower: Float64[Tensor, " series"]
    upper: Float64[Tensor, " series"]
    whole: Bool[Tensor, " series"]

    @classmethod
    def of(cls, panel: Panel, given: SupportName | tuple[float, float] = "auto") -> "Support":
        """Find the support of each series, or take the one that a user gave for all of them.

        Values that are never negative stay at or above 0. Those that often equal 1 or 100, and never exceed it, stay at
        or below it. Whole numbers from 0 are counts.

        Raises:
            DataError: When a value is outside of the support that a user gave.
        """
        if given == "real":
            return cls.real(len(panel))
        if given != "auto":
            limits = given if isinstance(given, tuple) else (0.0, torch.inf)
            lower, upper = (torch.full((len(panel),), limit, dtype=torch.float64) for limit in limits)
            values, is_count = panel.values, given == "count"
            outside = (values < limits[0]) | (values > limits[1]) | (is_count & (values != values.round()))
            if bool(outside.any()):
                row = int(outside.nonzero()[0])
                name = panel.series[int(torch.searchsorted(panel.offsets, row, right=True)) - 1]
                raise DataError(
                    f"series {quoted(name)} holds {float(values[row]):g}, outside of support={given!r}; correct it, or "
                    "give a wider support"
                )
            return cls(lower, upper, torch.full((len(panel),), is_count))
        values, offsets = panel.values, panel.offsets

        def share(condition: Bool[Tensor, " rows"]) -> Float64[Tensor, " series"]:
            return torch.segment_reduce(condition.double(), "mean", offsets=offsets)

        lowest, highest = (torch.segment_reduce(values, kind, offsets=offsets) for kind in ("min", "max"))
        is_positive = lowest >= 0
        upper = torch.full_like(highest, torch.inf)
        for limit in _UPPER_LIMITS:
            at_limit = is_positive & (highest == limit) & (lowest < limit) & (share(values == limit) >= _MIN_AT_LIMIT)
            upper[at_limit] = limit
        whole = is_positive & (share(values == values.round()) == 1) & (highest < _MAX_WHOLE)
        return cls(torch.zeros_like(upper).masked_fill(~is_positive, -torch.inf), upper, whole)

    @classmethod
    def real(cls, series: int) -> "Support":
        """Allow every value in a number of series."""
        infinite = torch.full((series,), torch.inf, dtype=torch.float64)
        return cls(-infinite, infinite, torch.zeros(series, dtype=torch.bool))

    @property
    def is_real(self) -> bool:
        """Whether every value can occur in every series."""
        return bool((self.lower.isneginf() & self.upper.isposinf() & ~self.whole).all())

    def summary(self) -> tuple[str, str]:
        """Name the support of all series, and count those with limits."""
        total, limits = len(self.lower), self.lower == 0
        counts = [int(which.sum()) for which in (limits, limits & self.whole, limits & self.upper.isfinite())]
        kinds = ("positive", "count", "bounded")
        name = next(
            (kind for kind, count in reversed(list(zip(kinds, counts, strict=True))) if count == total), "mixed"
        )
        remarks = [f"{counts[0]} of {total} series never negative"]
        remarks += [f"{counts[1]} with whole numbers only"] if counts[1] else []
        remarks += [f"{counts[2]} with an upper limit"] if counts[2] else []
        return name if counts[0] else "real", ", ".join(remarks)

    def clip(self, values: Float[Tensor, "series ..."]) -> Float[Tensor, "series ..."]:
        """Move values into the support of their series: to its limits, and to whole numbers."""
        if self.is_real:
            return values
        shape = (-1,) + (1,) * (values.dim() - 1)
        inside = values.clamp(self.lower.view(shape), self.upper.view(shape))
        return torch.where(self.whole.view(shape), (inside + 0.5).floor(), inside)

    @classmethod
    def joined(cls, parts: Sequence["Support"]) -> "Support":
        """Put the series of several supports one after the other."""
        if len(parts) == 1:
            return parts[0]
        return cls(*(torch.cat(column) for column in zip(*((p.lower, p.upper, p.whole) for p in parts), strict=True)))

    def select(self, rows: Tensor) -> "Support":
        """Select some series."""
        return Support(self.lower[rows], self.upper[rows], self.whole[rows])

    def widened(self, panel: Panel) -> "Support":
        """Drop the limits that values of the same series in a panel have left."""
        values, starts = panel.values.numpy(), panel.offsets[:-1].numpy()
        below = np.minimum.reduceat(values, starts) < self.lower.numpy()
        above = np.maximum.reduceat(values, starts) > self.upper.numpy()
        broken = self.whole.numpy() & np.logical_or.reduceat(values != np.rint(values), starts)
        if not (below | above | broken).any():
            return self
        return Support(
            self.lower.masked_fill(torch.from_numpy(below), -torch.inf),
            self.upper.masked_fill(torch.from_numpy(above), torch.inf),
            self.whole & ~torch.from_numpy(broken),
        )


def _segment_mean(values: Float64[Tensor, " rows"], offsets: Int64[Tensor, " offsets"]) -> Float64[Tensor, " series"]:
    return torch.segment_reduce(values, "mean", offsets=offsets)


def _power_of_two_above(values: Float64[Tensor, " series"]) -> Float64[Tensor, " series"]:
    """Next power of two; 1 for zero."""
    exponent = torch.frexp(values).exponent.clamp(min=-1000)
    return torch.ldexp(torch.ones_like(values), torch.where(values > 0, exponent, 0))
