"""Mean-reverting diffusions whose regime switches and whose volatility is itself random."""

import numpy as np

from leapts_pretrain.blocks import Block, log_uniform, normal, uniform

BURN_IN = 100


def ornstein_uhlenbeck(rng: np.random.Generator, series: int, length: int) -> Block:
    """Simulate Ornstein-Uhlenbeck paths with two regimes and stochastic volatility.

    Level, reversion and volatility belong to the regime; regimes switch as a Markov chain, the logarithm of the
    volatility follows an autoregression. A third of the paths are exponentials: prices.
    """
    total = BURN_IN + length
    switches = rng.random((total, series), dtype=np.float32) < log_uniform(rng, 0.3 / length, 0.02, series)
    regime = (np.cumsum(switches, axis=0) + rng.integers(2, size=series)) % 2 == 1
    level, reversion, volatility = (
        np.where(regime, uniform(rng, low, high, series), uniform(rng, low, high, series))
        for low, high in ((-3, 3), (np.log(0.001), np.log(0.5)), (np.log(0.1), np.log(1)))
    )
    reversion = np.exp(reversion)
    shocks, volatility_shocks = normal(rng, total, series), normal(rng, total, series)
    memory = 1 - log_uniform(rng, 0.005, 0.3, series)
    volatility_scale = uniform(rng, 0, 0.6, series) * np.sqrt(1 - memory**2)
    paths = np.empty((total, series), np.float32)
    position, log_volatility = level[0].copy(), np.zeros(series, np.float32)
    for step in range(total):
        log_volatility = memory * log_volatility + volatility_scale * volatility_shocks[step]
        spread = np.exp(volatility[step] + log_volatility) * np.sqrt(2 * reversion[step])
        position = position + reversion[step] * (level[step] - position) + spread * shocks[step]
        paths[step] = position
    block = np.ascontiguousarray(paths[BURN_IN:].T)
    prices = rng.random(series) < 1 / 3
    block[prices] = np.exp(block[prices] * uniform(rng, 0.1, 0.5, int(prices.sum()), 1))
    return block
