"""`docs/benchmarks.md`: the overview of all benchmark studies."""

from collections.abc import Mapping, Sequence

from leapts_bench.baselines import BASELINES
from leapts_bench.results import Line
from leapts_bench.suites import DISTILLED, ENSEMBLE, PAPER_SETS
from leapts_bench.tables.against_paper import Standing, losses, standing
from leapts_bench.tables.baselines import compare
from leapts_bench.tables.markdown import NOT_RUN, percent, table
from leapts_bench.tables.speed import headline
from leapts_bench.tables.studies import lower_than_ours
from leapts_bench.tables.summary import Results
from leapts_bench.tables.variants import distillation_cost

PAPER_CHART, BASELINES_CHART = "benchmarks-paper.svg", "benchmarks-baselines.svg"

_STUDIES = {
    "main": "Every data set and horizon beside the paper; errors in original units; training cost",
    "distillation": "One model trained with knowledge distillation",
    "ensembles": "The mean forecast of four models",
    "baselines": "Other models, trained here under one protocol",
    "m4": "The M4 competition",
    "gift-eval": "LeapTS with its defaults beside 121 published models, on the windows of GIFT-Eval",
    "defaults": "LeapTS with its defaults beside simple and statistical forecasts; coverage of its quantiles",
    "fev-bench": "LeapTS with its defaults beside 30 published models, on tasks of fev-bench with covariates",
    "long-look-back": "Look-back 720 and long horizons",
    "synthetic": "Synthetic series with known structure",
    "ablation": "What each component contributes",
    "sensitivity": "Number of layers, look-back and clusters",
    "seeds": "Spread over five seeds",
    "analysis": "What drives the leaps",
    "speed": "Inference, training, growth with size, start-up",
    "serving": "The HTTP server under load",
}


def kinds(of: Mapping[str, Results]) -> dict[str, Standing]:
    """Compare each kind of LeapTS with the paper."""
    return {
        "One model": standing(of["main"]),
        "Distilled": standing(of["distilled"], DISTILLED, of["main"]),
        "Ensemble": standing(of["ensembles"], ENSEMBLE, of["main"]),
    }


def overview(of: Mapping[str, Results], speed: Sequence[Line]) -> str:
    """Render the page."""
    found = kinds(of)
    cost = distillation_cost(of["distilled"], of["main"])
    listed = "\n".join(f"- {said}" for said in [*losses(found, of["long"], of["m4"]), *_better_baselines(of)])
    summaries = "\n".join(f"- {kind}: {one.summary()}" for kind, one in found.items())
    studies = table(
        ["study", "contents"], [[f"[{name}](benchmarks/{name}.md)", said] for name, said in _STUDIES.items()]
    )
    return f"""# Benchmarks

How accurate and how fast LeapTS is, compared with the results of its paper and with other models (*baselines*). All
numbers and charts are rendered by `python -m leapts_bench table` from `benchmarks/results/`. Errors are on scaled
values; lower is better.

The results of three kinds of LeapTS are reported separately:

- **One model**: one network, comparable with the paper.
- **Distilled**: one network, trained with [knowledge distillation](how-to/knowledge-distillation.md) from four
  teachers. {cost} A forecast costs the
  same as with one model.
- **Ensemble**: the mean forecast of [four networks](how-to/ensemble.md), at four times the cost.

## Compared with the paper

![Relative difference of MSE and MAE from the paper, for each data set and kind of LeapTS](images/{PAPER_CHART})

{_paper_table(found)}

{summaries}

## Where LeapTS loses

{listed or NOT_RUN}

## Compared with baselines

One model against each baseline, all trained here. The figures are the mean difference (geometric) of the error of
LeapTS from that of the baseline, over data sets and horizons. The options of LeapTS were tuned on validation
windows, while the baselines have the options their authors published; [this page](benchmarks/baselines.md) says
what that means for each.

![Relative difference of the errors of LeapTS from those of each baseline](images/{BASELINES_CHART})

{_baselines_table(of["baselines"])}

## Speed

{headline(speed)}

## All studies

{studies}

## Protocol

Every test window counts. Options were chosen on validation windows only; for M4 and distillation, some of these
trials were not recorded. Each line of the results files holds the full description of the run, its seed, commit and
versions. A run can be repeated exactly at its commit; later commits may draw other random numbers for the same seed.
Runs of earlier recipes stay in the results files and count nowhere on these pages. Details and exceptions:
[benchmark protocol](decisions/benchmark-protocol.md).
"""


def _paper_table(found: Mapping[str, Standing]) -> str:
    rows = []
    for dataset in [name for name in PAPER_SETS if any(name in one.gaps for one in found.values())]:
        cells = []
        for one in found.values():
            cells += [percent(gap) for gap in one.gaps[dataset]] if dataset in one.gaps else ["-", "-"]
        rows.append([dataset, *cells])
    columns = [f"{kind.lower()}, {metric}" for kind in found for metric in ("MSE", "MAE")]
    return table(["difference from the paper", *columns], rows)


def _baselines_table(of: Results) -> str:
    rows = []
    for name in BASELINES:
        row = [name]
        for metric in ("mse", "mae"):
            one = compare(of, name, metric)
            row += [NOT_RUN if one.gap is None else percent(one.gap), one.lower]
        rows.append(row)
    return table(["baseline", "MSE", "lower MSE in", "MAE", "lower MAE in"], rows)


def _better_baselines(of: Mapping[str, Results]) -> list[str]:
    """Name the baselines that are often better than LeapTS, and the scenarios where some are."""
    better = []
    for name in BASELINES:
        found = {metric: compare(of["baselines"], name, metric.lower()) for metric in ("MSE", "MAE")}
        lost = [f"{metric} in {one.lost} of {len(one.ratios)}" for metric, one in found.items() if one.is_mostly_lost]
        if lost:
            better.append(f"{name} ({', '.join(lost)})")
    said = [f"A baseline has the lower error in most of the results: {'; '.join(better)}."] if better else []
    return [*said, f"[Synthetic scenarios](benchmarks/synthetic.md): {lower_than_ours(of['synthetic'])}"]
