"""Schedulers: exact values forward, soft gradients backward, lengths inside their intervals."""

import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from leapts.model.schedulers import (
    FixedStepScheduler,
    FlatScheduler,
    HierarchicalController,
    MonteCarloScheduler,
    ScaleGrid,
    Scheduler,
    executed_length,
    straight_through,
)

LOOKBACK, HORIZON, HIDDEN, ROWS = 16, 12, 8, 64
GRID = ScaleGrid.for_window(LOOKBACK, HORIZON)


def _controller(temperature: float = 1.0) -> HierarchicalController:
    torch.manual_seed(0)
    return HierarchicalController(GRID, hidden=HIDDEN, max_leaps=4, temperature=temperature).double()


def _hidden(scale: float = 3.0) -> torch.Tensor:
    return scale * torch.randn(ROWS, HIDDEN, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def test_straight_through_has_the_hard_value_exactly_and_the_soft_gradient() -> None:
    soft = torch.randn(50, requires_grad=True)
    hard = soft.detach().round()
    out = straight_through(hard, soft)
    assert torch.equal(out, hard)
    (gradient,) = torch.autograd.grad((out * torch.arange(50)).sum(), soft)
    assert torch.equal(gradient, torch.arange(50.0))


def test_gradient_of_the_executed_length_is_that_of_the_continuous_one() -> None:
    length = (12 * torch.rand(50)).requires_grad_()
    out = executed_length(length, torch.full((50,), 7.0))
    assert torch.equal(out, length.detach().round().clamp(max=7))
    (gradient,) = torch.autograd.grad(out.sum(), length)
    assert torch.equal(gradient, torch.ones(50))


def test_gradient_of_the_scale_equals_that_of_the_soft_distribution() -> None:
    controller, hidden = _controller(temperature=0.7), _hidden()
    remaining = torch.full((ROWS,), float(HORIZON), dtype=torch.float64)
    noise = controller.draw(ROWS, hidden, torch.Generator().manual_seed(2))
    assert noise is not None
    direction = torch.randn(ROWS, 3, dtype=torch.float64)
    hard = controller.decide(hidden, remaining, noise[0]).weights
    scale_logits = controller.logits(hidden)[:, :3]
    soft = torch.softmax((scale_logits + noise[0]) / 0.7, 1)
    ours = torch.autograd.grad((hard * direction).sum(), controller.logits.weight)[0]
    theirs = torch.autograd.grad((soft * direction).sum(), controller.logits.weight)[0]
    torch.testing.assert_close(ours, theirs)
    assert torch.equal(hard, F.one_hot(soft.argmax(1), 3).double())


def test_the_length_lies_in_the_interval_of_its_scale() -> None:
    controller = _controller()
    for spread in (0.1, 3.0, 100.0):
        choice = controller.choose(_hidden(spread), torch.full((ROWS,), float(HORIZON), dtype=torch.float64), None)
        assert (choice.length >= torch.tensor(GRID.shortest)[choice.scale]).all()
        assert (choice.length <= torch.tensor(GRID.longest)[choice.scale]).all()
        assert torch.equal(choice.length, choice.length.round())


def test_every_scale_is_chosen_by_some_state_and_by_some_noise() -> None:
    controller, remaining = _controller(), torch.full((ROWS,), float(HORIZON), dtype=torch.float64)
    assert set(controller.choose(_hidden(), remaining, None).scale.tolist()) == {0, 1, 2}
    noise = controller.draw(ROWS, _hidden(), torch.Generator().manual_seed(0))
    assert noise is not None
    still = torch.zeros(ROWS, HIDDEN, dtype=torch.float64)
    assert set(controller.choose(still, remaining, noise[0]).scale.tolist()) == {0, 1, 2}


def test_gumbel_noise_samples_scales_with_their_probabilities() -> None:
    controller = HierarchicalController(GRID, hidden=1, max_leaps=1, temperature=1.0)
    hidden = torch.ones(200_000, 1)
    noise = controller.draw(len(hidden), hidden, torch.Generator().manual_seed(0))
    assert noise is not None
    choice = controller.choose(hidden, torch.full((len(hidden),), 12.0), noise[0])
    shares = torch.bincount(choice.scale, minlength=3) / len(hidden)
    torch.testing.assert_close(shares, controller.probabilities(hidden[:1], choice.scale[:1])[0], atol=0.005, rtol=0)


def test_without_a_generator_only_monte_carlo_draws_and_repeatably() -> None:
    like = _hidden()
    assert _controller().draw(ROWS, like, None) is None
    without_luck: list[Scheduler] = [
        FlatScheduler(GRID, hidden=HIDDEN, max_leaps=3),
        FixedStepScheduler(GRID, step=5),
    ]
    assert all(scheduler.draw(ROWS, like, None) is None for scheduler in without_luck)
    first = MonteCarloScheduler(GRID, max_leaps=3, seed=4).draw(ROWS, like, None)
    again = MonteCarloScheduler(GRID, max_leaps=3, seed=4).draw(ROWS, like, None)
    other = MonteCarloScheduler(GRID, max_leaps=3, seed=5).draw(ROWS, like, None)
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_monte_carlo_repeats_differ_and_the_same_seed_repeats_them() -> None:
    scheduler = MonteCarloScheduler(GRID, max_leaps=3, seed=0)
    generator = torch.Generator().manual_seed(7)
    draws = [scheduler.draw(ROWS, _hidden(), generator) for _ in range(3)]
    assert not torch.equal(draws[0], draws[1])
    generator.manual_seed(7)
    assert all(torch.equal(scheduler.draw(ROWS, _hidden(), generator), draw) for draw in draws)


def test_monte_carlo_lengths_are_uniform_over_the_remaining_steps() -> None:
    scheduler = MonteCarloScheduler(GRID, max_leaps=1, seed=0)
    rows = 120_000
    noise = scheduler.draw(rows, torch.zeros(1), None)[0]
    length = scheduler.choose(torch.zeros(rows, 1), torch.full((rows,), 6.0), noise).length
    shares = torch.bincount(length.long(), minlength=7)[1:] / rows
    torch.testing.assert_close(shares, torch.full((6,), 1 / 6), atol=0.005, rtol=0)


def test_a_given_length_belongs_to_the_first_scale_that_reaches_it() -> None:
    for step in range(1, HORIZON + 1):
        scheduler = FixedStepScheduler(GRID, step=step)
        scale = scheduler.choose(torch.zeros(1, 1), torch.tensor([12.0]), None).scale
        assert scale.item() == next(i for i, longest in enumerate(GRID.longest) if step <= longest)


@given(step=st.integers(1, 40), horizon=st.integers(1, 40))
def test_a_fixed_step_allows_the_leaps_it_needs(step: int, horizon: int) -> None:
    leaps = FixedStepScheduler(ScaleGrid.single_level(horizon), step=step).max_leaps
    assert (leaps - 1) * step < horizon <= leaps * step


@given(seed=st.integers(0, 10_000), remaining=st.integers(0, HORIZON))
def test_decide_and_choose_agree(seed: int, remaining: int) -> None:
    torch.manual_seed(seed)
    schedulers: list[Scheduler] = [
        _controller(),
        FlatScheduler(GRID, hidden=HIDDEN, max_leaps=3).double(),
        MonteCarloScheduler(GRID, max_leaps=3, seed=seed),
        FixedStepScheduler(GRID, step=5),
    ]
    hidden = torch.randn(ROWS, HIDDEN, dtype=torch.float64)
    left = torch.full((ROWS,), float(remaining), dtype=torch.float64)
    for scheduler in schedulers:
        noise = scheduler.draw(ROWS, hidden, torch.Generator().manual_seed(seed))
        own_noise = None if noise is None else noise[0]
        decision, choice = scheduler.decide(hidden, left, own_noise), scheduler.choose(hidden, left, own_noise)
        assert torch.equal(decision.weights.argmax(1), choice.scale)
        assert torch.equal(decision.length, choice.length)
        assert (choice.length <= left).all()
        assert remaining == 0 or (choice.length >= 1).all()
