"""Simulate the paper's three synthetic scenarios: dynamical systems with known behavior.

`docs/decisions/synthetic-scenarios.md` gives reasons for what the paper leaves open: initial states, observed
variables, and step sizes.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from leapts.errors import DataError
from leapts.messages import listed, quoted

Array = npt.NDArray[np.float64]
Field = Callable[[float, Array], Array]

PAPER_STEPS = 20_000
CLUSTER_SIZE = 10
OBSERVATION_NOISE = 0.05
STEPS_BETWEEN_SHOCKS = 2_000


@dataclass(frozen=True)
class Simulation:
    """Simulated series: names, values as [series, steps], and the time from one value to the next."""

    series: tuple[str, ...]
    values: Array
    step: float


def simulate(scenario: str, *, seed: int = 0, steps: int = PAPER_STEPS) -> Simulation:
    """Simulate a scenario.

    Args:
        scenario: `Scenario1` (30 series of three kinds), `Scenario2` (a driven Brusselator, 3 series) or
            `Scenario3` (one variable of the Lorenz system).
        seed: The seed of initial states, shocks and noise.
        steps: The number of values; 20,000 in the paper.

    Raises:
        DataError: When there is no such scenario.
    """
    if scenario not in SCENARIOS:
        raise DataError(f"there is no scenario {quoted(scenario)}; there are {listed(SCENARIOS)}")
    return SCENARIOS[scenario](np.random.default_rng(seed), steps)


def integrate(field: Field, state: Array, *, step: float, steps: int, substeps: int) -> Array:
    """Integrate `d state / dt = field(t, state)` with the Runge-Kutta method of order four.

    The field may be discontinuous in time only at multiples of `step`, the time between returned states; there are
    `substeps` Runge-Kutta steps between two of them. The first of the `steps` states returned is the initial one.
    """
    states = np.empty((steps, *state.shape))
    h = step / substeps
    for index in range(steps):
        states[index] = state
        t = index * step  # not a running sum, whose rounding errors would move the discontinuities
        for part in range(substeps):
            state = _runge_kutta(field, t + part * h, state, h)
    return states


def _runge_kutta(field: Field, t: float, state: Array, h: float) -> Array:
    k1 = field(t, state)
    k2 = field(t + h / 2, state + (h / 2) * k1)
    k3 = field(t + h / 2, state + (h / 2) * k2)
    # The last slope is evaluated just before the end of the step, where a pulse may start.
    k4 = field(t + h * (1 - 1e-6), state + h * k3)
    slope: Array = (k1 + 2 * (k2 + k3) + k4) * (h / 6)
    return state + slope


def van_der_pol(_t: float, state: Array) -> Array:
    """Van der Pol oscillator with damping 2: a stable nonlinear season."""
    y1, y2 = state
    return np.array([y2, 2.0 * (1 - y1 * y1) * y2 - y1])


def fitzhugh_nagumo(t: float, state: Array) -> Array:
    """FitzHugh-Nagumo neuron with a pulse of 0.5 for 2 of every 50 units of time."""
    v, w = state
    pulse = 0.5 if (t + 1e-9) % 50.0 < 2.0 else 0.0
    return np.array([v - v * v * v / 3 - w + pulse, 0.08 * (v + 0.7 - 0.8 * w)])


def damped_oscillator(_t: float, state: Array) -> Array:
    """Damped linear oscillator."""
    y1, y2 = state
    return np.array([y2, -0.15 * y2 - y1])


def brusselator(t: float, state: Array) -> Array:
    """Brusselator whose coefficient follows a slow driver; the state is (X, Y, U)."""
    x, y, u = state
    b = 2.5 + 2.0 * u
    reaction = x * x * y
    target = 1.0 + 0.5 * np.sin(0.1 * t)
    return np.array([1.0 + reaction - (b + 1) * x, b * x - reaction, 0.2 * (target - u)])


def lorenz(_t: float, state: Array) -> Array:
    """Lorenz system with the standard parameters."""
    x, y, z = state
    return np.array([10.0 * (y - x), x * (28.0 - z) - y, x * y - (8 / 3) * z])


def _heterogeneous(random: np.random.Generator, steps: int) -> Simulation:
    step = 0.05
    start = random.uniform(-2, 2, size=(2, CLUSTER_SIZE))
    periodic = integrate(van_der_pol, start, step=step, steps=steps, substeps=2)[:, 0]
    periodic += random.normal(0, OBSERVATION_NOISE, size=periodic.shape)
    start = random.uniform(-1, 1, size=(2, CLUSTER_SIZE))
    spikes = integrate(fitzhugh_nagumo, start, step=step, steps=steps, substeps=2)[:, 0]
    shocks = []
    for begin in range(0, steps, STEPS_BETWEEN_SHOCKS):
        start = random.uniform(-2, 2, size=(2, CLUSTER_SIZE))
        length = min(STEPS_BETWEEN_SHOCKS, steps - begin)
        shocks.append(integrate(damped_oscillator, start, step=step, steps=length, substeps=2)[:, 0])
    names = tuple(f"{cluster}{index}" for cluster in "ABC" for index in range(CLUSTER_SIZE))
    values = np.concatenate([periodic, spikes, np.concatenate(shocks)], axis=1)
    return Simulation(names, np.ascontiguousarray(values.T), step)


def _driven(random: np.random.Generator, steps: int) -> Simulation:
    start = random.uniform(0.5, 1.5, size=3)
    states = integrate(brusselator, start, step=0.05, steps=steps, substeps=8)
    return Simulation(("X", "Y", "U"), np.ascontiguousarray(states.T), 0.05)


def _hidden(random: np.random.Generator, steps: int) -> Simulation:
    start = np.array([0.0, 1.0, 20.0]) + random.uniform(-1, 1, size=3)
    states = integrate(lorenz, start, step=0.02, steps=steps, substeps=4)
    return Simulation(("z",), np.ascontiguousarray(states[:, 2:].T), 0.02)


SCENARIOS: dict[str, Callable[[np.random.Generator, int], Simulation]] = {
    "Scenario1": _heterogeneous,
    "Scenario2": _driven,
    "Scenario3": _hidden,
}
