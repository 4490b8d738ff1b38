"""Everyday sets: their windows, their scores by hand, and the symmetric intervals of release 0.1."""

import numpy as np
import pandas as pd
import pytest
import torch

from leapts import LeapTS
from leapts.forecasting.held_out import held_out_part
from leapts_bench.everyday import running, sets
from leapts_bench.everyday.forecasters import WIDE_LEVELS, WindowForecast, with_symmetric_intervals
from leapts_bench.everyday.scoring import everyday_scores, independent, outside_of_support
from leapts_bench.gift.series import SeriesSet, Task
from leapts_bench.suites import entries
from tests.bench.published_data import folder_with


def _task(values: list[float], horizon: int, count: int) -> Task:
    return Task("test", SeriesSet.of([np.array(values)]), pd.Timestamp("2020-01-01"), "D", 1, horizon, count)


def test_every_run_has_a_key_of_its_own_and_simple_forecasts_come_first() -> None:
    runs = running.runs()
    assert len({run.key for run in runs}) == len(runs) == len(entries("defaults"))
    assert {run.model for run in runs[:52]} == set(running.SIMPLE)


def test_scores_of_a_window_by_hand() -> None:
    task = _task([0, 1, 2, 3, 4, 10], horizon=2, count=1)  # errors of the last value in the past: 1
    quantiles = np.stack([np.array([3.0 + place, 4.0 + place]) for place in range(len(WIDE_LEVELS))])[None]
    forecast = WindowForecast(np.array([[5.0, 7.0]]), quantiles)
    scores = everyday_scores(task, [forecast])
    assert scores["mase"] == scores["mae"] == pytest.approx((1 + 3) / 2)
    assert scores["coverage_95"] == 1.0  # 3 to 13 and 4 to 14
    assert scores["coverage_80"] == 1.0
    assert scores["crossings"] == 0
    assert scores["pairs"] == 2 * (len(WIDE_LEVELS) - 1)
    assert "coverage_total" not in scores
    turned = everyday_scores(task, [WindowForecast(forecast.point, quantiles[:, ::-1])])
    assert turned["crossings"] == turned["pairs"]
    assert turned["coverage_80"] == 0.0


def test_points_alone_have_no_scores_of_quantiles() -> None:
    task = _task([0, 1, 2, 3, 4, 5], horizon=1, count=2)
    scores = everyday_scores(task, [WindowForecast(np.array([[3.0]])), WindowForecast(np.array([[4.0]]))])
    assert scores == {"mase": 1.0, "mae": 1.0}


def test_quantiles_outside_of_the_support_are_counted_by_the_past_alone() -> None:
    past = SeriesSet.of([np.array([0.0, 2, 3]), np.array([0.5, 1, 2]), np.array([-1.0, 0, 1])])
    quantiles = np.array([[[-1.0, 0.5, 2.0]]] * 3)
    assert outside_of_support(past, quantiles) == 2 + 1 + 0  # a count, a positive series, a real one


def test_independent_draws_keep_each_step_and_lose_its_ties_to_the_others() -> None:
    noise = np.random.default_rng(1).normal(size=(2, 1, 4000))
    paths = np.repeat(noise, 6, axis=1)
    shuffled = independent(paths)
    np.testing.assert_array_equal(np.sort(shuffled, axis=2), np.sort(paths, axis=2))
    assert paths.sum(1).std() / shuffled.sum(1).std() == pytest.approx(6**0.5, rel=0.05)


def test_symmetric_intervals_have_the_point_in_the_middle_and_hold_their_share_of_held_out_windows() -> None:
    draws = np.random.default_rng(2).gumbel(size=(2, 300))
    frame = pd.DataFrame(
        {
            "unique_id": np.repeat(["a", "b"], 300),
            "ds": np.tile(pd.date_range("2020-01-01", periods=300, freq="D"), 2),
            "y": draws.ravel(),
        }
    )
    model = LeapTS(3, loss="huber", support="real", val_size=60, max_steps=20).fit(frame)
    panel = model.read(frame)
    predictor = with_symmetric_intervals(model.predictor_, panel)
    # val_size was given, so there is no automatic one: such a fit has no symmetric intervals.
    assert predictor.calibration is None
    model = LeapTS(3, loss="huber", support="real", max_steps=20).fit(frame)
    predictor = with_symmetric_intervals(model.predictor_, panel)
    point, low, high = predictor.predict(predictor.windows(panel)).columns(level=[80]).values()
    np.testing.assert_allclose((low + high) / 2, point, rtol=1e-5, atol=1e-6)
    held_out = held_out_part(panel, 30, predictor.config)
    assert held_out is not None
    windows = predictor.sliding_windows(held_out)
    batch = windows.gather(torch.arange(len(windows)))
    errors = (predictor.run_network(batch).values - batch.target).abs().flatten(0, 1).numpy()
    half = ((high - low) / 2) / predictor.scaler.std[:, None].numpy()
    assert ((errors <= half[0] + 1e-6).mean(0) >= 0.8).all()


@pytest.mark.parametrize("name", [*sets.SMALL, *sets.M4])
def test_sets_are_read_with_five_windows(name: str) -> None:
    task = sets.load(name, folder_with(sets.files_of(name)))
    assert task.count == sets.WINDOWS
    assert int(task.past(0).lengths.min()) >= 2 * task.horizon
    assert len(task.series) == (sets.M4_SERIES if name in sets.M4 else len(task.series))
