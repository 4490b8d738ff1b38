"""Normalization is reversible and removes the level and spread of a window."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from leapts.config import NormalizationName
from leapts.model.normalization import Normalization, by_last_value, by_mean, masked, shifted, unnormalized
from tests.model.variants import make_history

ALL = [by_mean, by_last_value, shifted, unnormalized]
ADAPTIVE = [by_mean, by_last_value]


@pytest.mark.parametrize("normalization", ALL)
def test_restoring_a_normalized_window_gives_the_window(normalization: Normalization) -> None:
    history = make_history().double()
    window = normalization(history)
    torch.testing.assert_close(window.units.restore(window.values), history)


@pytest.mark.parametrize("normalization", ADAPTIVE)
@given(level=st.floats(-100, 100), spread=st.floats(0.1, 100))
def test_normalization_removes_level_and_spread(normalization: Normalization, level: float, spread: float) -> None:
    history = make_history().double()
    torch.testing.assert_close(normalization(level + spread * history).values, normalization(history).values)


@given(level=st.floats(-100, 100), spread=st.floats(0.1, 100))
def test_a_shifted_window_loses_its_level_and_keeps_its_spread(level: float, spread: float) -> None:
    history = make_history().double()
    torch.testing.assert_close(shifted(level + spread * history).values, spread * shifted(history).values)


def test_centers_are_the_mean_the_last_value_or_zero() -> None:
    history = make_history().double()
    assert torch.equal(by_mean(history).units.center, history.mean(-1, keepdim=True))
    assert torch.equal(by_last_value(history).units.center, history[..., -1:])
    assert torch.equal(shifted(history).units.center, history[..., -1:])
    assert torch.equal(unnormalized(history).values, history)


@pytest.mark.parametrize("normalization", ADAPTIVE)
def test_scale_is_the_population_standard_deviation(normalization: Normalization) -> None:
    history = make_history().double()
    torch.testing.assert_close(normalization(history).units.scale, history.std(-1, correction=0, keepdim=True))


@pytest.mark.parametrize("normalization", ADAPTIVE)
def test_a_constant_window_normalizes_to_zero(normalization: Normalization) -> None:
    window = normalization(torch.full((3, 2, 8), 7.0))
    assert torch.equal(window.values, torch.zeros(3, 2, 8))
    assert torch.equal(window.units.restore(torch.zeros(3, 2, 5)), torch.full((3, 2, 5), 7.0))


@pytest.mark.parametrize(
    ("kind", "plain"), [("mean", by_mean), ("last", by_last_value), ("shift", shifted), ("none", unnormalized)]
)
@given(known=st.integers(1, 8))
def test_a_masked_window_is_normalized_like_its_known_steps_alone(
    kind: NormalizationName, plain: Normalization, known: int
) -> None:
    history = make_history().double()
    steps = history.shape[-1]
    known_steps = torch.arange(steps) >= steps - known
    window, alone = masked(history.masked_fill(~known_steps, torch.nan), kind), plain(history[..., -known:])
    torch.testing.assert_close(window.values[..., steps - known : steps], alone.values)
    assert torch.equal(window.values[..., : steps - known], torch.zeros_like(history[..., known:]))
    assert torch.equal(window.values[..., steps:], known_steps.double().expand_as(history))


def test_a_gap_at_the_end_of_a_masked_window_leaves_its_last_known_value_as_the_center() -> None:
    history = make_history().double()
    gap = history.clone()
    gap[..., -2:] = torch.nan
    assert torch.equal(masked(gap, "last").units.center, history[..., -3:-2])
