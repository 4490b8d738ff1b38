"""Amplifier (Fei et al., 2025): our own compact implementation.

Models fit the frequencies with the most energy and neglect the others. Amplifier adds the mirrored spectrum of a window
to its own, so that the neglected frequencies have energy too; it forecasts the sum, and subtracts a separate forecast
of the mirrored part.

Simplifications: windows are standardized without learned scale and shift; the interaction between series (for the data
sets where the paper enables it) is one bottleneck over the series with a residual connection, instead of a common and a
specific pattern with a network each.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Complex, Float
from torch import Tensor, nn

from leapts_bench.baselines.parts import MovingAverage, WindowScale


class Amplifier(nn.Module):
    """Amplify, let series interact, split into trend and season, forecast each, restore."""

    def __init__(
        self,
        *,
        input_size: int,
        horizon: int,
        variates: int,
        hidden: int = 128,
        kernel: int = 25,
        interact: bool = False,
    ) -> None:
        super().__init__()
        self.lookback, self.horizon = input_size, horizon
        # One linear map from the mirrored spectrum of the look-back to that of the horizon.
        self.ahead = ComplexLinear(_bins(input_size), _bins(horizon))
        self.interaction = (
            nn.Sequential(nn.Linear(variates, variates), nn.LeakyReLU(), nn.Linear(variates, variates))
            if interact
            else None
        )
        self.average = MovingAverage(kernel)
        self.trend, self.season = (
            nn.Sequential(nn.Linear(input_size, hidden), nn.LeakyReLU(), nn.Linear(hidden, horizon)) for _ in range(2)
        )

    def forward(self, history: Float[Tensor, "batch variates lookback"]) -> Float[Tensor, "batch variates horizon"]:
        """Forecast every series."""
        scale = WindowScale.of(history)
        spectrum = torch.fft.rfft(scale.apply(history), dim=2)
        mirrored = spectrum.flip(2)
        amplified = torch.fft.irfft(spectrum + mirrored, n=self.lookback, dim=2)
        if self.interaction is not None:
            amplified = amplified + self.interaction(amplified.transpose(1, 2)).transpose(1, 2)
        trend = self.average(amplified)
        forecast: Tensor = self.trend(trend) + self.season(amplified - trend)
        return scale.undo(self._restored(forecast, mirrored))

    def _restored(
        self, forecast: Float[Tensor, "batch variates horizon"], mirrored: Complex[Tensor, "batch variates bins"]
    ) -> Float[Tensor, "batch variates horizon"]:
        """Subtract the part that is due to the mirrored spectrum."""
        added: Tensor = self.ahead(mirrored)
        restored: Tensor = torch.fft.irfft(torch.fft.rfft(forecast, dim=2) - added, n=self.horizon, dim=2)
        return restored


class ComplexLinear(nn.Module):
    """A linear map of complex numbers, with weights stored as two real matrices for the optimizer."""

    def __init__(self, size_in: int, size_out: int) -> None:
        super().__init__()
        self.real, self.imaginary = nn.Linear(size_in, size_out), nn.Linear(size_in, size_out)

    def forward(self, x: Complex[Tensor, "... size_in"]) -> Complex[Tensor, "... size_out"]:
        """Apply the matrix and add the bias."""
        real, imaginary = self.real, self.imaginary
        real_part: Tensor = real(x.real) - F.linear(x.imag, imaginary.weight)
        imaginary_part: Tensor = imaginary(x.real) + F.linear(x.imag, real.weight)
        return torch.complex(real_part, imaginary_part)


def _bins(steps: int) -> int:
    return steps // 2 + 1
