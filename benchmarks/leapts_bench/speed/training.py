"""Training time, next to the baselines: a step, an epoch, and the race to the best validation error."""

import math
import time
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from leapts.datasets.catalogue import find
from leapts.model import LeapTSModel
from leapts.model.build import build_model
from leapts.training.loop import TrainingStep, clip_gradients, mean_absolute_error, train
from leapts_bench.baselines import BaselineModel, build_baseline, is_available
from leapts_bench.execution import opened
from leapts_bench.protocol import Benchmark
from leapts_bench.results import Line
from leapts_bench.runs import BaselineDesign, LeapTSDesign, Run
from leapts_bench.speed.plan import BASELINES, HORIZON, LOOKBACK, OURS, WINDOWS, Plan, fresh_baselines, ours, theirs
from leapts_bench.speed.timing import Action, fastest

SETS = ("ETTh1", "Weather")

# A single validation check takes a quarter of an hour on one core, or an hour and a half.
_TOO_SLOW_TO_RACE = ("TimesNet",)

# Validation checks per epoch.
_LOOKS_AN_EPOCH = 4


class _BudgetSpentError(Exception):
    """Raised inside of training to leave it."""


def training(plan: Plan) -> Line:
    """Measure seconds per step and epoch at one batch size for all, and the races."""
    places = []
    for dataset in SETS:
        run = ours(dataset, plan)
        data = opened(run)
        assert isinstance(data, Benchmark)
        windows = data.train()
        batch = windows.gather(torch.arange(WINDOWS))
        models: dict[str, nn.Module] = {OURS: _untrained(run, data)}
        models |= fresh_baselines(dataset, find(dataset).series, plan)
        steps: dict[str, Action] = {
            name: training_step(model, batch.history, batch.target) for name, model in models.items()
        }
        places.append(
            {
                "set": dataset,
                "step": fastest(steps, plan.rounds),
                "steps_an_epoch": math.ceil(len(windows) / WINDOWS),
                "race": {
                    name: race(_entrant(name, dataset, plan), data, plan)
                    for name in models
                    if name not in _TOO_SLOW_TO_RACE
                },
            }
        )
    return {"places": places}


def training_step(model: nn.Module, history: Tensor, future: Tensor) -> Action:
    """Take a training step: forward, loss, backward, clipping and optimizer.

    A learning rate of zero keeps the weights, and so the schedule and the cost, the same in every step.
    """
    generator = torch.Generator().manual_seed(0)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.0, fused=True)

    def step() -> None:
        optimizer.zero_grad()
        F.huber_loss(model(history, generator), future, delta=0.5).backward()
        clip_gradients(model, 1.0)
        optimizer.step()

    return step


def race(run: Run, data: Benchmark, plan: Plan) -> Line:
    """Train until the end or until the budget is spent; return the time and error of every validation check.

    Validation checks count as training time: no model finds its best error without them. There is a last check when the
    budget is spent.
    """
    windows = data.train()
    config = run.training.config(len(windows), run.seed)
    look = max(1, math.ceil(len(windows) / run.training.batch_size) // _LOOKS_AN_EPOCH)
    config = config.model_copy(update={"val_check_steps": min(look, config.max_steps), "patience": 0})
    model = _untrained(run, data)
    looks: list[tuple[float, float]] = []
    reached = 0
    begin = time.perf_counter()

    def hear(step: TrainingStep) -> None:
        nonlocal reached
        reached = step.step
        seconds = time.perf_counter() - begin
        if step.validation is not None:
            looks.append((round(seconds, 3), round(step.validation, 6)))
        if seconds > plan.budget:
            raise _BudgetSpentError

    try:
        train(cast("LeapTSModel", model), windows, data.validation(), config, progress=hear)
        finished = True
    except _BudgetSpentError:
        finished = False
        last = mean_absolute_error(cast("LeapTSModel", model), data.validation())
        looks.append((round(time.perf_counter() - begin, 3), round(last, 6)))
    return {"looks": looks, "steps": reached, "max_steps": config.max_steps, "finished": finished}


def _entrant(name: str, dataset: str, plan: Plan) -> Run:
    return ours(dataset, plan) if name == OURS else theirs(name, dataset, plan)


def _untrained(run: Run, data: Benchmark) -> LeapTSModel | BaselineModel:
    design = run.model
    if isinstance(design, LeapTSDesign):
        config = design.config(input_size=LOOKBACK, horizon=HORIZON, variates=data.variates)
        return build_model(config, seed=run.seed)
    assert isinstance(design, BaselineDesign)
    assert design.name in BASELINES
    assert is_available(design.name)
    sizes = {"input_size": LOOKBACK, "horizon": HORIZON, "variates": data.variates}
    return build_baseline(design.name, design.options, **sizes, seed=run.seed)
