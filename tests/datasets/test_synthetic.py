import numpy as np
import pytest
from scipy.integrate import solve_ivp

from leapts.datasets.synthetic import (
    SCENARIOS,
    Field,
    brusselator,
    damped_oscillator,
    fitzhugh_nagumo,
    integrate,
    lorenz,
    simulate,
    van_der_pol,
)
from leapts.errors import DataError


@pytest.mark.parametrize(
    ("field", "state", "step", "substeps", "tolerance"),
    [
        (van_der_pol, [1.0, -0.5], 0.05, 2, 2e-4),
        (damped_oscillator, [1.0, -0.5], 0.05, 2, 1e-7),
        (brusselator, [1.0, 1.0, 1.0], 0.05, 8, 1e-3),
        (lorenz, [0.5, 1.0, 20.0], 0.02, 4, 1e-3),
    ],
)
def test_integration_agrees_with_scipy(
    field: Field, state: list[float], step: float, substeps: int, tolerance: float
) -> None:
    steps = 200
    ours = integrate(field, np.array(state), step=step, steps=steps, substeps=substeps)
    times = np.arange(steps) * step
    theirs = solve_ivp(field, (0, times[-1]), state, t_eval=times, method="DOP853", rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(ours, theirs.y.T, atol=tolerance)


def test_a_pulse_is_felt_exactly_while_it_lasts() -> None:
    """Piecewise, because an adaptive solver does not see the pulse's edges either."""
    ours = integrate(fitzhugh_nagumo, np.array([0.3, -0.2]), step=0.05, steps=1100, substeps=2)
    state = np.array([0.3, -0.2])
    for begin, end in [(0.0, 2.0), (2.0, 50.0), (50.0, 52.0)]:
        inside = (begin + end) / 2  # the pulse is the same throughout the piece

        def piece(_t: float, y: np.ndarray, inside: float = inside) -> np.ndarray:
            return fitzhugh_nagumo(inside, y)

        state = solve_ivp(piece, (begin, end), state, method="DOP853", rtol=1e-11, atol=1e-12).y[:, -1]
        np.testing.assert_allclose(ours[round(end / 0.05)], state, atol=1e-5)


def test_the_error_falls_with_the_fourth_power_of_the_step() -> None:
    def error(substeps: int) -> float:
        coarse, fine = (
            integrate(van_der_pol, np.array([1.0, 0.0]), step=0.1, steps=60, substeps=n) for n in (substeps, 64)
        )
        return float(np.abs(coarse - fine).max())

    assert 10 < error(1) / error(2) < 25


@pytest.mark.parametrize(("scenario", "series"), [("Scenario1", 30), ("Scenario2", 3), ("Scenario3", 1)])
def test_scenarios_have_their_shape_and_follow_their_seed(scenario: str, series: int) -> None:
    first, again, other = (simulate(scenario, seed=seed, steps=50) for seed in (1, 1, 2))
    assert first.values.shape == (series, 50)
    assert len(first.series) == len(set(first.series)) == series
    np.testing.assert_array_equal(first.values, again.values)
    assert not np.allclose(first.values, other.values)


def test_the_clusters_do_what_they_are_named_for() -> None:
    values = simulate("Scenario1", steps=4000).values
    periodic, spikes, shocks = values[:10], values[10:20], values[20:]
    assert (np.abs(periodic[:, 1000:]).max(axis=1) > 1.9).all()  # the limit cycle of Van der Pol reaches 2
    upward = (spikes[:, 1:] > 1) & (spikes[:, :-1] <= 1)
    assert (upward[:, 1000:].sum(axis=1) == 3).all()  # one spike for each pulse, every 1000 steps
    calm, jump = np.abs(shocks[:, 1990:2000]).max(), np.abs(shocks[:, 2000:2050]).max(axis=1)
    assert (jump > 10 * calm).all()


def test_noise_is_on_the_periodic_cluster_alone() -> None:
    roughness = np.abs(np.diff(simulate("Scenario1", steps=1500).values[:, 500:], n=4, axis=1)).mean(axis=1)
    assert roughness[:10].min() > 0.1
    assert roughness[10:].max() < 0.01


def test_the_driver_swings_around_one() -> None:
    driver = simulate("Scenario2", steps=4000).values[2, 1000:]
    assert driver.min() == pytest.approx(1 - 0.5 / np.sqrt(1.25), abs=0.01)  # a first-order lag of a sine
    assert driver.max() == pytest.approx(1 + 0.5 / np.sqrt(1.25), abs=0.01)


def test_an_unknown_scenario_is_refused() -> None:
    with pytest.raises(DataError, match="no scenario 'Scenario4'; there are 'Scenario1', 'Scenario2'"):
        simulate("Scenario4")
    assert list(SCENARIOS) == ["Scenario1", "Scenario2", "Scenario3"]
