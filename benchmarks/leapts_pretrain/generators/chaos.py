"""Chaotic systems: Lorenz, Rössler and Mackey-Glass equations, logistic and Hénon maps."""

from collections.abc import Callable

import numpy as np

from leapts.datasets.synthetic import Array, integrate
from leapts_pretrain.blocks import Block, log_uniform, normal, standardized, uniform

BURN_IN = 100
System = Callable[[np.random.Generator, int, int], Array | Block]


def chaotic_system(rng: np.random.Generator, series: int, length: int) -> Block:
    """Simulate chaotic systems with random parameters, initial states and speeds, and a little noise."""
    counts = np.diff(np.round(series * np.linspace(0, 1, len(SYSTEMS) + 1)).astype(int))
    paths = [
        simulate(rng, int(count), BURN_IN + length)[BURN_IN:].T.astype(np.float32)
        for simulate, count in zip(SYSTEMS.values(), counts, strict=True)
        if count
    ]
    clean = standardized(np.concatenate(paths))
    return clean + normal(rng, series, length) * log_uniform(rng, 0.0005, 0.05, series, 1)


def lorenz(rng: np.random.Generator, series: int, steps: int) -> Array:
    """Simulate one of the three variables of the Lorenz system."""
    rho, speed = rng.uniform(26, 36, series), rng.uniform(0.01, 0.05, series)

    def field(_t: float, state: Array) -> Array:
        x, y, z = state
        return np.stack([10 * (y - x), x * (rho - z) - y, x * y - 8 / 3 * z]) * speed

    start = np.stack([*rng.normal(0, 5, (2, series)), rng.normal(25, 5, series)])
    states = integrate(field, start, step=1.0, steps=steps, substeps=1)
    return states[:, rng.integers(3)]


def rossler(rng: np.random.Generator, series: int, steps: int) -> Array:
    """Simulate one of the three variables of the Rössler system."""
    c, speed = rng.uniform(5, 9, series), rng.uniform(0.03, 0.12, series)

    def field(_t: float, state: Array) -> Array:
        x, y, z = state
        return np.stack([-y - z, x + 0.2 * y, 0.2 + z * (x - c)]) * speed

    start = np.stack([*rng.normal(0, 2, (2, series)), rng.uniform(0, 0.1, series)])
    states = integrate(field, start, step=1.0, steps=steps, substeps=1)
    return states[:, rng.choice(3, p=[0.45, 0.45, 0.1])]


def mackey_glass(rng: np.random.Generator, series: int, steps: int) -> Block:
    """Simulate the Mackey-Glass equation by Euler steps; one delay for all series."""
    delay = int(rng.integers(17, 40))
    feedback = uniform(rng, 0.18, 0.24, series)
    path = np.empty((delay + steps, series), np.float32)
    path[:delay] = uniform(rng, 0.5, 1.3, series) + 0.05 * normal(rng, delay, series)
    for step in range(delay, delay + steps):
        past = path[step - delay]
        path[step] = 0.9 * path[step - 1] + feedback * past / (1 + past**10)
    return path[delay:]


def logistic_map(rng: np.random.Generator, series: int, steps: int) -> Array:
    """Iterate the logistic map, in its periodic and its chaotic range."""
    rate, state = rng.uniform(3.4, 4.0, series), rng.uniform(0.1, 0.9, series)
    path = np.empty((steps, series))
    for step in range(steps):
        state = rate * state * (1 - state)
        path[step] = state
    return path


def henon_map(rng: np.random.Generator, series: int, steps: int) -> Array:
    """Iterate the Hénon map from near its attractor."""
    a, (x, y) = rng.uniform(1.0, 1.4, series), rng.uniform(-0.1, 0.1, (2, series))
    path = np.empty((steps, series))
    for step in range(steps):
        x, y = 1 - a * x * x + y, 0.3 * x
        path[step] = x
    return path


SYSTEMS: dict[str, System] = {
    "lorenz": lorenz,
    "rossler": rossler,
    "mackey_glass": mackey_glass,
    "logistic_map": logistic_map,
    "henon_map": henon_map,
}
