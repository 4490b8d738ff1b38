"""Sample paths: marginals of the quantiles, dependence of held-out windows, seeds."""

from dataclasses import replace
from statistics import NormalDist
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from leapts import LeapTS
from leapts.config import QUANTILES
from leapts.errors import ConfigError
from leapts.forecasting.forecast import Samples
from leapts.forecasting.intervals import quantile_at
from leapts.forecasting.samples import draw_paths, held_out_scores
from tests.forecasting.frames import MULTIVARIATE, UNIVARIATE, H, make_forecaster, make_frame

NORMAL = torch.tensor([NormalDist().inv_cdf(level) for level in QUANTILES], dtype=torch.float64)


def walks(windows: int, series: int, h: int, *, rho: float, seed: int) -> Tensor:
    """AR(1) paths of variance 1 at every step."""
    generator = torch.Generator().manual_seed(seed)
    noise = torch.randn(windows, series, h, generator=generator, dtype=torch.float64)
    steps = [noise[..., 0]]
    for step in range(1, h):
        steps.append(rho * steps[-1] + (1 - rho**2) ** 0.5 * noise[..., step])
    return torch.stack(steps, -1)


def skewed(series: int, h: int, seed: int) -> Tensor:
    """Rising quantiles of every series and step, far from normal."""
    generator = torch.Generator().manual_seed(seed)
    increments = torch.rand(series, h, len(QUANTILES), generator=generator, dtype=torch.float64) ** 3
    return increments.cumsum(-1) - 2


@given(st.integers(0, 2**31), st.sampled_from([0.0, 0.5, 0.95]))
@settings(max_examples=10, deadline=None)
def test_the_marginals_of_paths_are_the_quantiles(seed: int, rho: float) -> None:
    quantiles = skewed(2, 3, seed)
    scores = walks(200, 1, 3, rho=rho, seed=seed).half()
    paths = draw_paths(quantiles, QUANTILES, scores, count=4000, seed=seed)
    assert paths.shape == (2, 3, 4000)
    for level in (0.1, 0.35, 0.5, 0.9):
        below = (paths <= quantile_at(quantiles, QUANTILES, level).unsqueeze(-1)).double().mean(-1)
        assert (below - level).abs().max() < 5 * (level * (1 - level) / 4000) ** 0.5


def test_sums_over_a_path_are_as_uncertain_as_the_sums_that_came() -> None:
    """An AR(1) process: independent draws give sums that are far too certain."""
    h, rho = 24, 0.9
    quantiles = NORMAL.expand(1, h, -1)
    scores = held_out_scores(NORMAL.expand(250, 1, h, -1), walks(250, 1, h, rho=rho, seed=1), QUANTILES)
    sums = draw_paths(quantiles, QUANTILES, scores, count=4000, seed=2).sum(1).flatten()
    actual = walks(4000, 1, h, rho=rho, seed=3).sum(-1).flatten()

    def coverage(low: float, high: float) -> float:
        return float(((low <= actual) & (actual <= high)).double().mean())

    assert coverage(*(sums.quantile(level).item() for level in (0.1, 0.9))) == pytest.approx(0.8, abs=0.05)
    independent = walks(4000, 1, h, rho=0.0, seed=4).sum(-1).flatten()
    assert coverage(*(independent.quantile(level).item() for level in (0.1, 0.9))) < 0.5


def test_without_held_out_windows_all_steps_move_together() -> None:
    """The cautious assumption: sums are as uncertain as they can be."""
    paths = draw_paths(NORMAL.expand(1, 5, -1), QUANTILES, None, count=200, seed=1)[0]
    torch.testing.assert_close(paths, paths[:1].expand_as(paths), atol=1e-5, rtol=1e-5)


def test_series_of_a_multivariate_model_depend_on_each_other() -> None:
    same = walks(200, 1, 6, rho=0.5, seed=5).expand(-1, 2, -1)
    opposite = same * torch.tensor([1.0, -1.0]).view(1, 2, 1)
    quantiles = NORMAL.expand(2, 6, -1)
    for scores, sign in ((same, 1), (opposite, -1)):
        paths = draw_paths(quantiles, QUANTILES, scores.half(), count=2000, seed=6)
        found = torch.corrcoef(paths[:, 0])[0, 1].item()
        assert sign * found > 0.9
    independent = draw_paths(quantiles, QUANTILES, same[:, :1].half(), count=2000, seed=6)
    assert abs(torch.corrcoef(independent[:, 0])[0, 1].item()) < 0.1


def test_scores_are_the_normal_quantiles_of_the_levels_that_targets_had() -> None:
    quantiles = skewed(4, 3, seed=7).unsqueeze(0)
    for place in range(len(QUANTILES)):
        found = held_out_scores(quantiles, quantiles[..., place], QUANTILES)
        torch.testing.assert_close(
            found.double(), torch.full_like(found, float(NORMAL[place])).double(), atol=2e-3, rtol=1e-3
        )
    far = held_out_scores(quantiles, torch.full((1, 4, 3), 1e9), QUANTILES)
    assert (far == 4).all()


def test_constant_quantiles_have_scores_and_paths() -> None:
    flat = torch.zeros(1, 1, 3, len(QUANTILES), dtype=torch.float64)
    scores = held_out_scores(flat, torch.zeros(1, 1, 3), QUANTILES)
    assert scores.isfinite().all()
    assert (draw_paths(flat[0], QUANTILES, scores, count=9, seed=0) == 0).all()


# The estimator


@pytest.fixture(scope="module", params=[UNIVARIATE, MULTIVARIATE], ids=["univariate", "multivariate"])
def fitted(request: pytest.FixtureRequest) -> LeapTS:
    options: dict[str, Any] = request.param
    return make_forecaster(val_size=40, **options).fit(make_frame())


def test_seeds_reproduce_paths(fitted: LeapTS) -> None:
    first, again = (fitted.predict(n_samples=5, random_seed=3) for _ in range(2))
    pd.testing.assert_frame_equal(first, again)
    assert list(first.columns[2:]) == ["LeapTS", *(f"LeapTS-sample-{number}" for number in range(1, 6))]
    other = fitted.predict(n_samples=5, random_seed=4)
    assert not np.allclose(first["LeapTS-sample-1"], other["LeapTS-sample-1"])
    pd.testing.assert_frame_equal(fitted.predict(n_samples=0), fitted.predict())


def test_paths_of_a_model_have_its_quantiles(fitted: LeapTS) -> None:
    forecast = fitted.predict(level=[80], n_samples=2000)
    paths = forecast.filter(like="-sample-").to_numpy()
    for column, level in (("LeapTS-lo-80", 0.1), ("LeapTS", 0.5), ("LeapTS-hi-80", 0.9)):
        below = (paths <= forecast[[column]].to_numpy()).mean(1)
        np.testing.assert_allclose(below, level, atol=0.05)


def test_selected_series_keep_their_paths(fitted: LeapTS) -> None:
    predictor = fitted.predictor_
    forecast = predictor.predict(predictor.windows(predictor.tail))
    samples = Samples(3, 1)
    whole = forecast.sample_paths(samples)
    assert torch.equal(forecast.select(["a", "b", "c"]).sample_paths(samples), whole)
    some = forecast.select(["c", "a"])
    assert some.sample_paths(samples).shape == (2, H, 3)
    if predictor.is_multivariate:  # the same random numbers move all series
        torch.testing.assert_close(some.sample_paths(samples), whole[[2, 0]], atol=1e-4, rtol=1e-4)


def test_a_whole_number_of_samples_is_drawn(fitted: LeapTS) -> None:
    assert fitted.predict(n_samples=np.int64(2)).shape[1] == 5  # type: ignore[call-overload]
    for bad in (1.5, -1, 100_001, 10**9, 10**30):
        with pytest.raises(ConfigError, match="n_samples"):
            fitted.predict(n_samples=bad)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="random_seed"):
        fitted.predict(n_samples=1, random_seed=-1)


def test_paths_that_no_memory_holds_are_refused(fitted: LeapTS) -> None:
    predictor = fitted.predictor_
    forecast = predictor.predict(predictor.windows(predictor.tail))
    wide = replace(forecast, values=torch.zeros(1).expand(1_000_000, H))
    with pytest.raises(ConfigError, match=r"n_samples=100000: .*1,000,000 series.*fewer series"):
        wide.sample_paths(Samples(100_000, 1))


def test_point_forecasts_without_calibration_have_no_paths() -> None:
    model = make_forecaster(val_size=0, loss="huber", **UNIVARIATE).fit(make_frame())
    with pytest.raises(ConfigError, match="no windows were held out"):
        model.predict(n_samples=3)
