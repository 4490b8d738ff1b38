import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.preprocessing import StandardScaler

from leapts.data.panel import Panel
from leapts.data.scaling import Scaler
from leapts.errors import DataError


def panel_of(series: list[list[float]]) -> Panel:
    lengths = torch.tensor([0] + [len(values) for values in series])
    return Panel(
        values=torch.tensor([value for values in series for value in values], dtype=torch.float64),
        offsets=lengths.cumsum(0),
        series=tuple(range(len(series))),
        first=np.ones(len(series), dtype=np.int64),
        freq=1,
    )


SERIES = st.lists(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=12), min_size=1, max_size=5)


@pytest.mark.parametrize("value", [0.1, -1e9, 1e-300])
def test_a_long_constant_series_is_constant(value: float) -> None:
    scaler = Scaler.fit(Panel.from_matrix(torch.full((2, 100_000), value, dtype=torch.float64)))
    assert scaler.std.tolist() == [1, 1]
    assert scaler.mean.tolist() == [value, value]


@given(SERIES)
def test_the_inverse_undoes_the_transform(series: list[list[float]]) -> None:
    panel = panel_of(series)
    scaler = Scaler.fit(panel)
    scaled = scaler.transform(panel)
    assert scaled.dtype == torch.float32
    which = torch.arange(len(series)).repeat_interleave(panel.lengths)
    deviation = scaler.std.index_select(0, which)
    restored = Scaler(scaler.mean.index_select(0, which), deviation).inverse(scaled)
    assert ((restored - panel.values).abs() <= 1e-6 * (deviation * (1 + scaled.abs())) + 1e-9).all()


@given(st.lists(st.lists(st.floats(-1e6, 1e6), min_size=4, max_size=4), min_size=2, max_size=5))
def test_statistics_equal_those_of_scikit_learn(series: list[list[float]]) -> None:
    scaler = Scaler.fit(panel_of(series))
    theirs = StandardScaler().fit(np.array(series).T)
    np.testing.assert_allclose(scaler.mean, theirs.mean_, rtol=1e-9, atol=1e-9)
    spread = np.ptp(np.array(series), axis=1) > 1e-6  # near-constant series are where the two may differ
    np.testing.assert_allclose(scaler.std[spread], theirs.scale_[spread], rtol=1e-6)


def test_a_constant_series_has_a_standard_deviation_of_one() -> None:
    panel = panel_of([[0.1] * 7, [1e9] * 3, [0.0]])
    scaler = Scaler.fit(panel)
    assert scaler.std.tolist() == [1, 1, 1]
    assert scaler.transform(panel).abs().max() < 1e-6


@pytest.mark.parametrize("length", [2, 60, 1000])
def test_a_standardized_series_is_not_constant(length: int) -> None:
    noise = np.random.default_rng(length).normal(size=(200, length))
    standardised = (noise - noise.mean(1, keepdims=True)) / noise.std(1, keepdims=True)
    scaler = Scaler.fit(panel_of([*standardised.tolist(), [3.0] * length]))
    assert scaler.constant.tolist() == [False] * 200 + [True]
    np.testing.assert_allclose(scaler.std, 1, rtol=1e-12)


def test_scaling_keeps_small_noise_on_a_large_level() -> None:
    noise = np.random.default_rng(0).normal(size=200)
    panel = panel_of([list(1e9 + noise)])
    scaled = Scaler.fit(panel).transform(panel)
    np.testing.assert_allclose(scaled, (noise - noise.mean()) / noise.std(), atol=1e-5)


@pytest.mark.parametrize("exponent", [-1000, -600, -3, 90])
def test_a_power_of_two_scales_the_statistics_exactly(exponent: int) -> None:
    values = np.random.default_rng(0).normal([[5.0], [0.0]], size=(2, 40))
    plain, scaled = (Scaler.fit(panel_of((values * factor).tolist())) for factor in (1.0, 2.0**exponent))
    assert torch.equal(scaled.mean, plain.mean * 2.0**exponent)
    assert torch.equal(scaled.std, plain.std * 2.0**exponent)


def test_the_inverse_keeps_the_shape_of_forecasts() -> None:
    scaler = Scaler(torch.tensor([1.0, 2.0]).double(), torch.tensor([10.0, 20.0]).double())
    forecast = scaler.inverse(torch.ones(2, 3, 4))
    assert forecast.shape == (2, 3, 4)
    assert forecast[:, 0, 0].tolist() == [11, 22]


def test_series_are_centered_on_their_last_values_or_own_means_with_an_unchanged_deviation() -> None:
    panel = panel_of([[1.0, 2.0, 6.0], [5.0]])
    fitted = Scaler(torch.zeros(2).double(), torch.tensor([3.0, 4.0]).double())
    for scaler, center in ((fitted.from_last_values(panel), [6, 5]), (fitted.from_own_means(panel), [3, 5])):
        assert scaler.mean.tolist() == center
        assert scaler.std.tolist() == [3, 4]


def test_only_constant_series_take_the_scaling_of_another_scaler() -> None:
    fitted, other = (Scaler.fit(panel_of(series)) for series in ([[2.0, 2.0], [0.0, 4.0]], [[0.0, 6.0], [8.0, 10.0]]))
    mixed = fitted.where_constant(other)
    assert mixed.mean.tolist() == [3, 2]
    assert mixed.std.tolist() == [3, 2]


def test_a_series_without_training_values_is_refused() -> None:
    with pytest.raises(DataError, match="series 1 has no value in the training part"):
        Scaler.fit(panel_of([[1.0], []]))
