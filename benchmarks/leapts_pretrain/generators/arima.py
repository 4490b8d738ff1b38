"""Seasonal ARIMA with fractional integration, an envelope and observation noise (the recipe of SarSim0)."""

import numpy as np
import numpy.typing as npt
from scipy.signal import lfilter, oaconvolve

from leapts_pretrain.blocks import Block, groups, log_uniform, normal, random_season, standardized, uniform

BURN_IN = 200
MAX_AR, MAX_MA, MAX_SEASONAL = 10, 3, 2
RADIUS, SEASONAL_RADIUS = 0.9, 0.1
GROUP = 16
# Seasons inside seasons: hours in days in weeks, days in weeks in years.
NESTED_SEASONS = ((24, 168), (7, 364), (48, 336), (12, 84))


def seasonal_arima(rng: np.random.Generator, series: int, length: int) -> Block:
    """Simulate seasonal ARIMA paths; half of them get a second path as an envelope, most get observation noise."""
    block = np.empty((series, length), np.float32)
    for group in groups(series, GROUP):
        block[group] = _paths(rng, group.stop - group.start, length)
        if rng.random() < 0.5:
            envelope = _paths(rng, group.stop - group.start, length)
            block[group] = block[group] + envelope if rng.random() < 0.5 else block[group] * np.tanh(envelope)
        block[group] = _observed(rng, block[group])
    return block


def polynomial(rng: np.random.Generator, order: int, radius: float) -> npt.NDArray[np.float32]:
    """Draw a lag polynomial whose inverse roots are uniform by area in a disk; its first coefficient is 1.

    A last coefficient of 0 is appended: lfilter is slow without a denominator.
    """
    pairs = radius * np.sqrt(rng.random(order // 2)) * np.exp(1j * np.pi * rng.random(order // 2))
    real = rng.uniform(-radius, radius, order % 2)
    return np.append(np.poly(np.concatenate([pairs, pairs.conj(), real])).real, 0).astype(np.float32)


def _paths(rng: np.random.Generator, series: int, length: int) -> Block:
    """Simulate paths of one model, standardized."""
    moving_average = polynomial(rng, int(rng.integers(MAX_MA + 1)), RADIUS)
    auto_regression = polynomial(rng, int(rng.integers(MAX_AR + 1)), RADIUS)
    paths: Block = lfilter(moving_average, auto_regression, normal(rng, series, BURN_IN + length))
    if rng.random() < 0.5:
        paths = oaconvolve(paths, fractional_weights(rng.random(), paths.shape[1])[None], axes=1)[:, : paths.shape[1]]
    for season in _seasons(rng, length):
        paths = integrate_seasonally(rng, standardized(paths), season)
    return standardized(paths[:, BURN_IN:])


def _seasons(rng: np.random.Generator, length: int) -> tuple[int, ...]:
    kind = rng.random()
    if kind < 0.2:
        return ()
    if kind < 0.4:
        return NESTED_SEASONS[rng.integers(len(NESTED_SEASONS))]
    return (random_season(rng, length // 4),)


def fractional_weights(d: float, length: int) -> npt.NDArray[np.float32]:
    """Compute the weights of the past in (1 - B)^-d: fractional integration."""
    steps = np.arange(1, length)
    return np.cumprod(np.concatenate([[1.0], (steps - 1 + d) / steps])).astype(np.float32)


def integrate_seasonally(rng: np.random.Generator, paths: Block, season: int) -> Block:
    """Filter by a seasonal ARMA and integrate once over seasons, from a random first season.

    A polynomial of B^season treats every phase of the season by itself: phases become rows.
    """
    series, length = paths.shape
    cycles = -(-length // season)
    phases = np.zeros((series, cycles * season), np.float32)
    phases[:, :length] = paths
    phases = phases.reshape(series, cycles, season) * log_uniform(rng, 0.02, 0.5, 1)
    moving_average, auto_regression = (
        polynomial(rng, int(rng.integers(MAX_SEASONAL + 1)), SEASONAL_RADIUS) for _ in range(2)
    )
    phases = lfilter(moving_average, auto_regression, phases, axis=1)
    phases[:, 0] += _first_season(rng, series, season)
    return np.cumsum(phases, axis=1).reshape(series, -1)[:, :length]


def _first_season(rng: np.random.Generator, series: int, season: int) -> Block:
    """Draw the initial values of a seasonal path: a rough or a smooth profile."""
    profile = normal(rng, series, season)
    smoothness = rng.uniform(0, 0.95)
    return standardized(lfilter([1.0], [1.0, -smoothness], np.tile(profile, 2))[:, season:].astype(np.float32))


def _observed(rng: np.random.Generator, paths: Block) -> Block:
    """Observe paths with noise in proportion to a positive level: Poisson, gamma, log-normal or none."""
    kind = rng.integers(5)
    if kind >= 3:
        return paths
    paths = standardized(paths)
    amplitude = uniform(rng, 0.1, 0.9, len(paths), 1)
    level = np.exp(amplitude * paths) if rng.random() < 0.5 else np.maximum(1 + amplitude / 2 * paths, 0.01)
    if kind == 0:
        counts: Block = rng.poisson(np.minimum(level * log_uniform(rng, 1, 300, len(paths), 1), 1e6)).astype(np.float32)
        return counts
    if kind == 1:
        shape = float(log_uniform(rng, 2, 200, 1)[0])
        return level * rng.standard_gamma(shape, paths.shape, dtype=np.float32) / np.float32(shape)
    noisy: Block = level * np.exp(uniform(rng, 0.02, 0.4, len(paths), 1) * normal(rng, *paths.shape))
    return noisy
