"""Series made of events: pulses that decay, steps, and intermittent demand."""

import numpy as np
from scipy.signal import lfilter

from leapts_pretrain.blocks import Block, groups, log_uniform, normal, random_season, uniform
from leapts_pretrain.generators.components import level_shifts, noise, profile

GROUP = 16


def pulses(rng: np.random.Generator, series: int, length: int) -> Block:
    """Simulate shot noise: events at regular or random times, each with a decay that may last."""
    block = np.empty((series, length), np.float32)
    for group in groups(series, GROUP):
        size = group.stop - group.start
        if rng.random() < 0.5:
            season = random_season(rng, length // 4)
            times = (np.arange(length) + rng.integers(season, size=(size, 1))) % season == 0
        else:
            times = rng.random((size, length), dtype=np.float32) < log_uniform(rng, 3 / length, 0.1, size, 1)
        heights = np.exp(rng.uniform(0, 0.8) * normal(rng, size, length)) * times
        decay = rng.choice([0.0, rng.uniform(0.3, 0.99)])
        block[group] = lfilter([1.0], [1.0, -decay], heights)
        block[group] *= np.sign(normal(rng, size, 1) + 1)  # one in six points down
    return block + noise(rng, series, length) * log_uniform(rng, 0.001, 0.2, series, 1)


def steps(rng: np.random.Generator, series: int, length: int) -> Block:
    """Draw levels that jump, on some of which noise or a slow drift rides; a third are whole numbers."""
    levels = level_shifts(rng, series, length)
    levels += (normal(rng, series, 1) * np.linspace(0, 1, length, dtype=np.float32)) * (rng.random((series, 1)) < 0.3)
    whole = rng.random(series) < 1 / 3
    levels[whole] = np.round(levels[whole] * uniform(rng, 1, 6, int(whole.sum()), 1))
    noisy = rng.random((series, 1)) < 0.7
    return levels + noisy * noise(rng, series, length) * log_uniform(rng, 0.005, 0.3, series, 1)


def intermittent_demand(rng: np.random.Generator, series: int, length: int) -> Block:
    """Draw demand that is zero at most steps: a seasonal probability of a sale, whole sizes of at least 1."""
    demand = np.empty((series, length), np.float32)
    for group in groups(series, GROUP):
        size = group.stop - group.start
        season = random_season(rng, length // 4)
        seasonal = profile(rng, "harmonics", size, season)[:, np.arange(length) % season]
        trend = normal(rng, size, 1) * np.linspace(-1, 1, length, dtype=np.float32)
        odds = log_uniform(rng, 0.02, 1.5, size, 1) * np.exp(uniform(rng, 0, 0.8, size, 1) * (seasonal + trend))
        sold = rng.random((size, length), dtype=np.float32) < odds / (1 + odds)
        sizes = np.exp(uniform(rng, 0, 2.5, size, 1) + uniform(rng, 0, 0.8, size, 1) * normal(rng, size, length))
        demand[group] = sold * np.maximum(np.round(sizes), 1)
    return demand
