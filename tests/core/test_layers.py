"""A bank of layers equals its members one by one."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from leapts.core.activations import squash, squash_times
from leapts.core.layers import LinearBank, SquashedLinear


def test_squash_is_the_hyperbolic_tangent() -> None:
    x = torch.linspace(-40, 40, 2001, dtype=torch.float64)
    torch.testing.assert_close(squash(x), torch.tanh(x))
    torch.testing.assert_close(squash_times(x, 3 * x), torch.tanh(x) * 3 * x)


@given(sizes=st.lists(st.integers(0, 5), min_size=1, max_size=4))
def test_runs_apply_each_member_to_its_own_rows(sizes: list[int]) -> None:
    bank = LinearBank(len(sizes), 3, 2)
    assert bank.bias is not None
    x = torch.randn(sum(sizes), 3)
    owner = torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))
    expected = torch.einsum("roi,ri->ro", bank.weight[owner], x) + bank.bias[owner]
    torch.testing.assert_close(bank.runs(x, sizes), expected)
    every = bank.every(x)
    torch.testing.assert_close(every[torch.arange(len(x)), owner], expected)


def test_a_squashed_layer_is_the_hyperbolic_tangent_of_a_linear_one() -> None:
    layer, x = SquashedLinear(5, 3), torch.randn(7, 5)
    torch.testing.assert_close(layer(x), torch.tanh(x @ layer.weight.t()))
