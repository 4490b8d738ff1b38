"""Standardising each series by the mean and deviation of its training part."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Float32, Float64, Int64
from torch import Tensor

from leapts.data.panel import Panel
from leapts.errors import DataError

FLAT = 1e-12  # a deviation below this share of the mean is rounding noise: the series is constant


@dataclass(frozen=True, eq=False)
class Scaler:
    """Each series' mean and population deviation, in float64; a constant series has deviation 1.

    Plain tensors, to be saved as they are.
    """

    mean: Float64[Tensor, " series"]
    deviation: Float64[Tensor, " series"]

    @classmethod
    def fit(cls, panel: Panel) -> "Scaler":
        """Measures every series of the training part.

        Raises:
            DataError: When a series has no value to measure.
        """
        lengths = panel.lengths
        if not bool((lengths > 0).all()):
            name = panel.series[int(lengths.argmin())]
            raise DataError(f"series {name!r} has no value in the training part; train on more of it")
        mean = _segment_mean(panel.values, panel.offsets)
        centred = panel.values - mean.repeat_interleave(lengths)
        deviation = _segment_mean(centred.square_(), panel.offsets).sqrt()
        constant = deviation <= FLAT * mean.abs()
        return cls(mean, torch.where(constant, 1.0, deviation))

    def transform(self, panel: Panel) -> Float32[Tensor, " rows"]:
        """The panel's values standardised, in float32; centred in float64 first, so that nothing is lost."""
        lengths = panel.lengths
        centred = panel.values - self.mean.repeat_interleave(lengths)
        return centred.div_(self.deviation.repeat_interleave(lengths)).float()

    def inverse(
        self, values: Float[Tensor, "series *steps"], series: Int64[Tensor, " series"] | None = None
    ) -> Float64[Tensor, "series *steps"]:
        """Standardised values back in their units.

        Args:
            values: One line for each series.
            series: Which series the lines belong to; all of them in order if left out.
        """
        mean, deviation = self.mean, self.deviation
        if series is not None:
            mean, deviation = mean.index_select(0, series), deviation.index_select(0, series)
        shape = (-1,) + (1,) * (values.dim() - 1)
        return values.double() * deviation.view(shape) + mean.view(shape)


def _segment_mean(values: Float64[Tensor, " rows"], offsets: Int64[Tensor, " borders"]) -> Float64[Tensor, " series"]:
    return torch.segment_reduce(values, "mean", offsets=offsets)
