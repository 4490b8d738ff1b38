"""The soft mask, its gradient, its look-up table, and the segment heads."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import leapts.model.rollout as segments
from leapts.model.inference import GroupedLinear, Mlp
from leapts.model.rollout import SegmentHeads, mask_table, soft_segment_mask

HORIZON = 12
STEPS = torch.arange(float(HORIZON))


@given(start=st.integers(0, HORIZON), length=st.floats(0.0, HORIZON), sharpness=st.floats(0.05, 3.0))
def test_gradient_of_the_mask_equals_the_closed_form_of_the_paper(start: int, length: float, sharpness: float) -> None:
    at = torch.tensor([float(start)], dtype=torch.float64)
    long = torch.tensor([length], dtype=torch.float64, requires_grad=True)
    jacobian = torch.autograd.functional.jacobian(
        lambda x: soft_segment_mask(STEPS.double(), at, x, sharpness=sharpness), long
    ).flatten()
    steps = torch.arange(HORIZON, dtype=torch.float64)
    sigma = torch.sigmoid((length - (steps - start) - 0.5) / sharpness)
    torch.testing.assert_close(jacobian, (steps >= start) * sigma * (1 - sigma) / sharpness)


@given(start=st.integers(0, HORIZON), length=st.integers(1, HORIZON), sharpness=st.floats(0.05, 3.0))
def test_mask_is_zero_before_the_start_and_crosses_one_half_at_the_end(
    start: int, length: int, sharpness: float
) -> None:
    at, long = torch.tensor([float(start)]), torch.tensor([float(length)])
    mask = soft_segment_mask(STEPS, at, long, sharpness=sharpness)[0]
    if start == 0:
        assert torch.equal(soft_segment_mask(STEPS, None, long, sharpness=sharpness)[0], mask)
    assert (mask[:start] == 0).all()
    assert (mask[start : start + length] > 0.5).all()
    assert (mask[start + length :] < 0.5).all()


def test_a_finished_row_masks_to_zero() -> None:
    mask = soft_segment_mask(STEPS, torch.tensor([12.0]), torch.tensor([0.0]), sharpness=0.5)
    assert torch.equal(mask, torch.zeros(1, HORIZON))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_table_holds_the_mask_of_every_start_and_length(dtype: torch.dtype) -> None:
    table = mask_table(HORIZON, 0.5, 1, dtype, torch.device("cpu"))
    start, end = (x.flatten() for x in torch.meshgrid(*[torch.arange(HORIZON + 1)] * 2, indexing="ij"))
    start, end = start[end > start], end[end > start]
    looked_up = table.until_end[HORIZON - end] * table.from_start[HORIZON - start]
    computed = soft_segment_mask(STEPS.to(dtype), start.to(dtype), (end - start).to(dtype), sharpness=0.5)
    torch.testing.assert_close(looked_up, computed)


@pytest.mark.parametrize("outputs", [2, 3])
def test_a_step_with_several_outputs_has_its_mask_for_each_of_them(outputs: int) -> None:
    start, length = torch.tensor([0.0, 4.0]), torch.tensor([3.0, 5.0])
    mask = soft_segment_mask(STEPS, start, length, sharpness=0.5)
    several = soft_segment_mask(STEPS.repeat_interleave(outputs), start, length, sharpness=0.5)
    torch.testing.assert_close(several.view(2, HORIZON, outputs), mask[:, :, None].expand(-1, -1, outputs))
    table = mask_table(HORIZON, 0.5, 1, torch.float32, torch.device("cpu"))
    wide = mask_table(HORIZON, 0.5, outputs, torch.float32, torch.device("cpu"))
    for one, many in zip(table, wide, strict=True):
        assert torch.equal(many.view(*one.shape, outputs), one[..., None].expand(-1, -1, outputs))


@pytest.mark.parametrize("scales", [1, 2, 3])
@pytest.mark.parametrize("min_rows", [0, 256])
def test_the_chosen_segment_is_the_blend_with_all_weight_on_the_choice(
    scales: int, min_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segments, "_MIN_ROWS_TO_SORT", min_rows)
    heads = SegmentHeads(Mlp(4, 4, layers=2), GroupedLinear(scales, 4, 6))
    hidden = torch.randn(40, 4)
    for scale in (torch.arange(40) % scales, torch.zeros(40, dtype=torch.int64)):
        weights = torch.nn.functional.one_hot(scale, scales).float()
        torch.testing.assert_close(heads.chosen(hidden, scale), heads.blend(hidden, weights))
