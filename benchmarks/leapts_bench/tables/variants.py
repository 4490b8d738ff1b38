"""Distilled models and ensembles, compared with one model and with the paper."""

import statistics

from leapts_bench.suites import DISTILLED, ENSEMBLE, FULL, PAPER_SETS
from leapts_bench.tables.main_results import METRICS, fastest_fit
from leapts_bench.tables.markdown import NOT_RUN, cell, percent, place, plain, table
from leapts_bench.tables.published import AVERAGE, published
from leapts_bench.tables.summary import Horizon, Results, difference


def distillation(distilled: Results, main: Results) -> str:
    """Compare distilled models with models trained on the targets alone."""
    return f"""One network of the same recipe, size and inference cost as a single model. It trains for twice as many
epochs; half of its loss is the error against the targets, the other half the error against the mean forecast of four
teachers that were trained first. Its schedule can be traced like that of any model. {
        distillation_cost(distilled, main)
    }

{_validation_gains(distilled, main)}

{beside(DISTILLED, distilled, main, words=("distilled", "one model"))}"""


def ensembles(of: Results, main: Results) -> str:
    """Compare ensembles of four seeds with one model."""
    return f"""The mean forecast of four networks of one recipe with different seeds, at four times the cost. The
results of the paper are those of single models, so this comparison is not like with like.

{beside(ENSEMBLE, of, main, words=("ensemble", "one model"))}"""


def beside(variant: str, of: Results, main: Results, *, words: tuple[str, str]) -> str:
    """Tabulate a variant, one model and the paper for every data set and horizon."""
    rows = []
    for dataset in of.datasets():
        for horizon in of.places(dataset, variant) if dataset in PAPER_SETS else ():  # M4 has a page of its own
            row = [dataset, place(horizon)]
            # Distillation is compared seed by seed; the seeds of an ensemble's members have no counterpart.
            shared = () if variant == ENSEMBLE else _shared_seeds(dataset, horizon, of, variant, main)
            for metric in METRICS:
                changed = of.figure(dataset, variant, horizon, metric.lower(), shared)
                single = main.figure(dataset, FULL, horizon, metric.lower(), shared)
                gain = percent(difference(changed.mean, single.mean)) if changed and single else "-"
                row += [cell(changed), plain(single), gain, plain(published("main", dataset, horizon, metric))]
            rows.append(row)
    new, old = words
    columns = [heading for metric in METRICS for heading in (f"{metric} {new}", old, "difference", "paper")]
    return table(["data set", "horizon", *columns], rows)


def distillation_cost(distilled: Results, main: Results) -> str:
    """State how much longer a fit with distillation takes."""
    ratios = []
    for dataset in distilled.datasets():
        for horizon in distilled.horizons(dataset, DISTILLED):
            times = [fastest_fit(distilled, dataset, DISTILLED, horizon), fastest_fit(main, dataset, FULL, horizon)]
            ratios += [times[0] / times[1]] if times[0] and times[1] else []
    if not ratios:
        return f"Training cost: {NOT_RUN}."
    span = f"{min(ratios):.0f} to {max(ratios):.0f} times"
    return f"A fit takes {span} as long as without distillation (median {statistics.median(ratios):.1f})."


def _validation_gains(distilled: Results, main: Results) -> str:
    gains = []
    for dataset in distilled.datasets():
        shared = _shared_seeds(dataset, AVERAGE, distilled, DISTILLED, main)
        ratios = [
            new.mean / old.mean
            for metric in METRICS
            if (new := distilled.average(dataset, DISTILLED, metric.lower(), part="validation", seeds=shared))
            and (old := main.average(dataset, FULL, metric.lower(), part="validation", seeds=shared))
        ]
        if ratios:
            gains.append(f"{dataset} {percent(statistics.geometric_mean(ratios) - 1)}")
    changes = ", ".join(gains) or NOT_RUN
    return f"Change of the validation errors (geometric mean of MSE and MAE) by distillation: {changes}."


def _shared_seeds(dataset: str, horizon: Horizon, of: Results, variant: str, main: Results) -> set[int]:
    """Seeds that both have run with, so that a favorable seed does not count for one side alone."""
    horizons = [horizon] if isinstance(horizon, int) else of.horizons(dataset, variant)
    return of.seeds(dataset, [variant], horizons) & main.seeds(dataset, [FULL], horizons)
