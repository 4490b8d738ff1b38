"""The law of every generator: spectrum, stationarity, support."""

import numpy as np
import pytest
from scipy.stats import ks_2samp

from leapts_pretrain.blocks import Block
from leapts_pretrain.generators import GENERATORS, generate
from leapts_pretrain.generators.arima import RADIUS, fractional_weights, integrate_seasonally, polynomial
from leapts_pretrain.generators.chaos import SYSTEMS, henon_map, logistic_map, lorenz, mackey_glass
from leapts_pretrain.generators.components import PROFILES, level_shifts, noise, profile, trend, with_outliers
from leapts_pretrain.generators.diffusion import ornstein_uhlenbeck
from leapts_pretrain.generators.events import intermittent_demand, pulses, steps
from leapts_pretrain.generators.gaussian_process import composed_kernel, embedded_spectrum, sample_stationary


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.mark.parametrize("name", GENERATORS)
def test_a_generator_is_seeded_finite_and_varied(name: str) -> None:
    first, again, other = (GENERATORS[name].generate(np.random.default_rng(seed), 50, 300) for seed in (1, 1, 2))
    assert first.shape == (50, 300)
    assert first.dtype == np.float32
    assert np.isfinite(first).all()
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    assert len(np.unique(first[:, ::7], axis=0)) >= 45  # nearly all series differ


def test_shares_sum_to_one_and_a_block_is_standardized(rng: np.random.Generator) -> None:
    assert sum(entry.share for entry in GENERATORS.values()) == pytest.approx(1)
    block = generate(rng, 200, 256)
    np.testing.assert_allclose(block.mean(axis=1), 0, atol=1e-4)
    varied = block.std(axis=1) > 0
    assert varied.mean() > 0.98
    np.testing.assert_allclose(block[varied].std(axis=1), 1, atol=1e-3)


def test_inverse_roots_are_uniform_by_area_in_the_disk(rng: np.random.Generator) -> None:
    moduli = np.abs([np.roots(polynomial(rng, 2, RADIUS)[:-1]) for _ in range(2_000)])
    assert moduli.max() <= RADIUS + 1e-6
    assert np.mean(moduli**2) == pytest.approx(RADIUS**2 / 2, rel=0.03)


def test_fractional_differencing_undoes_fractional_integration() -> None:
    product = np.convolve(fractional_weights(0.4, 100), fractional_weights(-0.4, 100))[:100]
    np.testing.assert_allclose(product, np.eye(1, 100)[0], atol=1e-6)


def test_a_seasonal_path_without_shocks_repeats_its_season(rng: np.random.Generator) -> None:
    path = integrate_seasonally(rng, np.zeros((3, 100), np.float32), 7)
    np.testing.assert_allclose(path[:, 7 * 3 :], path[:, : -7 * 3], atol=0.05)
    assert path[:, :7].std() > 0.5


def test_a_gaussian_process_has_the_covariance_of_its_kernel(rng: np.random.Generator) -> None:
    lags = np.arange(257, dtype=np.float32)
    covariance = np.exp(-0.5 * (lags / 10) ** 2) + 0.5 * np.cos(2 * np.pi * lags / 16).astype(np.float32)
    paths = sample_stationary(rng, covariance, 20_000, 128)
    taper = np.exp(-0.5 * (lags * 3 / 256) ** 2)
    measured = [np.mean(paths[:, 0] * paths[:, lag]) for lag in (0, 4, 8, 16, 32)]
    np.testing.assert_allclose(measured, (covariance * taper)[[0, 4, 8, 16, 32]], atol=0.05)


def test_the_spectrum_of_a_composed_kernel_needs_little_clipping(rng: np.random.Generator) -> None:
    for _ in range(50):
        for covariance in composed_kernel(rng, 256):
            spectrum = embedded_spectrum(covariance)
            variance = np.concatenate([spectrum, spectrum[1:-1]]).mean()  # over the whole circle
            assert variance == pytest.approx(covariance[0], rel=0.03, abs=1e-3)


@pytest.mark.parametrize("kind", PROFILES)
def test_the_spectrum_of_a_repeated_profile_is_at_its_harmonics(kind: str, rng: np.random.Generator) -> None:
    season = profile(rng, kind, 5, 16)
    power = np.abs(np.fft.rfft(np.tile(season, 8))) ** 2
    assert power[:, np.arange(power.shape[1]) % 8 != 0].max() < 1e-6 * power.max()
    np.testing.assert_allclose(season.std(axis=1), 1, atol=1e-3)


def test_trends_are_smooth_but_for_breaks(rng: np.random.Generator) -> None:
    bends = np.abs(np.diff(trend(rng, 200, 500), n=2, axis=1))
    assert np.median(bends.max(axis=1)) < 0.05
    assert np.median(bends) < 1e-3


def test_noise_is_stationary(rng: np.random.Generator) -> None:
    values = noise(rng, 2_000, 500)
    assert ks_2samp(values[:, 250], values[:, -1]).pvalue > 0.001
    assert abs(values.mean()) < 0.05


def test_outliers_lie_three_to_eight_standard_deviations_off(rng: np.random.Generator) -> None:
    block = rng.standard_normal((100, 400)).astype(np.float32)
    added = np.abs(with_outliers(rng, block) - block) / block.std(axis=1, keepdims=True)
    hit = added > 1e-3
    assert 0 < hit.mean() < 0.02
    assert added[hit].min() > 2.9
    assert added[hit].max() < 8.1


def test_levels_jump_rarely_and_stay(rng: np.random.Generator) -> None:
    jumps = (np.diff(level_shifts(rng, 300, 400), axis=1) != 0).sum(axis=1)
    assert 1 < jumps.mean() < 8
    assert steps(rng, 20, 400).std() > 0


def test_pulses_are_rare_and_large(rng: np.random.Generator) -> None:
    block = pulses(rng, 500, 512)
    distance = np.abs(block - np.median(block, axis=1, keepdims=True))
    kurtosis = np.mean((block - block.mean(axis=1, keepdims=True)) ** 4, axis=1) / block.var(axis=1) ** 2
    assert np.median(kurtosis) > 5  # 3 for normal numbers
    assert (distance.max(axis=1) > np.median(distance, axis=1)).all()


def test_demand_is_zero_or_a_whole_number(rng: np.random.Generator) -> None:
    demand = intermittent_demand(rng, 300, 365)
    assert (demand >= 0).all()
    np.testing.assert_array_equal(demand, np.round(demand))
    assert 0.5 < np.mean(demand == 0) < 0.95


def test_a_diffusion_is_stationary_and_has_memory(rng: np.random.Generator) -> None:
    paths = ornstein_uhlenbeck(rng, 3_000, 300)
    assert ks_2samp(paths[:, 0], paths[:, -1]).pvalue > 0.001
    assert np.median([np.corrcoef(path[:-1], path[1:])[0, 1] for path in paths[:200]]) > 0.8


def test_maps_and_delays_satisfy_their_equations(rng: np.random.Generator) -> None:
    x = np.asarray(henon_map(rng, 40, 300))
    rate = (1 + 0.3 * x[:-2] - x[2:]) / x[1:-1] ** 2
    assert np.all((np.median(rate, axis=0) >= 1.0) & (np.median(rate, axis=0) <= 1.4))
    y = np.asarray(logistic_map(rng, 40, 300))
    rate = y[1:] / (y[:-1] * (1 - y[:-1]))
    np.testing.assert_allclose(rate, np.broadcast_to(rate[0], rate.shape), rtol=1e-6)
    assert np.all((y > 0) & (y < 1))
    z = mackey_glass(rng, 40, 2_000)
    assert np.all((z > 0) & (z < 2))


def test_lorenz_stays_on_its_attractor(rng: np.random.Generator) -> None:
    paths = np.asarray(lorenz(rng, 30, 2_000))[200:]
    assert np.abs(paths).max() < 80
    assert paths.std(axis=0).min() > 3
    assert set(SYSTEMS) >= {"lorenz", "rossler", "mackey_glass", "logistic_map"}


def _power(block: Block) -> Block:
    return np.abs(np.fft.rfft(block - block.mean(axis=1, keepdims=True), axis=1)) ** 2


def test_rossler_oscillates_at_few_frequencies(rng: np.random.Generator) -> None:
    power = _power(np.asarray(SYSTEMS["rossler"](rng, 30, 2_148))[100:].T.astype(np.float32))
    assert np.median(np.sort(power, axis=1)[:, -60:].sum(axis=1) / power.sum(axis=1)) > 0.8
