"""Generators of synthetic series: seeded, vectorized over a block, float32 arrays as [series, steps].

A generator draws the parameters of every series, or of every small group of series, from the random generator that
it is given: the same seed gives the same block.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from leapts_pretrain.blocks import Block, standardized
from leapts_pretrain.generators.arima import seasonal_arima
from leapts_pretrain.generators.chaos import chaotic_system
from leapts_pretrain.generators.components import components
from leapts_pretrain.generators.diffusion import ornstein_uhlenbeck
from leapts_pretrain.generators.events import intermittent_demand, pulses, steps
from leapts_pretrain.generators.gaussian_process import gaussian_process

Generator = Callable[[np.random.Generator, int, int], Block]


class Share(NamedTuple):
    """A generator and its share of the series."""

    generate: Generator
    share: float


GENERATORS = {
    "seasonal_arima": Share(seasonal_arima, 0.30),
    "gaussian_process": Share(gaussian_process, 0.20),
    "components": Share(components, 0.26),
    "pulses": Share(pulses, 0.05),
    "steps": Share(steps, 0.03),
    "intermittent_demand": Share(intermittent_demand, 0.05),
    "ornstein_uhlenbeck": Share(ornstein_uhlenbeck, 0.07),
    "chaotic_system": Share(chaotic_system, 0.04),
}


def generate(rng: np.random.Generator, series: int, length: int) -> Block:
    """Draw standardized series from all generators by their shares, in random order."""
    bounds = np.round(series * np.cumsum([0.0, *(entry.share for entry in GENERATORS.values())])).astype(int)
    counts = np.diff(bounds)
    blocks = [
        entry.generate(rng, int(count), length)
        for entry, count in zip(GENERATORS.values(), counts, strict=True)
        if count
    ]
    return standardized(np.concatenate(blocks)[rng.permutation(series)])
