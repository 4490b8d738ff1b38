"""Baselines learn, are reproducible, and are refused by name if they cannot be built."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from leapts.data.panel import Panel
from leapts.data.splits import split_by_fractions
from leapts.datasets.catalogue import find
from leapts.errors import ConfigError
from leapts_bench.__main__ import main
from leapts_bench.baselines import BASELINES, CHEAP, COSTLY, baseline_run, build_baseline, is_available
from leapts_bench.baselines.dropout import PackedDropout
from leapts_bench.baselines.kernels import MergedKernels
from leapts_bench.baselines.mixing import FoldedMixing
from leapts_bench.baselines.neural import MODULES
from leapts_bench.baselines.quicker import quicken
from leapts_bench.fitting import fit
from leapts_bench.protocol import Benchmark, cut
from leapts_bench.results import append, cut_short
from leapts_bench.runs import BaselineDesign, Job, Learning, Run
from leapts_bench.suites import FULL, Entry, entries
from leapts_bench.tables.baselines import baselines
from leapts_bench.tables.published import published
from leapts_bench.tables.summary import Results

LOOKBACK, HORIZON, VARIATES = 48, 12, 2
OWN = ("Amplifier", "AMD")

# Small enough to train in seconds; other options have the package's defaults.
SMALL: dict[str, dict[str, Any]] = {
    "TSMixer": {"ff_dim": 16, "dropout": 0.0},
    "TimeMixer": {"d_model": 16, "d_ff": 16, "e_layers": 1, "down_sampling_layers": 1, "dropout": 0.0},
    "iTransformer": {"hidden_size": 32, "n_heads": 2, "e_layers": 1, "d_ff": 32, "dropout": 0.0},
    "N-HiTS": {"mlp_units": [[64, 64]] * 3},
    "N-BEATS": {"mlp_units": [[64, 64]] * 3},
    "TiDE": {"hidden_size": 64, "decoder_output_dim": 8, "temporal_decoder_dim": 16, "dropout": 0.0},
    "PatchTST": {"hidden_size": 32, "n_heads": 2, "linear_hidden_size": 64, "encoder_layers": 1, "dropout": 0.0},
    "TimesNet": {"hidden_size": 8, "conv_hidden_size": 8, "top_k": 1, "num_kernels": 2, "encoder_layers": 1},
    "AMD": {"dropout": 0.0},
}


def _sine() -> Benchmark:
    """Two sine waves of one period, in opposite phase."""
    steps = np.arange(900)
    values = np.stack([np.sin(2 * math.pi * steps / 24), 3 + 2 * np.cos(2 * math.pi * steps / 24)])
    panel = Panel.from_matrix(torch.from_numpy(values))
    return cut(panel, split_by_fractions(900, 0.7, 0.2), input_size=LOOKBACK, horizon=HORIZON)


def _run(name: str, options: dict[str, Any], *, epochs: float = 25) -> Run:
    training = Learning(epochs=epochs, batch_size=32, learning_rate=5e-3, huber_delta=1000.0, looks=5)
    model = BaselineDesign(name=name, options=options)
    return Run(dataset="sine", horizon=HORIZON, input_size=LOOKBACK, model=model, training=training)


@pytest.mark.slow
@pytest.mark.parametrize("name", BASELINES)
def test_a_baseline_learns_a_sine_wave(name: str) -> None:
    """To a hundredth of the error of forecasting the mean, which is a mean squared error of one."""
    if name not in OWN:
        pytest.importorskip("neuralforecast")
    data = _sine()
    fitted = fit(_run(name, SMALL.get(name, {})), data)
    assert data.test_scores(fitted.predictor).mse < 0.01


@pytest.mark.parametrize("name", OWN)
def test_the_same_seed_gives_the_same_baseline_after_any_draws(name: str) -> None:
    data = _sine()
    scores = []
    for drawn in (1, 7):
        torch.rand(drawn)
        fitted = fit(_run(name, {}, epochs=0.5), data)
        scores.append(data.test_scores(fitted.predictor))
    assert scores[0] == scores[1]


@pytest.mark.parametrize("name", OWN)
def test_dropout_is_for_training_only(name: str) -> None:
    options = {"dropout": 0.5} if name == "AMD" else {}
    baseline = build_baseline(name, options, input_size=LOOKBACK, horizon=HORIZON, variates=VARIATES, seed=1)
    history = torch.randn(3, VARIATES, LOOKBACK)
    learning = baseline(history, torch.Generator().manual_seed(1))
    assert (name == "AMD") == (not torch.equal(learning, baseline.forecast(history).values))
    assert torch.equal(baseline.forecast(history).values, baseline.forecast(history).values)
    assert torch.equal(learning, baseline(history, torch.Generator().manual_seed(1)))


@pytest.mark.parametrize("name", OWN)
@pytest.mark.parametrize(("lookback", "horizon", "variates"), [(36, 12, 7), (97, 25, 1), (5, 1, 3)])
def test_any_window_can_be_forecast(name: str, lookback: int, horizon: int, variates: int) -> None:
    baseline = build_baseline(name, {}, input_size=lookback, horizon=horizon, variates=variates, seed=1)
    assert baseline.forecast(torch.randn(2, variates, lookback)).values.shape == (2, variates, horizon)


@pytest.mark.parametrize("name", OWN)
def test_the_forecast_follows_level_and_scale_of_the_history(name: str) -> None:
    baseline = build_baseline(name, {}, input_size=LOOKBACK, horizon=HORIZON, variates=VARIATES, seed=1)
    history = torch.randn(4, VARIATES, LOOKBACK)
    plain = baseline.forecast(history).values
    torch.testing.assert_close(baseline.forecast(5 + 2 * history).values, 5 + 2 * plain, rtol=1e-3, atol=1e-3)


def test_an_unknown_baseline_or_option_is_refused() -> None:
    with pytest.raises(ConfigError, match="there is no baseline 'nobody'; there are DLinear"):
        build_baseline("nobody", {}, input_size=8, horizon=2, variates=1, seed=1)
    with pytest.raises(ConfigError, match=r"AMD: .*colour"):
        build_baseline("AMD", {"colour": 1}, input_size=8, horizon=2, variates=1, seed=1)


def test_a_baseline_of_a_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("leapts_bench.baselines.neural.is_installed", lambda: False)
    monkeypatch.setattr("leapts_bench.baselines.building.is_installed", lambda: False)
    with pytest.raises(ImportError, match=r"leapts\[neural\]"):
        build_baseline("DLinear", {}, input_size=8, horizon=2, variates=1, seed=1)
    assert [name for name in BASELINES if is_available(name)] == list(OWN)


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.parametrize("dataset", ["ETTh1", "ETTh2", "ETTm1", "Exchange", "ILI", "Weather"])
def test_published_settings_can_be_built(name: str, dataset: str) -> None:
    pytest.importorskip("neuralforecast")
    variates = 7
    run = baseline_run(name, dataset, input_size=36 if dataset == "ILI" else 96, horizon=12)
    assert isinstance(run.model, BaselineDesign)
    sizes = {"input_size": run.input_size, "horizon": run.horizon, "variates": variates}
    baseline = build_baseline(name, run.model.options, **sizes, seed=1)
    assert baseline.forecast(torch.randn(1, variates, run.input_size)).values.shape == (1, variates, 12)


def test_tide_with_its_published_layer_norm_is_linear() -> None:
    """Its last layer norm normalizes a single value, which removes all information."""
    pytest.importorskip("neuralforecast")
    baseline = build_baseline("TiDE", {}, input_size=LOOKBACK, horizon=HORIZON, variates=VARIATES, seed=1)
    history = torch.randn(4, VARIATES, LOOKBACK)
    baseline(history, torch.Generator().manual_seed(1)).square().sum().backward()
    learning = {
        name
        for name, weights in baseline.named_parameters()
        if weights.grad is not None and (weights.grad.abs() > 1e-3).any()
    }
    assert {name.removeprefix("network.module.") for name in learning} == {
        "global_skip.weight",
        "global_skip.bias",
        "temporal_decoder.norm.bias",
    }


def test_a_standardized_baseline_follows_level_and_spread_of_windows() -> None:
    pytest.importorskip("neuralforecast")
    sizes = {"input_size": LOOKBACK, "horizon": HORIZON, "variates": VARIATES}
    baseline = build_baseline("TiDE", {"standardised": True}, **sizes, seed=1)
    history = torch.randn(4, VARIATES, LOOKBACK)
    plain = baseline.forecast(history).values
    torch.testing.assert_close(baseline.forecast(5 + 2 * history).values, 5 + 2 * plain, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(("rows", "columns"), [(1, 24), (2, 12), (5, 5), (24, 1), (13, 17)])
def test_merged_kernels_equal_the_mean_of_the_kernels_and_gradients(rows: int, columns: int) -> None:
    kernels = nn.ModuleList(nn.Conv2d(2, 3, 2 * width + 1, padding=width) for width in range(6))
    picture = torch.randn(4, 2, rows, columns, requires_grad=True)
    each = torch.stack([kernel(picture) for kernel in kernels]).mean(0)
    learnt = [picture, *kernels.parameters()]
    wanted = torch.autograd.grad(each.square().sum(), learnt)
    merged = MergedKernels(kernels)(picture)
    torch.testing.assert_close(merged, each, rtol=1e-4, atol=1e-5)
    for found, expected in zip(torch.autograd.grad(merged.square().sum(), learnt), wanted, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-3)


def test_timesnet_with_merged_kernels_forecasts_as_the_package_does() -> None:
    pytest.importorskip("neuralforecast")
    sizes = {"input_size": LOOKBACK, "horizon": HORIZON, "variates": VARIATES}
    baseline = build_baseline("TimesNet", SMALL["TimesNet"], **sizes, seed=1)
    history = torch.randn(3, VARIATES, LOOKBACK)
    plain, names = baseline.forecast(history).values, list(baseline.state_dict())
    quicken(baseline)
    assert any(isinstance(module, MergedKernels) for module in baseline.modules())
    assert list(baseline.state_dict()) == names
    torch.testing.assert_close(baseline.forecast(history).values, plain, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("halvings", [1, 3])
def test_timemixer_with_folded_blocks_forecasts_and_learns_as_the_package_does(halvings: int) -> None:
    pytest.importorskip("neuralforecast")
    options = {"d_model": 4, "d_ff": 6, "e_layers": 2, "down_sampling_layers": halvings, "channel_independence": 1}
    baseline = build_baseline("TimeMixer", options, input_size=LOOKBACK, horizon=HORIZON, variates=VARIATES, seed=1)
    history = torch.randn(3, VARIATES, LOOKBACK)

    def learning() -> tuple[torch.Tensor, list[torch.Tensor]]:
        """With dropout, drawn by a generator: its draws must affect the same values."""
        forecast = baseline(history, torch.Generator().manual_seed(1))
        learnt = [weights for weights in baseline.parameters() if weights.requires_grad]
        gradients = torch.autograd.grad(forecast.square().sum(), learnt, allow_unused=True)
        return forecast, [gradient for gradient in gradients if gradient is not None]

    plain, wanted = learning()
    quicken(baseline)
    assert sum(isinstance(module, FoldedMixing) for module in baseline.modules()) == 2
    folded, found = learning()
    torch.testing.assert_close(folded, plain, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(found, wanted, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("probability", [0.0, 0.1, 0.5, 0.9, 1.0])
def test_packed_dropout_drops_its_share_and_keeps_the_mean(probability: float) -> None:
    torch.manual_seed(1)
    values = torch.ones(401, 503, requires_grad=True)
    dropout = PackedDropout(probability)
    left = dropout(values)
    spread = 6 * (probability * (1 - probability) / values.numel()) ** 0.5
    assert (left == 0).double().mean().item() == pytest.approx(probability, abs=spread + 1e-5)
    assert left.unique().numel() == (1 if probability in (0, 1) else 2)
    if probability < 1:
        assert left.double().mean().item() == pytest.approx(1, abs=spread / (1 - probability) + 1e-4)
    # Adjacent values share a draw of the generator, but must be independent.
    pairs = torch.stack([left.flatten()[:-1] == 0, left.flatten()[1:] == 0]).double()
    assert pairs.prod(0).mean().item() == pytest.approx(probability**2, abs=6 / values.numel() ** 0.5)
    assert torch.equal(torch.autograd.grad(left.sum(), values)[0], left)
    assert dropout.eval()(values) is values


def test_tsmixer_with_packed_dropout_forecasts_as_the_package_does_and_learns_by_its_seed() -> None:
    pytest.importorskip("neuralforecast")
    sizes = {"input_size": LOOKBACK, "horizon": HORIZON, "variates": VARIATES}
    baseline = build_baseline("TSMixer", SMALL["TSMixer"] | {"dropout": 0.5}, **sizes, seed=1)
    history = torch.randn(3, VARIATES, LOOKBACK)
    plain, names = baseline.forecast(history).values, list(baseline.state_dict())
    quicken(baseline)
    assert any(isinstance(module, PackedDropout) for module in baseline.modules())
    assert list(baseline.state_dict()) == names
    assert torch.equal(baseline.forecast(history).values, plain)
    learning = [baseline(history, torch.Generator().manual_seed(seed)) for seed in (1, 1, 2)]
    assert torch.equal(learning[0], learning[1])
    assert not torch.equal(learning[0], learning[2])


def test_a_channel_mixing_timemixer_is_not_replaced() -> None:
    pytest.importorskip("neuralforecast")
    sizes = {"input_size": LOOKBACK, "horizon": HORIZON, "variates": VARIATES}
    baseline = build_baseline("TimeMixer", SMALL["TimeMixer"], **sizes, seed=1)
    modules = list(baseline.modules())
    quicken(baseline)
    assert list(baseline.modules()) == modules


def test_a_data_set_without_published_settings_gets_as_many_steps_as_etth1() -> None:
    """ILI is short: ten epochs would leave a baseline without settings for it untrained."""
    windows = {"ILI": 617, "ETTh1": 8521}
    for name in BASELINES:
        steps = {
            dataset: baseline_run(name, dataset, input_size=36, horizon=24)
            .training.config(windows[dataset], 1)
            .max_steps
            for dataset in windows
        }
        assert (steps["ILI"] > steps["ETTh1"] / 2) == (name not in ("DLinear", "PatchTST", "TimesNet")), (name, steps)


def test_baselines_with_a_step_count_take_as_many_steps_on_every_data_set() -> None:
    """A thousand steps of about 256 univariate windows, for any length and number of series."""
    runs = [run for variant, run in entries("baselines") if variant in ("N-HiTS", "N-BEATS")]
    assert {run.dataset for run in runs} >= {"ILI", "ETTm1", "Weather", "SZ-taxi"}
    for run in runs:
        row = find(run.dataset)
        assert row.split is not None
        assert isinstance(run, Run)
        windows = row.split.train.stop - run.input_size - run.horizon + 1
        assert run.training.config(windows, 1).max_steps == 1000, run
        assert 200 < run.training.batch_size * row.series < 320, run


def test_the_suite_has_every_baseline_where_the_paper_has_results() -> None:
    suite = [(variant, run.dataset, run.horizon) for variant, run in entries("baselines")]
    for name in CHEAP:
        assert {h for variant, data, h in suite if (variant, data) == (name, "ETTh1")} == {18, 24, 36, 48, 60}
        assert {h for variant, data, h in suite if (variant, data) == (name, "Weather")} == {24, 60}
    first = next(place for place, (variant, _, _) in enumerate(suite) if variant in COSTLY)
    assert all(variant in COSTLY for variant, _, _ in suite[first:])
    assert {data for _, data, _ in suite[first : first + 10]} == {"ILI", "ETTh1"}


def _made_up(run: Job, mse: float, mae: float) -> dict[str, Any]:
    return {"key": run.key, "seed": 1, "run": run.model_dump(mode="json"), "test": {"mse": mse, "mae": mae}}


def test_the_table_shows_baselines_or_says_that_they_were_not_run() -> None:
    suite = [entry for entry in entries("baselines") if entry.run.dataset == "ETTh2"]
    figures = {(FULL, 18): (0.1, 0.2), ("DLinear", 18): (0.2, 0.25), ("DLinear", 24): (0.3, 0.3)}
    done = {
        run.key: _made_up(run, *figures[variant, run.horizon])
        for variant, run in suite
        if (variant, run.horizon) in figures
    }
    page = baselines(Results(suite, done))
    paper = {name: published("main", "ETTh2", 18, "MSE", name) for name in (FULL, "DLinear", "TSMixer")}
    row = f"| ETTh2 | 18 | 0.100 ({paper[FULL]:.3f}) | 0.200 ({paper['DLinear']:.3f}) | "
    assert f"{row}not run here ({paper['TSMixer']:.3f}) |" in page
    assert "| DLinear | -50.0 % | -50.0 % | 1 of 1 | -20.0 % | -20.0 % | 1 of 1 |" in page
    none = "not run here | not run here | 0 of 0"
    assert f"| TimesNet | {none} | {none} |" in page


def test_the_noisiest_data_set_is_also_left_out() -> None:
    suite = [entry for entry in entries("baselines") if entry.run.dataset in ("ILI", "ETTh2")]
    figures = {
        (FULL, "ILI", 12): 0.1,
        ("DLinear", "ILI", 12): 0.4,
        (FULL, "ETTh2", 18): 0.3,
        ("DLinear", "ETTh2", 18): 0.2,
    }
    done = {
        run.key: _made_up(run, figures[place], figures[place])
        for variant, run in suite
        if (place := (variant, run.dataset, run.horizon)) in figures
    }
    assert "| DLinear | -38.8 % | +50.0 % | 1 of 2 | -38.8 % | +50.0 % | 1 of 2 |" in baselines(Results(suite, done))


def test_a_suite_leaves_out_baselines_that_cannot_be_built(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    asked: list[Run] = []

    def pretend(runs: list[Run], *_: object, **__: object) -> int:
        asked.extend(runs)
        return 0

    monkeypatch.setattr("leapts_bench.execution.work_all", pretend)
    monkeypatch.setattr("leapts_bench.baselines.building.is_installed", lambda: False)
    only = ["--only", "Scenario3", "--results", str(folder)]
    assert main(["run", "synthetic", *only]) == 0
    assert {run.model_name for run in asked} == {"LeapTS", *OWN}
    assert "pip install 'leapts[neural]'): DLinear, N-BEATS" in capsys.readouterr().out
    asked.clear()
    assert main(["run", "synthetic", *only, "--model", "AMD"]) == 0
    assert {run.model_name for run in asked} == {"AMD"}
    assert len(asked) == 4
    asked.clear()
    assert main(["run", "synthetic", *only, "--model", "AMD", "--horizon", "24", "60"]) == 0
    assert [run.horizon for run in asked] == [24, 60]


def test_errors_of_runs_that_were_cut_short_are_marked(folder: Path) -> None:
    baseline = baseline_run("DLinear", "ILI", input_size=36, horizon=24)
    patient = baseline.model_copy(update={"training": baseline.training.model_copy(update={"patience": 3})})
    append(folder / "baselines.jsonl", _made_up(patient, 2.0, 1.0) | {"training": {"stopped_early": True}})
    suite = [Entry("DLinear", baseline), Entry(FULL, baseline.model_copy(update={"seed": 2}))]
    shown = baselines(Results(suite, cut_short(folder)))
    assert "| ILI | 24 | not run here (1.861) | 2.000 \\* (5.061) |" in shown
    assert "\\*" not in baselines(Results(suite, {})).split("## MSE")[1]
