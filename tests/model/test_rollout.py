"""Rollouts of every variant: leaps tile the horizon, dense equals sparse, rows are independent."""

from dataclasses import fields
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Generator, Tensor

import leapts.model.rollout as segments_module
from leapts.model import ScheduleTrace
from leapts.model.network import Execution, GatedFusion
from tests.model.variants import BRANCHES, HORIZON, N_SERIES, SCHEDULES, make_history, make_model

EVERY_BRANCH = pytest.mark.parametrize(("schedule", "state"), BRANCHES)


def _trace(model: Any, history: Tensor, **options: Any) -> ScheduleTrace:
    trace = model.forecast(history, **options).trace
    assert isinstance(trace, ScheduleTrace)
    return trace


def _assert_same_trace(ours: ScheduleTrace, theirs: ScheduleTrace, tolerance: float) -> None:
    for field in fields(ours):
        a, b = getattr(ours, field.name), getattr(theirs, field.name)
        if isinstance(a, Tensor) and a.is_floating_point():
            torch.testing.assert_close(a, b, atol=tolerance, rtol=tolerance)
        elif isinstance(a, Tensor):
            assert torch.equal(a, b), field.name
        else:
            assert a == b, field.name


@EVERY_BRANCH
@settings(max_examples=10)
@given(seed=st.integers(0, 10_000), explore=st.booleans(), execution=st.sampled_from(["dense", "sparse"]))
def test_leaps_tile_the_horizon_exactly(schedule: str, state: str, seed: int, explore: bool, execution: str) -> None:
    model = make_model(schedule, state, seed)
    generator = Generator().manual_seed(seed) if explore else None
    trace = _trace(model, make_history(seed=seed), generator=generator, execution=execution, record="leaps")
    assert (trace.leaps >= 1).all()
    for start, length in zip(trace.start.flatten(0, 1), trace.length.flatten(0, 1), strict=True):
        taken = int((length > 0).sum())
        assert (length[:taken] > 0).all()
        assert not length[taken:].any()
        assert not start[taken:].any()
        steps = torch.cat([torch.arange(s, s + n) for s, n in zip(start[:taken], length[:taken], strict=True)])
        assert steps.tolist() == list(range(HORIZON))


@settings(max_examples=30)
@given(
    lookback=st.integers(1, 40),
    horizon=st.integers(1, 40),
    max_leaps=st.integers(1, 6),
    kind=st.sampled_from(["hierarchical", "flat", "monte_carlo"]),
    seed=st.integers(0, 1000),
)
def test_leaps_tile_horizons_of_any_size(lookback: int, horizon: int, max_leaps: int, kind: str, seed: int) -> None:
    model = make_model(
        seed=seed, h=horizon, input_size=lookback, scheduling={"kind": kind, "max_leaps": max_leaps}, n_series=None
    )
    trace = _trace(model, make_history(3, seed, lookback=lookback), record="leaps")
    assert (trace.length.sum(-1) == horizon).all()
    assert trace.length.shape[-1] == max_leaps
    begins = trace.length.cumsum(-1) - trace.length
    assert torch.equal(trace.start, begins * trace.taken)


@EVERY_BRANCH
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-6), (torch.float64, 1e-12)])
@pytest.mark.parametrize("explore", [False, True])
def test_dense_and_sparse_agree_in_forecast_and_trace(
    schedule: str, state: str, dtype: torch.dtype, tolerance: float, explore: bool
) -> None:
    model = make_model(schedule, state).to(dtype)
    # In normalized units, since the tolerance is for values of order one.
    history = make_history(16).to(dtype)
    history = history / history.abs().max()
    results = [
        model.forecast(history, Generator().manual_seed(3) if explore else None, execution=execution, record="states")
        for execution in ("dense", "sparse")
    ]
    torch.testing.assert_close(results[0].values, results[1].values, atol=tolerance, rtol=tolerance)
    assert results[0].trace is not None
    assert results[1].trace is not None
    _assert_same_trace(results[0].trace, results[1].trace, 20 * tolerance)


@pytest.mark.parametrize("state", ["factored", "clustered"])
def test_dense_and_sparse_agree_whether_or_not_rows_are_sorted_by_scale(
    state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, history = make_model("hierarchical", state).double(), make_history(40).double()
    dense = model.forecast(history, execution="dense", record="states")
    assert dense.trace is not None
    for min_rows in (0, 10, 10**6):
        monkeypatch.setattr(segments_module, "_MIN_ROWS_TO_SORT", min_rows)
        sparse = model.forecast(history, record="states")
        torch.testing.assert_close(sparse.values, dense.values, atol=1e-12, rtol=1e-12)
        assert sparse.trace is not None
        _assert_same_trace(sparse.trace, dense.trace, 1e-11)


@pytest.mark.parametrize("schedule", ["hierarchical", "flat", "monte_carlo"])
def test_rows_take_different_numbers_of_leaps(schedule: str) -> None:
    """The comparison of the two executions needs rows that finish after different numbers of leaps."""
    leaps = [_trace(make_model(schedule, seed=seed), make_history(64), record="leaps").leaps for seed in range(4)]
    assert len(torch.cat(leaps).unique()) > 2 or schedule == "flat"
    assert len(torch.cat(leaps).unique()) > 1


@EVERY_BRANCH
@pytest.mark.parametrize("execution", ["dense", "sparse"])
def test_forecasts_do_not_depend_on_the_order_of_windows(schedule: str, state: str, execution: Any) -> None:
    model, history = make_model(schedule, state).double(), make_history(9).double()
    order = torch.tensor([4, 8, 0, 2, 6, 1, 3, 7, 5])
    rows = (torch.arange(N_SERIES).unsqueeze(1) * 9 + order).flatten()
    noise = _noise(model, 9 * N_SERIES)
    plain = _forecast_with(model, history, noise, execution)
    shuffled = _forecast_with(model, history[order], None if noise is None else noise[:, rows], execution)
    torch.testing.assert_close(shuffled, plain[order], atol=1e-12, rtol=1e-12)


@EVERY_BRANCH
@pytest.mark.parametrize("execution", ["dense", "sparse"])
def test_a_window_does_not_depend_on_the_rest_of_its_batch(schedule: str, state: str, execution: Any) -> None:
    model, history = make_model(schedule, state).double(), make_history(9).double()
    noise = _noise(model, 9 * N_SERIES)
    together = _forecast_with(model, history, noise, execution)
    for window in range(9):
        own_noise = None if noise is None else noise[:, window::9]
        alone = _forecast_with(model, history[window : window + 1], own_noise, execution)
        torch.testing.assert_close(alone[0], together[window], atol=1e-12, rtol=1e-12)


@EVERY_BRANCH
@pytest.mark.parametrize("execution", ["dense", "sparse"])
@pytest.mark.parametrize("record", ["nothing", "states"])
def test_a_nan_window_is_forecast_as_nan_and_does_not_change_the_others(
    schedule: str, state: str, execution: Any, record: Any
) -> None:
    model, history = make_model(schedule, state), make_history(5)
    whole = model.forecast(history, execution=execution).values
    history[2] = torch.nan
    values = model.forecast(history, execution=execution, record=record).values
    assert values[2].isnan().all()
    others = torch.tensor([0, 1, 3, 4])
    if schedule != "monte_carlo":
        torch.testing.assert_close(values[others], whole[others])
    assert values[others].isfinite().all()


@EVERY_BRANCH
@pytest.mark.parametrize("execution", ["dense", "sparse"])
@pytest.mark.parametrize("record", ["leaps", "states"])
def test_recording_never_changes_the_forecast(schedule: str, state: str, execution: Any, record: Any) -> None:
    model, history = make_model(schedule, state), make_history(30)
    silent = model.forecast(history, execution=execution).values
    assert torch.equal(model.forecast(history, execution=execution, record=record).values, silent)


@EVERY_BRANCH
def test_each_change_of_state_is_the_sum_of_its_contributions(schedule: str, state: str) -> None:
    trace = _trace(make_model(schedule, state).double(), make_history().double(), record="states")
    assert trace.states is not None
    assert trace.control_change is not None
    assert trace.temporal_change is not None
    change = (trace.states[:, :, 1:] - trace.states[:, :, :-1]) * trace.taken.unsqueeze(-1)
    torch.testing.assert_close(change, trace.control_change + trace.temporal_change)
    torch.testing.assert_close(trace.control, trace.control_change.abs().sum(-1))
    torch.testing.assert_close(trace.temporal, trace.temporal_change.abs().sum(-1))


@EVERY_BRANCH
def test_shares_and_probabilities_are_proportions(schedule: str, state: str) -> None:
    trace = _trace(make_model(schedule, state).double(), make_history().double(), record="leaps")
    shares = trace.control_share + trace.temporal_share
    torch.testing.assert_close(shares, trace.taken.double())
    assert (trace.control_share >= 0).all()
    torch.testing.assert_close(trace.probabilities.sum(-1), trace.taken.double())
    if schedule == "hierarchical":
        assert torch.equal(trace.probabilities.argmax(-1), trace.scale)


def test_the_first_state_of_the_trace_is_the_one_the_model_starts_from() -> None:
    model, history = make_model(), make_history()
    trace = _trace(model, history, record="states")
    assert trace.states is not None
    window = model.normalization(history.transpose(0, 1))
    first = model.head(model.encoder(window.values))[..., HORIZON:].transpose(0, 1)
    torch.testing.assert_close(trace.states[:, :, 0], first)


def _noise(model: Any, rows: int) -> Tensor | None:
    noise: Tensor | None = model.fusion.rollout.scheduler.draw(
        rows, torch.zeros(1, dtype=torch.float64), Generator().manual_seed(5)
    )
    return noise


def _forecast_with(model: Any, history: Tensor, noise: Tensor | None, execution: str) -> Tensor:
    """Forecast with the given noise, which a scheduler draws for positions in a batch, not for windows."""
    assert isinstance(model.fusion, GatedFusion)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(model.fusion.rollout.scheduler), "draw", lambda *_: noise)
        values: Tensor = model.forecast(history, execution=execution).values
    return values


@pytest.mark.parametrize("execution", ["dense", "sparse"])
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_recorded_schedule_equals_that_of_the_full_trace(schedule: str, execution: Execution) -> None:
    model, history = make_model(schedule), make_history()
    bare = model.forecast(history, execution=execution, record="schedule")
    full = model.forecast(history, execution=execution, record="leaps")
    assert bare.trace is not None
    assert full.trace is not None
    assert torch.equal(bare.values, full.values)
    for name in ("start", "length", "scale"):
        assert torch.equal(getattr(bare.trace, name), getattr(full.trace, name))
    assert not bare.trace.control.any()
    assert full.trace.control.any()
