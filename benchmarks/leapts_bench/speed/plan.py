"""How thoroughly to measure, and the models that several points share."""

from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor

from leapts.model import LeapTSModel
from leapts_bench.baselines import BaselineModel, baseline_run, build_baseline, is_available
from leapts_bench.execution import opened
from leapts_bench.fitting import Leaping, fit
from leapts_bench.protocol import Benchmark
from leapts_bench.recipes import recipe
from leapts_bench.runs import BaselineDesign, Learning, Run
from leapts_bench.suites import FULL

LOOKBACK, HORIZON, WINDOWS = 96, 60, 32
OURS = FULL
MEASURED_SETS = ("ETTh1", "ETTh2", "Weather", "Electricity")
BASELINES = ("DLinear", "TSMixer", "iTransformer", "TimeMixer", "PatchTST", "TimesNet")


@dataclass(frozen=True)
class Plan:
    """How thoroughly to measure.

    Attributes:
        rounds: How often candidates take turns.
        budget: Training seconds of each model in the race to its best validation error.
        is_quick: Whether to measure small substitutes, to check that everything works; such figures are not shown.
        seed: The seed of weights and random data.
    """

    rounds: int = 7
    budget: float = 300.0
    is_quick: bool = False
    seed: int = 1

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)


def ours(dataset: str, plan: Plan) -> Run:
    """Return the run of the data set's recipe; shortened for a quick check."""
    run = recipe(dataset).run(dataset, input_size=LOOKBACK, horizon=HORIZON, seed=plan.seed)
    return run.model_copy(update={"training": Learning(epochs=0.02, looks=1)}) if plan.is_quick else run


def theirs(name: str, dataset: str, plan: Plan) -> Run:
    """Return the run of a baseline at its published settings."""
    run = baseline_run(name, dataset, input_size=LOOKBACK, horizon=HORIZON, seed=plan.seed)
    short = run.training.model_copy(update={"epochs": 0.02, "looks": 1})
    return run.model_copy(update={"training": short}) if plan.is_quick else run


def described(plan: Plan) -> dict[str, dict[str, Any]]:
    """Describe the measured models: for each data set our recipe, and the settings of each baseline."""
    return {
        dataset: {
            OURS: ours(dataset, plan).model_dump(mode="json"),
            **{name: theirs(name, dataset, plan).model_dump(mode="json") for name in BASELINES},
        }
        for dataset in MEASURED_SETS
    }


@cache
def trained(dataset: str, plan: Plan) -> LeapTSModel:
    """Train our model with the data set's recipe, because the number of leaps depends on the weights."""
    run = ours(dataset, plan)
    predictor = fit(run, opened(run)).predictor
    assert isinstance(predictor, Leaping)
    return predictor.model


def fresh_baselines(
    dataset: str, variates: int, plan: Plan, names: tuple[str, ...] = BASELINES
) -> dict[str, BaselineModel]:
    """Build the baselines that are available; their speed does not depend on their weights."""
    chosen = names[:3] if plan.is_quick else names
    return {name: _baseline(name, dataset, variates, plan) for name in chosen if is_available(name)}


def windows_of(dataset: str, count: int) -> Tensor:
    """Return the histories of the first test windows."""
    run = recipe(dataset).run(dataset, input_size=LOOKBACK, horizon=HORIZON, seed=1)
    data = opened(run)
    assert isinstance(data, Benchmark)
    return data.test().gather(torch.arange(count)).history


def random_walks(windows: int, variates: int, lookback: int, seed: int) -> Tensor:
    """Generate random histories in the memory layout of the data pipeline: series after series."""
    generator = torch.Generator().manual_seed(seed)
    steps = torch.randn(variates, windows, lookback, generator=generator)
    walks: Tensor = steps.cumsum(2) / lookback**0.5
    return walks.transpose(0, 1)


def _baseline(name: str, dataset: str, variates: int, plan: Plan) -> BaselineModel:
    design = theirs(name, dataset, plan).model
    assert isinstance(design, BaselineDesign)
    sizes = {"input_size": LOOKBACK, "horizon": HORIZON, "variates": variates}
    return build_baseline(name, design.options, **sizes, seed=plan.seed)
