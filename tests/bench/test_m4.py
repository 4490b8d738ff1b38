"""M4's protocol on a folder with a few invented series under the names of M4's hourly ones."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor

from leapts.data.scaling import Scaler
from leapts.data.windows import Windows
from leapts.datasets import catalogue
from leapts.forecasting.metrics import mase, naive_scale, smape
from leapts_bench import m4
from leapts_bench.fitting import refit
from leapts_bench.m4 import Earlier, M4Benchmark, prepare_m4
from leapts_bench.m4_windows import LevelPredictor, with_repeated_starts
from leapts_bench.runs import LeapTSDesign, Learning, Run
from leapts_bench.scoring import Predicted
from leapts_bench.tables.studies import m4_figures

LENGTHS = (200, 130, 90)
HORIZON = 12


class _Repeats:
    def predict(self, history: Tensor) -> Predicted:
        return Predicted(history[..., -1:].expand(-1, -1, HORIZON), torch.ones(len(history), 1))


@pytest.fixture
def parts() -> dict[str, list[np.ndarray]]:
    rng = np.random.default_rng(0)
    return {
        "train": [100 + rng.normal(size=length).cumsum() for length in LENGTHS],
        "test": [100 + rng.normal(size=HORIZON) for _ in LENGTHS],
        "naive2": [100 + rng.normal(size=HORIZON) for _ in LENGTHS],
    }


@pytest.fixture
def data(tmp_path: Path, parts: dict[str, list[np.ndarray]], monkeypatch: pytest.MonkeyPatch) -> M4Benchmark:
    for part, series in parts.items():
        frames = [pd.DataFrame({"id": f"H{k}", "t": range(1, len(y) + 1), "y": y}) for k, y in enumerate(series)]
        pd.concat(frames).to_parquet(tmp_path / f"M4_Hourly_{part}.parquet", index=False)
    row = replace(catalogue.find("M4-Hourly"), series=len(LENGTHS), observations=sum(LENGTHS))
    monkeypatch.setattr(m4, "find", lambda _: row)
    return prepare_m4("M4-Hourly", input_size=60, horizon=HORIZON, root=tmp_path)


def test_test_scores_equal_the_metrics_of_each_series_forecast_from_its_end(
    data: M4Benchmark, parts: dict[str, list[np.ndarray]]
) -> None:
    forecast = np.stack([np.full(HORIZON, series[-1]) for series in parts["train"]])
    scale = np.array([np.abs(series[24:] - series[:-24]).mean() for series in parts["train"]])
    scores = data.test_scores(_Repeats())
    assert scores.series == 3
    assert scores.smape == pytest.approx(smape(np.stack(parts["test"]), forecast), rel=1e-5)
    assert scores.mase == pytest.approx(mase(np.stack(parts["test"]), forecast, scale), rel=1e-5)
    assert scores.leaps == 1


def test_validation_is_the_last_horizon_of_training_and_never_the_test(
    data: M4Benchmark, parts: dict[str, list[np.ndarray]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(m4, "load_dataset", None)
    held_out = np.stack([series[-HORIZON:] for series in parts["train"]])
    forecast = np.stack([np.full(HORIZON, series[-HORIZON - 1]) for series in parts["train"]])
    assert data.validation_scores(_Repeats()).smape == pytest.approx(smape(held_out, forecast), rel=1e-5)
    windows = data.validation()
    assert len(windows) == len(LENGTHS)
    future = data.scaler.inverse(windows.gather(torch.arange(3)).target.squeeze(1))
    np.testing.assert_allclose(future, held_out, rtol=1e-5)


def test_an_earlier_end_holds_out_the_horizon_before_it(data: M4Benchmark, parts: dict[str, list[np.ndarray]]) -> None:
    cut = prepare_m4("M4-Hourly", input_size=60, horizon=HORIZON, root=data.root, earlier=Earlier(6))
    assert cut.panel.lengths.tolist() == [length - 6 * HORIZON for length in LENGTHS if length >= 8 * HORIZON]
    assert 0 < len(cut.panel) < len(data.panel)
    ends = [series[: -6 * HORIZON] for series in parts["train"][: len(cut.panel)]]
    held_out = np.stack([series[-HORIZON:] for series in ends])
    forecast = np.stack([np.full(HORIZON, series[-HORIZON - 1]) for series in ends])
    assert cut.validation_scores(_Repeats()).smape == pytest.approx(smape(held_out, forecast), rel=1e-5)


def test_training_windows_stop_before_the_held_out_horizon(
    data: M4Benchmark, parts: dict[str, list[np.ndarray]]
) -> None:
    windows = data.train()
    assert len(windows) == sum(length - HORIZON - 60 - HORIZON + 1 for length in LENGTHS)
    last = _in_units_of(data, 2, windows.gather(torch.tensor([len(windows) - 1])).target)
    assert float(last[0, -1]) == pytest.approx(parts["train"][2][-HORIZON - 1], rel=1e-5)


def test_the_tested_model_is_trained_up_to_the_ends_of_the_series(
    data: M4Benchmark, parts: dict[str, list[np.ndarray]]
) -> None:
    windows = data.whole()
    assert len(windows) == sum(min(10 * HORIZON, length - 60 - HORIZON + 1) for length in LENGTHS)
    last = _in_units_of(data, 2, windows.gather(torch.tensor([len(windows) - 1])).target)
    np.testing.assert_allclose(last[0], parts["train"][2][-HORIZON:], rtol=1e-5)


def test_a_refit_takes_the_best_number_of_steps(data: M4Benchmark) -> None:
    run = Run(
        dataset="M4-Hourly",
        horizon=HORIZON,
        input_size=60,
        model=LeapTSDesign(options={"hidden_size": 8}),
        training=Learning(epochs=1, looks=1),
    )
    history = data.validation().gather(torch.arange(3)).history
    once, again, longer = (refit(run, data.whole(), variates=None, steps=[steps]) for steps in (1, 1, 4))
    assert torch.equal(once.predict(history).values, again.predict(history).values)
    assert not torch.equal(once.predict(history).values, longer.predict(history).values)


def test_naive2_has_an_owa_of_one(data: M4Benchmark) -> None:
    scores = data.naive2_scores().to_dict()
    assert m4_figures([{"test": scores, "naive2": scores}])["OWA"] == pytest.approx(1)


def test_frequencies_count_by_their_series() -> None:
    few = {"series": 1, "smape": 10.0, "mase": 1.0}
    many = {"series": 3, "smape": 20.0, "mase": 2.0}
    figures = m4_figures([{"test": few, "naive2": few}, {"test": many, "naive2": many}])
    assert figures == {"SMAPE": 17.5, "MASE": 1.75, "OWA": 1.0}


def test_the_scale_of_a_series_is_its_naive_error(data: M4Benchmark) -> None:
    known = data.split.train
    expected = naive_scale(known.values.numpy(), known.offsets.numpy(), 1)
    np.testing.assert_allclose(data.scaler.std.numpy(), expected)


def test_an_error_costs_the_same_owa_in_every_series(data: M4Benchmark) -> None:
    owa = prepare_m4("M4-Hourly", input_size=60, horizon=HORIZON, learning=Learning(unit="owa"), root=data.root)
    train = data.split.train
    naive = naive_scale(train.values.numpy(), train.offsets.numpy(), 24)
    level = np.array([np.abs(one.values.numpy()[-60:]).mean() for one in map(train.select, zip(train.series))])
    # What an error of one unit adds to each half of OWA, where a naive forecast scores one.
    halves = [owa.scaler.std.numpy() / naive, owa.scaler.std.numpy() / (level * (naive / level).mean())]
    np.testing.assert_allclose(sum(halves) / 2, 1.0)
    assert np.ptp(halves[0]) > 0.01


def test_windows_in_units_of_their_level_are_forecast_and_scored_as_in_the_units_of_the_data(data: M4Benchmark) -> None:
    level = prepare_m4("M4-Hourly", input_size=60, horizon=HORIZON, learning=Learning(unit="level"), root=data.root)
    assert level.test_scores(_Repeats()).smape == pytest.approx(data.test_scores(_Repeats()).smape, rel=1e-5)
    index = torch.arange(len(level.train()))
    ours, usual = level.train().gather(index), data.train().gather(index)
    torch.testing.assert_close(ours.history.abs().mean(2), torch.full((len(index), 1), 10.0))

    def in_spreads(history: Tensor, future: Tensor) -> Tensor:
        return (future - history[..., -1:]) / history.std(2, keepdim=True)

    torch.testing.assert_close(
        in_spreads(ours.history, ours.target), in_spreads(usual.history, usual.target), rtol=1e-3, atol=1e-3
    )


def test_logs_are_forecast_and_scored_as_in_the_units_of_the_data(data: M4Benchmark) -> None:
    logs = prepare_m4("M4-Hourly", input_size=60, horizon=HORIZON, learning=Learning(unit="log"), root=data.root)
    assert logs.test_scores(_Repeats()).smape == pytest.approx(data.test_scores(_Repeats()).smape, rel=1e-5)
    first, last = (batch.gather(torch.arange(3)).history[..., -1] for batch in (logs.validation(), data.validation()))
    torch.testing.assert_close((first / 10).exp(), data.scaler.inverse(last).float(), rtol=1e-5, atol=0)


def _in_units_of(data: M4Benchmark, series: int, values: torch.Tensor) -> torch.Tensor:
    scaler = data.scaler
    return Scaler(scaler.mean[series : series + 1], scaler.std[series : series + 1]).inverse(values.squeeze(1))


def _unfinished(data: M4Benchmark) -> M4Benchmark:
    learning = Learning(unit="log", unfinished=True)
    return prepare_m4("M4-Hourly", input_size=60, horizon=HORIZON, learning=learning, root=data.root)


def test_windows_with_unknown_targets_extend_beyond_the_end(
    data: M4Benchmark, parts: dict[str, list[np.ndarray]]
) -> None:
    windows = _unfinished(data).whole()
    assert len(windows) == sum(min(round(9.5 * HORIZON), length - 60) for length in LENGTHS)
    batch = windows.gather(torch.arange(len(windows)))
    assert batch.history.isfinite().all()
    assert batch.target[..., 0].isfinite().all()
    series = parts["train"][2]
    np.testing.assert_allclose((batch.history[-1, 0] / 10).exp(), series[-61:-1], rtol=1e-4)
    last = batch.target[-1, 0]
    assert float((last[0] / 10).exp()) == pytest.approx(series[-1], rel=1e-4)
    assert last[1:].isnan().all()


def test_windows_with_unknown_targets_exclude_the_held_out_horizon_and_other_series(
    data: M4Benchmark, parts: dict[str, list[np.ndarray]]
) -> None:
    windows = _unfinished(data).train()
    known = np.concatenate([series[:-HORIZON] for series in parts["train"]])
    future = windows.gather(torch.arange(len(windows))).target
    seen = (future[future.isfinite()] / 10).exp().numpy()
    assert np.abs(known[None] - np.unique(seen)[:, None]).min(1).max() < 0.01
    ends = [series[-HORIZON - 1] for series in parts["train"]]
    assert all(np.abs(seen - end).min() < 0.01 for end in ends)


def test_short_histories_are_padded_with_their_first_value(
    data: M4Benchmark, parts: dict[str, list[np.ndarray]]
) -> None:
    learning = Learning(unit="log", short_histories=True)
    short = prepare_m4("M4-Hourly", input_size=60, horizon=HORIZON, learning=learning, root=data.root)
    windows = short.train()
    counts = [min(10 * HORIZON, length - HORIZON - 2 * HORIZON + 1) for length in LENGTHS]
    assert len(windows) == sum(counts)
    first = windows.gather(torch.tensor([counts[0]]))
    series = parts["train"][1]
    history = np.concatenate([np.full(60 - HORIZON, series[0]), series[:HORIZON]])
    np.testing.assert_allclose((first.history[0, 0] / 10).exp(), history, rtol=1e-4)
    np.testing.assert_allclose((first.target[0, 0] / 10).exp(), series[HORIZON : 2 * HORIZON], rtol=1e-4)
    last = (windows.gather(torch.tensor([len(windows) - 1])).target[0, 0] / 10).exp()
    np.testing.assert_allclose(last, parts["train"][2][-2 * HORIZON : -HORIZON], rtol=1e-4)


def test_a_series_without_a_horizon_of_history_is_not_trained_on() -> None:
    values, offsets = with_repeated_starts(torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0]), torch.tensor([0, 2, 5]), 2)
    assert values.tolist() == [1, 1, 1, 2, 3, 3, 3, 4, 5]
    assert offsets.tolist() == [0, 4, 9]
    assert len(Windows(values, offsets, 4, 1)) == 1


def test_a_window_of_zeros_has_a_unit() -> None:
    class Zeros:
        def predict(self, history: Tensor) -> Predicted:
            assert history.isfinite().all()
            return Predicted(history[..., :HORIZON], None)

    assert torch.equal(LevelPredictor(Zeros()).predict(torch.zeros(2, 1, 60)).values, torch.zeros(2, 1, HORIZON))
