"""Augmentations of a block of windows; each changes a random share of its rows. NaN marks a missing value.

Strides and reversed time are no part of this module: the sampler cuts windows that way.
"""

from collections.abc import Callable

import numpy as np

from leapts_pretrain.blocks import Block, log_uniform, normal, uniform

Augmentation = Callable[[np.random.Generator, Block], Block]

MAX_MIXED = 3
MAX_MISSING = 0.3  # longest missing block, in parts of a window


def augmented(rng: np.random.Generator, windows: Block) -> Block:
    """Apply every augmentation to its share of the windows, in place."""
    for augmentation, share in AUGMENTATIONS.items():
        rows = np.flatnonzero(rng.random(len(windows)) < share)
        if len(rows):
            windows[rows] = augmentation(rng, windows[rows])
    return windows


def mixed(rng: np.random.Generator, windows: Block) -> Block:
    """Add up to three standardized windows by Dirichlet weights; a value that one of them misses is missing.

    Windows are mixed with those that have about as many known values.
    """
    center, scale = _center_and_scale(windows)
    order = np.argsort(np.isnan(windows).sum(axis=1), kind="stable")
    standard = ((windows - center) / scale)[order]
    weights = rng.dirichlet(np.ones(MAX_MIXED), len(windows)).astype(np.float32)
    weights[rng.random(len(windows)) < 0.5, 2] = 0  # two windows
    total = weights[:, :1] * standard
    for part in range(1, MAX_MIXED):
        chosen = np.flatnonzero(weights[:, part])
        total[chosen] += weights[chosen, part, None] * standard[(chosen + part) % len(windows)]
    result = np.empty_like(windows)
    result[order] = total
    return result * scale + center


def sign_reversed(_rng: np.random.Generator, windows: Block) -> Block:
    """Change the sign of all values."""
    return -windows


def censored(rng: np.random.Generator, windows: Block) -> Block:
    """Replace values above or below a threshold by the threshold."""
    center, scale = _center_and_scale(windows)
    threshold = center + scale * uniform(rng, -0.7, 1.5, len(windows), 1)
    below = rng.random((len(windows), 1)) < 0.5
    mirror = 2 * center - threshold
    return np.where(below, np.maximum(windows, mirror), np.minimum(windows, threshold))


def amplitude_modulated(rng: np.random.Generator, windows: Block) -> Block:
    """Multiply the distance to the mean by a slow wave."""
    center, _ = _center_and_scale(windows)
    time = np.linspace(0, 1, windows.shape[1], dtype=np.float32)
    cycles, phase, depth = (uniform(rng, low, high, len(windows), 1) for low, high in ((0.2, 3), (0, 1), (0.1, 0.9)))
    modulated: Block = center + (windows - center) * (1 + depth * np.sin(2 * np.pi * (cycles * time + phase)))
    return modulated


def with_noise(rng: np.random.Generator, windows: Block) -> Block:
    """Add white noise of 1 to 30 % of the standard deviation."""
    return windows + normal(rng, *windows.shape) * (_center_and_scale(windows)[1] * log_uniform(rng, 0.01, 0.3, 1))


def with_missing(rng: np.random.Generator, windows: Block) -> Block:
    """Remove one block of values, and single values at random."""
    length = windows.shape[1]
    size = uniform(rng, 0, MAX_MISSING, len(windows), 1) * length
    first = uniform(rng, 0, 1, len(windows), 1) * length
    steps = np.arange(length)
    lost = (steps >= first) & (steps < first + size)
    lost |= rng.random(windows.shape, dtype=np.float32) < uniform(rng, 0, 0.2, len(windows), 1) ** 2
    return np.where(lost, np.float32(np.nan), windows)


def _center_and_scale(windows: Block) -> tuple[Block, Block]:
    """Compute mean and standard deviation of the values that are there; 0 and 1 where there are none."""
    known = ~np.isnan(windows)
    count = np.maximum(known.sum(axis=1, keepdims=True), 1).astype(np.float32)
    center = np.where(known, windows, 0).sum(axis=1, keepdims=True) / count
    scale = np.sqrt((np.where(known, windows - center, 0) ** 2).sum(axis=1, keepdims=True) / count)
    return center, np.where(scale > 0, scale, np.float32(1))


AUGMENTATIONS: dict[Augmentation, float] = {
    mixed: 0.2,
    sign_reversed: 0.2,
    amplitude_modulated: 0.1,
    censored: 0.06,
    with_noise: 0.05,
}
