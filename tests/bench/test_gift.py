"""GIFT-Eval and fev-bench: SeasonalNaive must score as published, so that our windows and scores are theirs."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from leapts import LeapTS
from leapts_bench import execution
from leapts_bench.gift import fev_bench, forecasters, gift_eval, published, running
from leapts_bench.gift.forecasters import LeapTSDefaults, SeasonalNaive
from leapts_bench.gift.scoring import fev_scores, gift_scores, pinball
from leapts_bench.gift.series import LEVELS, MEDIAN, SeriesSet, Task
from leapts_bench.runs import PublishedRun, parse_run
from tests.bench.published_data import folder_with

TOLERANCE = 1e-5
NAN = float("nan")


LARGE = ("m4_monthly/M/short", "m4_daily/D/short", "jena_weather/10T/short", "ett1/15T/short")


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow) if name in LARGE else name for name in gift_eval.configurations()],
)
def test_seasonal_naive_scores_as_published_on_gift_eval(name: str) -> None:
    task = gift_eval.load(name, folder_with(gift_eval.files_of(name)))
    assert task.horizon == gift_eval.horizon_of(name)
    scores = gift_scores(task, SeasonalNaive().forecasts(task))
    expected = {metric: of[name] for metric, of in published.gift_models()[published.NAIVE].scores.items()}
    assert scores == pytest.approx(expected, rel=TOLERANCE)


@pytest.mark.parametrize("name", fev_bench.tasks())
def test_seasonal_naive_scores_as_published_on_fev_bench(name: str) -> None:
    task = fev_bench.load(name, folder_with(fev_bench.files_of(name)))
    scores = fev_scores(task, SeasonalNaive(history=1000).forecasts(task))
    naive = published.fev_models()[published.FEV_NAIVE].scores
    assert scores == pytest.approx({metric: of[name] for metric, of in naive.items()}, rel=TOLERANCE)


def _task(*series: Sequence[float], horizon: int = 2, count: int = 1, season: int = 1, targets: int = 1) -> Task:
    values = SeriesSet.of([np.array(one, dtype=float) for one in series])
    return Task("made-up/D/short", values, pd.Timestamp("2020-01-01"), "D", season, horizon, count, targets)


def test_windows_are_the_last_ones_and_see_all_that_is_before_them() -> None:
    task = _task([0, 1, 2, 3, 4, 5, 6], [10, 11, 12, 13, 14], count=2)
    first, second = task.windows()
    assert first.past.values.tolist() == [0, 1, 2, 10]
    assert first.actual.tolist() == [[3, 4], [11, 12]]
    assert second.past.values.tolist() == [0, 1, 2, 3, 4, 10, 11, 12]
    assert second.actual.tolist() == [[5, 6], [13, 14]]


def test_a_missing_value_is_filled_from_its_own_series_only() -> None:
    series = SeriesSet.of([np.array([1.0, NAN, 3.0]), np.array([NAN, 5.0, NAN])])
    assert series.filled().values.tolist() == [1, 1, 3, 0, 5, 5]
    assert series.tail(2).values[[0, 2]].tolist() == pytest.approx([NAN, 5.0], nan_ok=True)


def test_seasonal_differences_stay_inside_a_series_and_skip_missing_values() -> None:
    series = SeriesSet.of([np.array([1.0, 2.0, NAN, 5.0, 9.0]), np.array([100.0])])
    means = series.mean_seasonal_difference(1)
    assert means[0] == pytest.approx((1 + 4) / 2)
    assert np.isnan(means[1])


def test_pinball_loss_weighs_both_sides_by_the_level() -> None:
    loss = pinball(np.array([[1.0]]), np.full((1, len(LEVELS), 1), 3.0))
    assert loss[0, :, 0] == pytest.approx([2 * 2 * (1 - level) for level in LEVELS])
    above = pinball(np.array([[3.0]]), np.full((1, len(LEVELS), 1), 1.0))
    assert above[0, :, 0] == pytest.approx([2 * 2 * level for level in LEVELS])


def _repeated(values: list[list[float]]) -> np.ndarray:
    return np.repeat(np.array(values, dtype=float)[:, None], len(LEVELS), axis=1)


def test_gift_scores_skip_missing_actuals_and_constant_series() -> None:
    """Series 1: scale 1, error 1 at its only point. Series 2 is constant: out of MASE, and 3 of 10 in CRPS."""
    task = _task([0, 1, 2, 3, NAN], [5, 5, 5, 5, 5])
    scores = gift_scores(task, [_repeated([[4, 0], [5, 2]])])
    assert scores["mase"] == pytest.approx(1.0)
    assert scores["crps"] == pytest.approx((1 + 3) / 13)


def test_fev_scores_average_over_targets() -> None:
    """Two targets of one item with scales 1 and 2, and errors 1 and 4: MASE (1 + 2) / 2."""
    task = _task([0, 1, 2, 3, 4], [0, 2, 4, 6, 8], targets=2)
    scores = fev_scores(task, [_repeated([[4, 5], [10, 12]])])
    assert scores["mase"] == scores["sql"] == pytest.approx(1.5)
    assert scores["wape"] == scores["wql"] == pytest.approx((1 / 3.5 + 4 / 7) / 2)


def test_leapts_forecasts_quantiles_in_order_for_every_series_and_window(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forecasters, "LeapTS", partial(LeapTS, max_steps=2))
    steps = np.arange(90)
    task = _task((steps % 7).tolist(), (100 + steps % 5).tolist(), [7.0, NAN, 8.0, 6.0] * 20, horizon=3, count=2)
    forecaster = LeapTSDefaults(seed=1, members=2)
    found = list(forecaster.forecasts(task))
    assert [quantiles.shape for quantiles in found] == [(3, len(LEVELS), 3)] * 2
    assert all((np.diff(quantiles, axis=1) >= 0).all() for quantiles in found)
    assert found[0][:, MEDIAN].mean(1) == pytest.approx([3, 102, 7], abs=4)  # series keep their order
    assert forecaster.parameters > 0


def test_runs_have_keys_of_their_own_and_survive_json() -> None:
    runs = [run for benchmark in ("gift", "covariates") for run in running.runs(benchmark)]
    assert len({run.key for run in runs}) == len(runs)
    assert all(parse_run(run.model_dump_json()) == run for run in runs)
    assert {run.dataset for run in runs} == {*gift_eval.configurations(), *fev_bench.tasks()}


def test_a_change_of_defaults_is_a_new_run() -> None:
    run = next(run for run in running.runs("gift") if run.model == running.LEAPTS)
    assert run.model_copy(update={"version": "next"}).key != run.key


def test_a_finished_run_is_not_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = tmp_path / "gift"
    data.mkdir()
    days = pd.date_range("2020-01-01", periods=400)
    y = np.arange(400.0) % 7
    pd.DataFrame({"unique_id": "a", "ds": days, "y": y}).to_parquet(data / "us_births.parquet")
    monkeypatch.setenv("LEAPTS_DATA", str(tmp_path))
    run = PublishedRun(dataset="us_births/D/short", horizon=30, benchmark="gift", model="SeasonalNaive", version="1")
    target = tmp_path / "results" / "gift.jsonl"
    assert execution.pending([run], target) == [run]
    assert "mase" in execution.work(run, target)
    assert execution.work(run, target) == "done before"
    assert execution.pending([run], target) == []


def test_a_run_above_the_time_limit_fails(tmp_path: Path) -> None:
    run = running.runs("gift")[0]
    outcome = execution.in_own_process("work", run, tmp_path / "gift.jsonl", time_limit=0.01)
    assert outcome.returncode == 1
    assert "0.01 s" in outcome.stderr


def test_published_figures_are_complete() -> None:
    models = published.gift_models()
    assert len(models) == 121
    assert all(set(of) == set(gift_eval.configurations()) for one in models.values() for of in one.scores.values())
    assert {one.kind for one in models.values()} == set(published.KINDS)
    for model in published.fev_models().values():
        assert list(model.scores["sql"]) == fev_bench.tasks()
