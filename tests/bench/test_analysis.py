"""The suite of analyses: result lines, and the tables rendered from them. Figures in the tables are invented."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from leapts.data.panel import Panel
from leapts.data.splits import split_by_fractions
from leapts.forecasting.analysis import spread_histories
from leapts_bench.analysis import analysed, representations
from leapts_bench.execution import execute, work
from leapts_bench.fitting import Fit, fit
from leapts_bench.protocol import Benchmark, cut
from leapts_bench.recipes import Recipe
from leapts_bench.results import Line
from leapts_bench.runs import AnalysisRun, BaselineDesign, Job, Run, parse_run
from leapts_bench.scoring import Predicted
from leapts_bench.suites import ANALYSED_SETS, CLUSTERED_SET, FULL, NO_SCHEDULING, THREE_CLUSTERS, entries
from leapts_bench.tables.analysis import analysis
from leapts_bench.tables.summary import Results
from tests.bench.conftest import TINY, tiny_run

HIDDEN = TINY.model.options["hidden_size"]


def _analysis_run(run: Run) -> AnalysisRun:
    return AnalysisRun(**run.model_dump(), purpose="analysis")


@pytest.fixture(scope="module")
def clustered() -> Benchmark:
    """Two calm and two volatile series of 300 steps, named like the clusters of Scenario 1."""
    steps = np.arange(300)
    noise = np.random.default_rng(1).normal(size=(2, 300))
    calm = [np.sin(steps / 12), np.cos(steps / 15)]
    values = torch.from_numpy(np.stack([*calm, *noise]))
    panel = Panel.from_matrix(values, series=("A0", "A1", "B0", "B1"))
    return cut(panel, split_by_fractions(300, 0.6, 0.2), input_size=24, horizon=12)


def _fitted(data: Benchmark, options: dict[str, Any], model: BaselineDesign | None = None) -> Fit:
    recipe: Recipe = TINY.changed(options)
    run = recipe.run("any", input_size=24, horizon=12, seed=1)
    return fit(run if model is None else run.model_copy(update={"model": model}), data)


def test_a_run_without_analysis_does_not_replace_an_analysis(folder: Path) -> None:
    plain, asked = tiny_run(), _analysis_run(tiny_run())
    assert plain.key != asked.key
    work(plain, folder / "main.jsonl")
    assert work(asked, folder / "analysis.jsonl") != "done before"
    assert work(asked, folder / "analysis.jsonl") == "done before"


def test_both_kinds_of_run_can_be_sent_to_another_process() -> None:
    for run in (tiny_run(), _analysis_run(tiny_run())):
        again = parse_run(run.model_dump_json())
        assert type(again) is type(run)
        assert again.key == run.key


def test_an_analysis_has_errors_and_bins_of_rising_volatility() -> None:
    line = execute(_analysis_run(tiny_run()))
    assert line["test"] == execute(tiny_run())["test"]
    for order in ("changes", "level"):
        bins = line["analysis"][order]
        assert [one["low"] for one in bins] == sorted(one["low"] for one in bins)
        assert sum(one["windows"] for one in bins) == line["analysis"]["overall"]["windows"]
    whole = line["analysis"]["overall"]
    assert whole["control"] + whole["temporal"] == pytest.approx(1)
    assert sum(whole["scales"].values()) == pytest.approx(1)
    assert "separation" not in line["analysis"]


@pytest.mark.parametrize(
    ("options", "model", "size"),
    [
        ({}, None, HIDDEN),
        ({"scheduling": {"kind": "none"}}, None, HIDDEN),
        ({}, BaselineDesign(name="Amplifier"), 12),
    ],
    ids=["state", "latent", "forecast"],
)
def test_every_kind_of_model_has_a_vector_to_embed(
    clustered: Benchmark, options: dict[str, Any], model: BaselineDesign | None, size: int
) -> None:
    predictor = _fitted(clustered, options, model).predictor
    line = analysed(CLUSTERED_SET, clustered, predictor)
    assert -1 <= line["separation"] <= 1
    assert -1 <= line["separation_on_plane"] <= 1
    assert ("overall" in line) == (not options and model is None)
    vectors = representations(predictor, spread_histories(clustered.test(), 40))
    assert vectors.shape == (40, size)


def test_the_separation_is_that_of_the_clusters(clustered: Benchmark) -> None:
    """Forecasts that depend on the cluster only separate perfectly; noise does not."""

    class Telling:
        def predict(self, history: torch.Tensor) -> Any:
            cluster = torch.tensor([0.0, 0.0, 1.0, 1.0])[None, :, None].expand(len(history), 4, 12)
            return Predicted(cluster + 0.01 * torch.rand(len(history), 4, 12), None)

    class Guessing:
        def predict(self, history: torch.Tensor) -> Any:
            return Predicted(torch.rand(len(history), 4, 12), None)

    assert analysed(CLUSTERED_SET, clustered, Telling())["separation"] > 0.9
    assert abs(analysed(CLUSTERED_SET, clustered, Guessing())["separation"]) < 0.1


def _made_up(run: Job, control: list[float], separation: float | None = None) -> Line:
    bins = [
        {
            "windows": 10,
            "low": number / 10,
            "high": number / 10 + 0.1,
            "control": share,
            "temporal": 1 - share,
            "scales": {"short": 0.2 + number / 10, "mid": 0.3, "long": 0.5 - number / 10},
            "leaps": 2.0 - number / 10,
        }
        for number, share in enumerate(control)
    ]
    found: Line = {"changes": bins, "overall": {**bins[0], "control": 0.5}}
    if separation is not None:
        found |= {"separation": separation, "separation_on_plane": separation / 2}
    return {"key": run.key, "run": run.model_dump(mode="json"), "test": {"mse": 0.25}, "analysis": found}


@pytest.fixture
def tables() -> str:
    """ETTh2 with a rising share, Weather with a falling one, three runs of Scenario 1, and nothing else."""
    suite = entries("analysis")
    shares = {"ETTh2": [0.1, 0.2, 0.3, 0.4], "Weather": [0.5, 0.4, 0.3, 0.2], CLUSTERED_SET: [0.1] * 4}
    separations = {FULL: 0.1, THREE_CLUSTERS: 0.6, NO_SCHEDULING: 0.2}
    done = {
        run.key: _made_up(run, shares[run.dataset], separations[variant] if run.dataset == CLUSTERED_SET else None)
        for variant, run in suite
        if run.dataset in shares and variant in separations
    }
    return analysis(Results(suite, done))


def test_shares_are_next_to_those_of_the_paper(tables: str) -> None:
    assert "| ETTh2 | here | 0.100 / 0.900 | 0.200 / 0.800 | 0.300 / 0.700 | 0.400 / 0.600 | 0.500 / 0.500 |" in tables
    assert "| ETTh2 | paper | 0.530 / 0.471 |" in tables
    assert "| Weather | paper" not in tables
    assert "| all | here | 0.300 / 0.700 | 0.300 / 0.700 | 0.300 / 0.700 | 0.300 / 0.700 | 0.500 / 0.500 |" in tables
    assert "| all | paper | 0.462 / 0.538 |" in tables
    assert "bin on 1 of 2 data sets" in tables


def test_data_sets_without_runs_are_marked(tables: str) -> None:
    for dataset in set(ANALYSED_SETS) - {"ETTh2", "Weather"}:
        assert f"| {dataset} | here | not run here |" in tables
    assert "| DLinear | not run here | not run here | not run here |" in tables


def test_only_rising_shares_are_counted(tables: str) -> None:
    assert "rises on 1 of 1 scenarios, and the number of leaps on 0." in tables
    assert "| Scenario1 | most volatile | 0.3 to 0.4 | 0.500 | 0.300 | 0.200 | 1.70 |" in tables


def test_separations_are_in_one_table(tables: str) -> None:
    for variant, separation in {FULL: "0.100 | 0.050", THREE_CLUSTERS: "0.600 | 0.300", NO_SCHEDULING: "0.200"}.items():
        assert f"| {variant} | {separation}" in tables
