"""Blocks of series as float32 arrays [series, steps], and what generators share."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

Block = npt.NDArray[np.float32]

# Steps of a season in business and sensor data: minutes to hours, hours to weeks, days, weeks, months, quarters.
SEASONS = np.array([4, 5, 6, 7, 10, 12, 13, 24, 26, 30, 48, 52, 60, 96, 144, 168, 288, 336, 365])


def standardized(block: Block) -> Block:
    """Shift and scale every series to mean 0 and standard deviation 1; a constant series becomes 0."""
    centered = block - block.mean(axis=1, keepdims=True)
    scale = centered.std(axis=1, keepdims=True)
    result: Block = centered / np.where(scale > 1e-6, scale, 1)
    return result


def groups(series: int, size: int) -> Iterator[slice]:
    """Split a block into groups of at most `size` series that share parameters."""
    for start in range(0, series, size):
        yield slice(start, min(start + size, series))


def normal(rng: np.random.Generator, *shape: int) -> Block:
    """Draw standard normal numbers as float32."""
    return rng.standard_normal(shape, dtype=np.float32)


def uniform(rng: np.random.Generator, low: float, high: float, *shape: int) -> Block:
    """Draw uniform numbers as float32."""
    return rng.random(shape, dtype=np.float32) * np.float32(high - low) + np.float32(low)


def log_uniform(rng: np.random.Generator, low: float, high: float, *shape: int) -> Block:
    """Draw numbers whose logarithm is uniform, as float32."""
    return np.exp(uniform(rng, np.log(low), np.log(high), *shape))


def random_season(rng: np.random.Generator, longest: int) -> int:
    """Draw the length of a season: two in three from business and sensor data, else log-uniform."""
    if rng.random() < 2 / 3:
        return int(rng.choice(SEASONS[longest >= SEASONS]))
    return int(log_uniform(rng, 2, longest, 1)[0])
