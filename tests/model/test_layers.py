"""Shared layers against those of torch."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from leapts.model.inference import GroupedLinear, TanhLinear, tanh, tanh_times


def test_tanh_is_the_hyperbolic_tangent() -> None:
    x = torch.linspace(-40, 40, 2001, dtype=torch.float64)
    torch.testing.assert_close(tanh(x), torch.tanh(x))
    torch.testing.assert_close(tanh_times(x, 3 * x), torch.tanh(x) * 3 * x)


@given(sizes=st.lists(st.integers(0, 5), min_size=1, max_size=4))
def test_runs_apply_each_layer_to_its_own_rows(sizes: list[int]) -> None:
    layer = GroupedLinear(len(sizes), 3, 2)
    assert layer.bias is not None
    x = torch.randn(sum(sizes), 3)
    owner = torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))
    expected = torch.einsum("roi,ri->ro", layer.weight[owner], x) + layer.bias[owner]
    torch.testing.assert_close(layer.runs(x, sizes), expected)
    every = layer.every(x)
    torch.testing.assert_close(every[torch.arange(len(x)), owner], expected)


def test_tanh_linear_is_tanh_of_a_linear_layer() -> None:
    layer, x = TanhLinear(5, 3), torch.randn(7, 5)
    torch.testing.assert_close(layer(x), torch.tanh(x @ layer.weight.t()))
