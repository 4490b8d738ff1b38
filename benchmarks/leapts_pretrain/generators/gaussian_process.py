"""Gaussian processes with composed kernels (the recipe of KernelSynth), sampled by circulant embedding."""

import numpy as np
from scipy import fft

from leapts_pretrain.blocks import Block, groups, log_uniform, normal, random_season, standardized

MAX_KERNELS = 5
MAX_DEGREE = 2  # of the polynomial in time that linear kernels multiply to
GROUP = 8
STATIONARY = ("periodic", "periodic", "rbf", "rational_quadratic", "matern", "white", "constant")


def gaussian_process(rng: np.random.Generator, series: int, length: int) -> Block:
    """Sample paths; each group has a kernel of its own, composed of one to five kernels by sums and products.

    A product with the linear kernel is a path times a line, so a composed kernel is a list of stationary
    covariances by degree of that line. See `embedded_spectrum` for the sampling.
    """
    block = np.zeros((series, length), np.float32)
    line = np.linspace(-1, 1, length, dtype=np.float32)
    for group in groups(series, GROUP):
        covariances = composed_kernel(rng, length)
        origin = np.float32(rng.uniform(-1, 1))
        for degree, covariance in enumerate(covariances):
            if covariance.any():
                paths = sample_stationary(rng, covariance, group.stop - group.start, length)
                block[group] += (line - origin) ** degree * paths
    return standardized(block)


def composed_kernel(rng: np.random.Generator, length: int) -> Block:
    """Draw a composed kernel: rows are degrees of the line, columns are covariances at lags 0, 1, ..."""
    lags = np.arange(2 * length + 1, dtype=np.float32)
    covariances = np.zeros((MAX_DEGREE + 1, len(lags)), np.float32)
    covariances[0] = stationary_kernel(rng, str(rng.choice(STATIONARY[:-2])), lags)
    for _ in range(rng.integers(MAX_KERNELS)):
        product = rng.random() < 0.5
        if rng.random() < 1 / 7:  # the linear kernel
            if not product:
                covariances[1] += 1
            elif not covariances[-1].any():
                covariances = np.roll(covariances, 1, axis=0)
            continue
        kernel = stationary_kernel(rng, str(rng.choice(STATIONARY)), lags)
        if product:
            covariances *= kernel
        else:
            covariances[0] += kernel
    return covariances


def stationary_kernel(rng: np.random.Generator, kind: str, lags: Block) -> Block:
    """Compute the covariance of a stationary kernel of random length scale; its variance is 1."""
    longest = len(lags) // 2
    scale = log_uniform(rng, 0.005 * longest, longest, 1)
    distance = lags / scale
    kernel: Block = np.exp(-distance)
    if kind == "periodic":
        season = random_season(rng, longest // 2)
        kernel = np.exp(-2 * (np.sin(np.pi * lags / season) / log_uniform(rng, 0.3, 3, 1)) ** 2)
    elif kind == "rbf":
        kernel = np.exp(-0.5 * distance**2)
    elif kind == "rational_quadratic":
        alpha = log_uniform(rng, 0.1, 10, 1)
        kernel = (1 + distance**2 / (2 * alpha)) ** -alpha
    elif kind == "matern" and rng.random() < 0.5:  # of order 3/2; else of order 1/2
        kernel = (1 + distance) * kernel
    elif kind == "white":
        kernel = np.eye(1, len(lags), dtype=np.float32)[0]
    elif kind == "constant":
        kernel = np.ones_like(lags)
    return kernel


def embedded_spectrum(covariance: Block) -> Block:
    """Compute the spectrum of a covariance on a circle four times as long as the series.

    The covariance is tapered by a wide Gaussian, a kernel too, so that it has decayed where the circle closes: its
    spectrum is not negative but for rounding. Seasons keep their phase for about the length of the series.
    """
    half = len(covariance) - 1
    taper = np.exp(-0.5 * (np.arange(half + 1, dtype=np.float32) * 3 / half) ** 2)
    spectrum: Block = np.maximum(fft.dct(covariance * taper, type=1), 0)
    return spectrum


def sample_stationary(rng: np.random.Generator, covariance: Block, series: int, length: int) -> Block:
    """Sample paths of a stationary process from its covariance: white noise colored in the frequency domain."""
    amplitude = np.sqrt(embedded_spectrum(covariance))
    noise = normal(rng, series, 2, len(amplitude))
    size = 2 * (len(amplitude) - 1)
    spectrum = amplitude * (noise[:, 0] + 1j * noise[:, 1]) * np.float32(np.sqrt(size / 2))
    spectrum[:, [0, -1]] = np.sqrt(2) * spectrum[:, [0, -1]].real
    paths: Block = fft.irfft(spectrum, size, axis=1)[:, :length]
    return paths
