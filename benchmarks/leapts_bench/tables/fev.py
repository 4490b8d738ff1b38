"""`docs/benchmarks/fev-bench.md`: LeapTS beside the published models of fev-bench, on tasks with covariates."""

import math
from statistics import fmean

from leapts_bench.gift import fev_bench
from leapts_bench.gift.published import (
    FEV_NAIVE,
    FEV_SOURCE,
    LEAKED,
    TRAINED,
    WITHOUT_COVARIATES,
    Model,
    fev_models,
)
from leapts_bench.gift.running import LEAPTS, SEASONAL_NAIVE
from leapts_bench.tables.gift import NOT_RUN
from leapts_bench.tables.markdown import plain, table
from leapts_bench.tables.summary import Results

_METRICS = ("sql", "mase")


def fev_page(of: Results) -> str:
    """Render the page."""
    naive, ours = (_measured(of, name) for name in (SEASONAL_NAIVE, LEAPTS))
    return f"""# Covariate tasks of fev-bench

[fev-bench]({FEV_SOURCE}) has 42 tasks with covariates. {len(fev_bench.tasks())} of them can be built exactly from
public files; on these LeapTS runs here under the benchmark's protocol. The tests recompute its SeasonalNaive on every
task and hold it to the published SQL, MASE, WQL and WAPE (relative tolerance 1e-5).

**LeapTS forecasts from the targets alone**: it is fitted once to the past of each task's first window, with its
defaults and one seed. Models trained per set, trees and statistical ones see the training part of each task,
pretrained ones do not. Which models use covariates is what their papers say. Models that were trained on one of the
tasks, by their authors' word, are listed last and ranked nowhere.

SQL (scaled quantile loss) and MASE are relative to SeasonalNaive: the geometric mean of the ratios over the
{len(fev_bench.tasks())} tasks; lower is better. Seconds are processor time of one core for fitting and forecasting.
Trees publish point forecasts only; their SQL is a point error.

## Run here

{_run_here(naive, ours)}

## Models

{_models(ours)}

## All tasks

SQL / MASE as in the benchmark, not relative. *best*: the lowest published SQL of the kind.

{_tasks(naive, ours)}

## Repeat it

`LEAPTS_DATA` names the folder with the data. The same tasks run in fev itself, too: [how](../how-to/fev.md).

```shell
python -m leapts_bench run covariates --time-limit 7200
python -m leapts_bench table
```

Published scores: {FEV_SOURCE} at commit 1bc95fd779b3, Apache License 2.0.
"""


def _measured(of: Results, name: str) -> Model:
    lines = {task: line for task in fev_bench.tasks() for line in of.lines(task, name, fev_bench.horizon_of(task))}
    scores = {metric: {task: line["test"][metric] for task, line in lines.items()} for metric in _METRICS}
    seconds = {task: line["seconds"]["core"] for task, line in lines.items()}
    return Model(name, f"{TRAINED}{WITHOUT_COVARIATES}", None, scores, seconds)


def relative(model: Model, metric: str) -> float | None:
    """Geometric mean of the ratios to SeasonalNaive; None when a task was not run."""
    own, naive = model.scores.get(metric, {}), fev_models()[FEV_NAIVE].scores[metric]
    if not all(task in own for task in fev_bench.tasks()):
        return None
    return math.exp(fmean(math.log(own[task] / naive[task]) for task in fev_bench.tasks()))


def _run_here(*models: Model) -> str:
    rows = []
    for model in models:
        seconds, errors = model.seconds or {}, [relative(model, metric) for metric in _METRICS]
        cells = [NOT_RUN if error is None else plain(error) for error in errors]
        spent = NOT_RUN if None in errors else f"{sum(seconds.values()):,.0f}"
        rows.append([model.name, f"{len(seconds)} of {len(fev_bench.tasks())}", *cells, spent])
    return table(["model", "tasks", "SQL", "MASE", "seconds"], rows)


def _models(ours: Model) -> str:
    """All models, the best first; those that were trained on a task last."""
    listed = [(model, relative(model, "sql"), relative(model, "mase")) for model in [*fev_models().values(), ours]]
    listed.sort(key=lambda one: (one[0].kind == LEAKED, one[1] is None, one[1]))
    rows, place = [], 0
    for model, sql, mase in listed:
        is_ranked = sql is not None and model.kind != LEAKED
        place += is_ranked
        name = f"**{model.name}**" if model is ours else model.name
        cells = [NOT_RUN if error is None else plain(error) for error in (sql, mase)]
        rows.append([str(place) if is_ranked else "-", name, model.kind, *cells])
    return table(["place", "model", "kind", "SQL", "MASE"], rows)


def _tasks(naive: Model, ours: Model) -> str:
    kinds = (TRAINED, "trees", "pretrained")
    rows = []
    for task in fev_bench.tasks():
        best = [
            min((one for one in fev_models().values() if one.kind.startswith(kind)), key=lambda one: _sql(one, task))
            for kind in kinds
        ]
        cells = [*(_pair(model, task) for model in (fev_models()[FEV_NAIVE], naive, ours))]
        rows.append([task, *cells, *(f"{one.name} ({_pair(one, task)})" for one in best)])
    headings = ["task", "SeasonalNaive published", "SeasonalNaive here", "LeapTS", *(f"best {kind}" for kind in kinds)]
    return table(headings, rows)


def _sql(model: Model, task: str) -> float:
    return model.scores["sql"][task]


def _pair(model: Model, task: str) -> str:
    if task not in model.scores["sql"]:
        return NOT_RUN
    return f"{_sql(model, task):.3f} / {model.scores['mase'][task]:.3f}"
