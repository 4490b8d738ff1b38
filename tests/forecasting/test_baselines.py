import random
import sys
import warnings
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from leapts.errors import ConfigError, DataError
from leapts.forecasting.baselines import Baseline, Naive, SeasonalNaive, StatisticalBaseline, statistical_baselines

ragged = st.lists(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=12), min_size=1, max_size=6)


def flat(series: list[list[float]]) -> tuple[Tensor, Tensor]:
    offsets = torch.tensor([0, *map(len, series)]).cumsum(0)
    return torch.tensor([value for one in series for value in one], dtype=torch.float64), offsets


def noise(*lengths: int, seed: int = 0) -> list[list[float]]:
    rng = np.random.default_rng(seed)
    return [rng.normal(50, 5, length).tolist() for length in lengths]


class Fixed:
    """Stands for a statsforecast model that refuses short series and loses its way on long ones."""

    def forecast(self, *, y: Any, h: int) -> dict[str, Any]:
        if len(y) < 3:
            raise NotImplementedError("tiny datasets")
        if len(y) > 5:
            warnings.warn("divide by zero", RuntimeWarning, stacklevel=1)
        return {"mean": np.full(h, np.nan if len(y) > 6 else y.sum())}


def test_seasonal_naive_by_hand() -> None:
    values, offsets = flat([[1, 2, 3, 4, 5], [7], [8, 9, 10]])
    assert SeasonalNaive(3).forecast(values, offsets, 5).tolist() == [
        [3, 4, 5, 3, 4],
        [7, 7, 7, 7, 7],
        [8, 9, 10, 8, 9],
    ]
    assert Naive().forecast(values, offsets, 2).tolist() == [[5, 5], [7, 7], [10, 10]]


@given(ragged, st.integers(1, 8), st.integers(1, 20))
def test_ragged_series_equal_a_naive_loop(series: list[list[float]], season: int, h: int) -> None:
    expected = []
    for one in series:
        last = one[-season:] if len(one) >= season else one[-1:]
        expected.append([last[step % len(last)] for step in range(h)])
    assert SeasonalNaive(season).forecast(*flat(series), h).tolist() == expected
    assert Naive().forecast(*flat(series), h).tolist() == [[one[-1]] * h for one in series]


@given(ragged, st.integers(1, 4), st.integers(1, 6), st.integers(1, 6))
def test_a_longer_seasonal_naive_forecast_continues_the_shorter(
    series: list[list[float]], season: int, h: int, more: int
) -> None:
    baseline = SeasonalNaive(season)
    assert torch.equal(baseline.forecast(*flat(series), h + more)[:, :h], baseline.forecast(*flat(series), h))


@pytest.mark.parametrize("season", [1, 4, 7])
def test_seasonal_naive_equals_statsforecast(season: int) -> None:
    models = pytest.importorskip("statsforecast.models")
    series = noise(7, 12, 30)
    found = SeasonalNaive(season).forecast(*flat(series), 10)
    for row, one in zip(found, series, strict=True):
        expected = models.SeasonalNaive(season_length=season).forecast(y=np.array(one), h=10)["mean"]
        assert row.numpy() == pytest.approx(expected)


def test_baselines_name_their_columns() -> None:
    baselines: list[Baseline] = [Naive(), SeasonalNaive(12), SeasonalNaive(7, "weekly")]
    assert [baseline.name for baseline in baselines] == ["Naive", "SeasonalNaive", "weekly"]


@pytest.mark.parametrize("baseline", [Naive(), SeasonalNaive(2), StatisticalBaseline(Fixed(), 1, "Fixed")])
def test_what_cannot_be_forecast_is_named(baseline: Baseline) -> None:
    values, offsets = flat([[1.0], [], [2.0]])
    with pytest.raises(DataError, match="1 of 3 series have no value to forecast from, first series 1"):
        baseline.forecast(values, offsets, 2)
    with pytest.raises(ConfigError, match="h=0"):
        baseline.forecast(*flat([[1.0]]), 0)
    with pytest.raises(DataError, match="from 0 to 2"):
        baseline.forecast(values, torch.tensor([0, 1]), 1)


def test_a_season_has_at_least_one_step() -> None:
    with pytest.raises(ConfigError, match="season=0"):
        SeasonalNaive(0)


# Statistical models


def test_series_a_model_refuses_get_the_seasonal_naive_forecast_and_a_warning() -> None:
    series = [[1.0, 2.0, 3.0, 4.0, 5.0], [7.0, 8.0], [1.0] * 6, [0.0, 1.0] * 4]
    baseline = StatisticalBaseline(Fixed(), 2, "Fixed")
    with pytest.warns(UserWarning, match=r"Fixed cannot be fitted to 2 of 4 series, first to series 1 \(.*tiny"):
        found = baseline.forecast(*flat(series), 3)
    assert found.tolist() == [[15, 15, 15], [7, 8, 7], [6, 6, 6], [0, 1, 0]]


def test_a_model_that_fits_no_series_is_an_error() -> None:
    with pytest.raises(DataError, match=r"cannot be fitted to 2 of 2 series.*tiny datasets.*leave it out"):
        StatisticalBaseline(Fixed(), 1, "Fixed").forecast(*flat([[1.0], [1.0, 2.0]]), 3)


def test_statistical_baselines_equal_statsforecast() -> None:
    models = pytest.importorskip("statsforecast.models")
    series = noise(20, 30)
    baselines = statistical_baselines(4)
    assert [baseline.name for baseline in baselines] == ["AutoETS", "AutoTheta"]
    for baseline in baselines:
        found = baseline.forecast(*flat(series), 5)
        for row, one in zip(found, series, strict=True):
            expected = getattr(models, baseline.name)(season_length=4).forecast(y=np.array(one), h=5)["mean"]
            assert row.numpy() == pytest.approx(expected)


def test_short_and_constant_series_get_a_finite_forecast() -> None:
    pytest.importorskip("statsforecast.models")
    series = [*noise(1, 2, 3, 5, 9, 30), [5.0] * 30]
    for baseline in statistical_baselines(4):
        with pytest.warns(UserWarning, match="of 7 series, first to series 0"):
            found = baseline.forecast(*flat(series), 6)
        assert bool(found.isfinite().all())
        assert found[-1].tolist() == pytest.approx([5.0] * 6)


def test_a_missing_extra_speaks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "statsforecast", None)
    with pytest.raises(ImportError, match=r"need: pip install 'leapts\[stats\]'"):
        statistical_baselines(4)


def test_an_unknown_model_is_named() -> None:
    with pytest.raises(ConfigError, match="no baseline 'AutoMagic' of this kind; there are AutoETS, AutoTheta"):
        statistical_baselines(4, ["AutoMagic"])


def _random_states() -> tuple[Any, ...]:
    return random.getstate(), str(np.random.get_state()), torch.get_rng_state().tolist()  # noqa: NPY002


def test_neural_baselines_learn_a_wave_and_keep_series_apart() -> None:
    pytest.importorskip("neuralforecast", reason="neuralforecast is not installed")
    from leapts.forecasting.baselines import NeuralBaseline, neural_baselines

    time = torch.arange(120.0, dtype=torch.float64)
    values = torch.cat([torch.sin(time / 2), 10 + 5 * torch.cos(time[:90] / 3)])
    baselines = neural_baselines(12)
    random.seed(3)
    np.random.seed(3)  # noqa: NPY002 - the generator that others seed
    torch.manual_seed(3)
    before = _random_states()
    for baseline in baselines:
        quick = NeuralBaseline(baseline.model, 12, baseline.name, max_steps=150)
        forecast = quick.forecast(values, torch.tensor([0, 120, 210]), 4)
        ahead = torch.arange(4.0, dtype=torch.float64)
        expected = torch.stack([torch.sin((120 + ahead) / 2), 10 + 5 * torch.cos((90 + ahead) / 3)])
        assert (forecast - expected).abs().mean() < 1.0, baseline.name
    assert _random_states() == before, "the generators of the program are its own"


def test_neural_baselines_that_are_not_there_are_named() -> None:
    from leapts.forecasting.baselines import neural_baselines

    with pytest.raises(ConfigError, match="no baseline 'Oracle' of this kind; there are DLinear, NHITS"):
        neural_baselines(12, models=["Oracle"])
