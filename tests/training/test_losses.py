"""Losses: pinball equals its plain formula and utilsforecast's, and unknown targets have no gradient."""

import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from utilsforecast import losses as oracle

from leapts.config import QUANTILES
from leapts.training.losses import huber_loss, pinball_errors, pinball_loss

LEVELS = torch.tensor(QUANTILES, dtype=torch.float64)
Levels = st.lists(st.sampled_from(QUANTILES), min_size=1, max_size=5, unique=True).map(sorted)


def draw(*shape: int, seed: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def plain(forecast: Tensor, target: Tensor, levels: Tensor) -> Tensor:
    """Twice the mean of max(q e, (q - 1) e), over quantiles of known targets; unknown ones count as zero."""
    quantiles = forecast.unflatten(-1, (-1, len(levels)))
    error = target.unflatten(-1, (quantiles.shape[-2], -1)) - quantiles
    loss = torch.maximum(levels * error, (levels - 1) * error)
    return 2 * loss.nan_to_num(0.0).mean()


@given(Levels, st.integers(1, 5), st.integers(1, 4), st.integers(0, 2**31), st.booleans())
@settings(max_examples=60)
def test_pinball_and_its_gradient_are_those_of_the_plain_formula(
    levels: list[float], rows: int, h: int, seed: int, per_quantile: bool
) -> None:
    chosen = torch.tensor(levels, dtype=torch.float64)
    forecast = draw(rows, h * len(levels), seed=seed).requires_grad_()
    target = draw(rows, h * (len(levels) if per_quantile else 1), seed=seed + 1)
    ours, theirs = pinball_loss(forecast, target, chosen), plain(forecast, target, chosen)
    torch.testing.assert_close(ours, theirs)
    (own,), (expected,) = (torch.autograd.grad(3 * loss, forecast, retain_graph=True) for loss in (ours, theirs))
    torch.testing.assert_close(own, expected)
    errors = pinball_errors(forecast, target, chosen)
    assert errors.shape == (rows, h, len(levels))
    torch.testing.assert_close(errors.mean(), theirs)


@pytest.mark.parametrize("level", QUANTILES)
def test_pinball_is_twice_the_quantile_loss_of_utilsforecast(level: float) -> None:
    forecast, target = draw(6, 8, seed=1), draw(6, 8, seed=2)
    ours = pinball_loss(forecast, target, torch.tensor([level], dtype=torch.float64)).item()
    frame = pd.DataFrame({"unique_id": 0, "y": target.flatten(), "q": forecast.flatten()})
    theirs = oracle.quantile_loss(frame, {"model": "q"}, level)["model"].item()
    assert ours == pytest.approx(2 * theirs)


def test_pinball_of_the_median_is_the_absolute_error() -> None:
    forecast, target = draw(6, 8, seed=3), draw(6, 8, seed=4)
    median = torch.tensor([0.5], dtype=torch.float64)
    torch.testing.assert_close(pinball_loss(forecast, target, median), (forecast - target).abs().mean())


@given(st.integers(0, 2**31), st.lists(st.booleans(), min_size=12, max_size=12))
def test_unknown_targets_give_neither_loss_nor_gradient(seed: int, unknown: list[bool]) -> None:
    hidden = torch.tensor(unknown).view(3, 4)
    forecast = draw(3, 4 * len(LEVELS), seed=seed).requires_grad_()
    target = draw(3, 4, seed=seed + 1).masked_fill(hidden, torch.nan)
    loss = pinball_loss(forecast, target, LEVELS)
    torch.testing.assert_close(loss, plain(forecast, target, LEVELS))
    (gradient,) = torch.autograd.grad(loss, forecast)
    assert gradient.isfinite().all()
    rows = gradient.unflatten(1, (4, -1))
    assert (rows[hidden] == 0).all()
    assert (rows[~hidden] != 0).all()
    errors = pinball_errors(forecast, target, LEVELS)
    assert (errors[hidden] == 0).all()
    point = draw(3, 4, seed=seed).requires_grad_()
    (gradient,) = torch.autograd.grad(huber_loss(point, target, delta=0.1), point)
    assert (gradient[hidden] == 0).all()
    assert (gradient[~hidden] != 0).all()


def test_the_least_pinball_loss_is_that_of_the_quantile() -> None:
    target = draw(20_000, 1, seed=5)
    candidates = torch.linspace(-2.5, 2.5, 101, dtype=torch.float64)
    for level in (0.1, 0.5, 0.9):
        chosen = torch.tensor([level], dtype=torch.float64)
        found = [pinball_loss(value.expand(20_000, 1), target, chosen).item() for value in candidates]
        best = candidates[torch.tensor(found).argmin()].item()
        assert best == pytest.approx(target.quantile(level).item(), abs=0.05)
