"""Series as trend, seasons, noise, level shifts and outliers, added or multiplied."""

import numpy as np
from scipy.signal import lfilter

from leapts_pretrain.blocks import Block, groups, log_uniform, normal, random_season, standardized, uniform

GROUP = 16
PROFILES = ("sine", "sawtooth", "square", "spike", "harmonics", "free")
OUTLIERS = (3.0, 8.0)  # standard deviations
MAX_GROWTH = 6.0  # logarithm of the largest level of a series that multiplies


def components(rng: np.random.Generator, series: int, length: int) -> Block:
    """Compose a trend, up to three seasons, noise, level shifts and outliers; two in five multiply."""
    level = trend(rng, series, length) * log_uniform(rng, 0.02, 2, series, 1)
    season = np.zeros_like(level)
    for group in groups(series, GROUP):
        for _ in range(rng.integers(4)):
            season[group] += _season(rng, group.stop - group.start, length)
    shifted = rng.random(series) < 0.15
    level[shifted] += level_shifts(rng, int(shifted.sum()), length)
    season += noise(rng, series, length) * log_uniform(rng, 0.02, 1, series, 1)
    multiplied = rng.random(series) < 0.4
    strength = uniform(rng, 0.05, 0.4, int(multiplied.sum()), 1)
    growth = uniform(rng, 0.1, 1, len(strength), 1) * level[multiplied]
    positive = np.exp(np.clip(growth, -MAX_GROWTH, MAX_GROWTH))
    level += season
    level[multiplied] = positive * np.maximum(1 + strength * season[multiplied], 0)
    marked = rng.random(series) < 0.2
    level[marked] = with_outliers(rng, level[marked])
    return level


def trend(rng: np.random.Generator, series: int, length: int) -> Block:
    """Draw trends of one kind a series: none, linear, quadratic, exponential, piecewise linear."""
    t = np.linspace(0, 1, length, dtype=np.float32)
    slope = normal(rng, series, 1)
    curve = slope * t
    kind = rng.integers(5, size=series)
    quadratic, exponential, piecewise = kind == 2, kind == 3, kind == 4
    curve[kind == 0] = 0
    curve[quadratic] *= t - uniform(rng, 0, 1, int(quadratic.sum()), 1)
    curve[exponential] = slope[exponential] * np.expm1(uniform(rng, 0.5, 4, int(exponential.sum()), 1) * t) / 8
    breaks = rng.random((int(piecewise.sum()), length), dtype=np.float32) < log_uniform(rng, 1, 8, 1) / length
    curve[piecewise] = np.cumsum(np.cumsum(breaks * normal(rng, *breaks.shape), axis=1), axis=1) / length
    return 2 * curve


def _season(rng: np.random.Generator, series: int, length: int) -> Block:
    """Repeat a random profile; half of the seasons change their amplitude slowly or rest on some days."""
    season = random_season(rng, length // 3)
    kind = PROFILES[rng.integers(len(PROFILES))]
    repeated = profile(rng, kind, series, season)[:, np.arange(length) % season] * log_uniform(rng, 0.2, 2, series, 1)
    if rng.random() < 0.25:
        growth = uniform(rng, -1, 2, series, 1) * np.linspace(0, 1, length, dtype=np.float32)
        return repeated * (1 + growth)
    if rng.random() < 0.25:  # a cycle of seven seasons: working days and weekends
        resting = uniform(rng, 0, 1, series, 7)[:, (np.arange(length) // season) % 7]
        repeated *= np.where(resting < 2 / 7, uniform(rng, 0, 1, series, 1), np.float32(1))
    return repeated


def profile(rng: np.random.Generator, kind: str, series: int, season: int) -> Block:
    """Draw the values of one season, standardized: shapes of textbooks, random harmonics, or any values."""
    phase = (np.arange(season, dtype=np.float32) / season + rng.random((series, 1), dtype=np.float32)) % 1
    if kind == "sine":
        values = np.sin(2 * np.pi * phase)
    elif kind == "sawtooth":
        values = phase
    elif kind == "square":
        values = (phase < uniform(rng, 0.05, 0.6, series, 1)).astype(np.float32)
    elif kind == "spike":
        values = np.exp(log_uniform(rng, 2, 60, series, 1) * (np.cos(2 * np.pi * phase) - 1))
    elif kind == "harmonics":
        order = np.arange(1, 7, dtype=np.float32)
        waves = np.sin(2 * np.pi * (phase[:, :, None] * order + uniform(rng, 0, 1, series, 1, 6)))
        values = (waves * (normal(rng, series, 1, 6) / order)).sum(axis=2)
    else:
        values = normal(rng, series, season)
    return standardized(values.astype(np.float32))


def noise(rng: np.random.Generator, series: int, length: int) -> Block:
    """Draw white, autoregressive, heavy-tailed or heteroscedastic noise."""
    values = normal(rng, series, length)
    for group in groups(series, GROUP):
        kind = rng.integers(4)
        if kind == 1:
            memory = rng.uniform(0.3, 0.99)
            values[group] = standardized(lfilter([1.0], [1.0, -memory], values[group]).astype(np.float32))
        if kind == 2:
            values[group] /= np.sqrt(rng.standard_gamma(2, values[group].shape, dtype=np.float32) / 2)
        if kind == 3:
            season = random_season(rng, length // 3)
            values[group] *= np.exp(profile(rng, "harmonics", 1, season)[:, np.arange(length) % season] / 2)
    return values


def level_shifts(rng: np.random.Generator, series: int, length: int) -> Block:
    """Draw paths that are constant but for a few jumps."""
    jumps = rng.random((series, length), dtype=np.float32) < log_uniform(rng, 1, 8, series, 1) / length
    return np.cumsum(jumps * normal(rng, series, length), axis=1)


def with_outliers(rng: np.random.Generator, block: Block) -> Block:
    """Add outliers of three to eight standard deviations to some steps, of either sign."""
    rate = log_uniform(rng, 0.001, 0.02, len(block), 1)
    size = uniform(rng, *OUTLIERS, *block.shape) * np.sign(normal(rng, len(block), 1) + 1)
    chosen = rng.random(block.shape, dtype=np.float32) < rate
    changed: Block = block + chosen * size * block.std(axis=1, keepdims=True)
    return changed
