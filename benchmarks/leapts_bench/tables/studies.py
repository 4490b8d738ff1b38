"""The smaller studies: synthetic scenarios, M4, ablation, sensitivity, seeds."""

import statistics
from collections.abc import Mapping, Sequence

from leapts.datasets.catalogue import find
from leapts.forecasting.metrics import owa
from leapts_bench.results import Line
from leapts_bench.suites import COMPONENTS, FULL, M4_GROUPS, NO_HIGH_LEVEL, NO_SCHEDULING, TRACES
from leapts_bench.tables.markdown import NOT_RUN, cell, percent, place, plain, table
from leapts_bench.tables.published import AVERAGE, published
from leapts_bench.tables.summary import NOISIEST, Results, confidence_halfwidth, difference

_LEVELS = (0.90, 0.95, 0.99)
M4_METRICS = ("SMAPE", "MASE", "OWA")

# The paper's tables differ in what they call the model without its scheduling branch.
_PUBLISHED_NAMES = {("ablation-components", NO_SCHEDULING): "w/o hierarchical scheduling"}


def synthetic(of: Results) -> str:
    """Compare models on every synthetic scenario and horizon."""
    rows = []
    for dataset in sorted(of.datasets()):
        for variant in of.variants():
            for horizon in of.places(dataset, variant):
                row = [dataset, variant, place(horizon)]
                for metric in ("MSE", "MAE"):
                    here = of.figure(dataset, variant, horizon, metric.lower())
                    shown = cell(here) + (of.mark(dataset, variant, horizon) if here else "")
                    row += [shown, plain(published("synthetic", dataset, horizon, metric, variant))]
                rows.append(row)
    said = """The paper describes these scenarios but publishes no data, so the series were generated here
([how](../decisions/synthetic-scenarios.md)). The paper's results are for other data and compare only roughly. The
recipe of LeapTS was searched for on validation windows and trains for up to 60 epochs. The baselines have no published
settings for these data; they use those for ETTh1 and train for ten epochs (or 1,000 steps), after which some were still
improving. The fair comparison is LeapTS with and without its scheduling branch.{marks}

{lower}"""
    is_marked = any(of.mark(dataset, name, AVERAGE) for dataset in of.datasets() for name in of.variants())
    marks = " \\*: cut short by early stopping; the error may be too high." if is_marked else ""
    said = said.format(marks=marks, lower=lower_than_ours(of))
    return f"{said}\n\n{table(['data set', 'model', 'horizon', 'MSE here', 'paper', 'MAE here', 'paper'], rows)}"


def lower_than_ours(of: Results) -> str:
    """Name the models with a lower MSE and MAE than LeapTS on the average of a scenario."""
    found = []
    for dataset in sorted(of.datasets()):
        names = [name for name in of.variants() if name != FULL and _is_lower(of, dataset, name)]
        found += [f"{', '.join(names)} on {dataset}"] if names else []
    return f"Models with a lower MSE and MAE than LeapTS, averaged over the horizons: {'; '.join(found) or 'none'}."


def _is_lower(of: Results, dataset: str, name: str) -> bool:
    pairs = [[of.average(dataset, one, metric) for one in (name, FULL)] for metric in ("mse", "mae")]
    return all(theirs is not None and ours is not None and theirs.mean < ours.mean for theirs, ours in pairs)


def m4(of: Results, variant: str = FULL) -> str:
    """Tabulate SMAPE, MASE and OWA by group of frequencies, every series with the same weight."""
    groups = {group: m4_group(of, group, variant) for group in M4_GROUPS}
    if not any(groups.values()):
        return NOT_RUN
    rows = []
    for group, here in groups.items():
        row = [group]
        for metric in M4_METRICS:
            paper = published("m4", group, "-", metric)
            gap = percent(difference(here[metric], paper)) if here and paper else "-"
            row += [plain(here.get(metric)) if here else NOT_RUN, plain(paper), gap]
        rows.append(row)
    columns = [heading for metric in M4_METRICS for heading in (f"{metric} here", "paper", "difference")]
    return table(["frequency", *columns], rows)


def m4_group(of: Results, group: str, variant: str = FULL) -> dict[str, float]:
    """Metrics of a group of frequencies; empty where some have not run."""
    found = [of.lines(f"M4-{name}", variant, find(f"M4-{name}").horizons[0]) for name in M4_GROUPS[group]]
    return m4_figures([lines[0] for lines in found]) if all(found) else {}


def m4_figures(lines: Sequence[Line]) -> dict[str, float]:
    """Metrics of several frequencies together, and relative to Naive2 on the same series."""
    counts = [line["test"]["series"] for line in lines]

    def mean(part: str, metric: str) -> float:
        return statistics.fmean([line[part][metric] for line in lines], weights=counts)

    ours = mean("test", "smape"), mean("test", "mase")
    return {
        "SMAPE": ours[0],
        "MASE": ours[1],
        "OWA": owa(*ours, mean("naive2", "smape"), mean("naive2", "mase")),
    }


def ablation(of: Results) -> str:
    """Render the paper's three ablations, each against the full model."""
    parts = [
        "## Components\n\nMSE, averaged over the horizons.",
        _ablation(of, "ablation-components", "MSE", [FULL, *COMPONENTS], whole=True),
        "## High-level controller\n\nMAE at the longest horizon.",
        _ablation(of, "ablation-hierarchical", "MAE", [FULL, NO_HIGH_LEVEL], whole=False),
        "## Schedule\n\nMAE at the longest horizon.",
        _ablation(of, "ablation-trace", "MAE", [FULL, *TRACES], whole=False),
    ]
    return "\n\n".join(parts)


def _ablation(of: Results, name: str, metric: str, variants: Sequence[str], *, whole: bool) -> str:
    """Tabulate variants by data set, and state whether the full model is the best on average."""
    rows = []
    complete: dict[str, list[float]] = {}
    for dataset in of.datasets():
        horizons = of.horizons(dataset, variants[1])
        if not horizons or (whole and len(horizons) == 1):
            continue
        row, values = [dataset], []
        alike = of.seeds(dataset, variants, horizons)  # a favorable seed must not count for one side alone
        for variant in variants:
            here = of.average(dataset, variant, metric.lower(), horizons, seeds=alike)
            place = AVERAGE if whole else horizons[-1]
            paper = published(name, dataset, place, metric, _PUBLISHED_NAMES.get((name, variant), variant))
            row += [cell(here), plain(paper)]
            values += [here.mean] if here is not None else []
        if len(values) == len(variants):
            complete[dataset] = values
        rows.append(row)
    headings = ["data set", *(heading for variant in variants for heading in (f"{variant} here", "paper"))]
    return f"{table(headings, rows)}\n\n{_order(variants, complete)}"


def _order(variants: Sequence[str], complete: Mapping[str, Sequence[float]]) -> str:
    if not complete:
        return f"Order of the variants: {NOT_RUN}."
    others = {dataset: values for dataset, values in complete.items() if dataset != NOISIEST}
    means, gaps = _gaps(variants, list(complete.values()))
    holds = "is the best" if min(means) >= 1 else "is NOT the best"
    said = f"By the geometric mean over {len(complete)} data sets, the full model {holds}. Relative to it: {gaps}. "
    if others and len(others) < len(complete):
        means, gaps = _gaps(variants, list(others.values()))
        holds = "still is" if min(means) >= 1 else "is NOT the best"
        said += f"Without {NOISIEST}, where seeds differ most, it {holds}: {gaps}. "
    return said + (
        "Variants of a data set share their seeds (one seed where there is no ±), but not all their commits: "
        "differences below one percent are within the noise of other random numbers."
    )


def _gaps(variants: Sequence[str], complete: Sequence[Sequence[float]]) -> tuple[list[float], str]:
    """Mean ratios of each variant to the first, and a sentence about them."""
    # Ratios, so that data sets with large errors do not dominate.
    ratios = [[values[place] / values[0] for values in complete] for place in range(1, len(variants))]
    means = [statistics.geometric_mean(column) for column in ratios]
    return means, ", ".join(
        f"{variant} {percent(difference(mean, 1.0))} (higher on {sum(ratio > 1 for ratio in column)})"
        for variant, mean, column in zip(variants[1:], means, ratios, strict=True)
    )


def sensitivity(of: Results) -> str:
    """Tabulate errors by number of layers, look-back and clusters."""
    names = {"layers": "sensitivity-layers", "L": "sensitivity-input", "G": "sensitivity-clusters"}
    rows = []
    for variant in sorted(of.variants(), key=lambda variant: list(names).index(variant.split("=")[0])):
        name = names[variant.split("=")[0]]
        row = [variant]
        for metric in ("MSE", "MAE"):
            here = of.average("ETTm1", variant, metric.lower())
            row += [cell(here), plain(published(name, "ETTm1", AVERAGE, metric, variant))]
        rows.append(row)
    said = """ETTm1, averaged over the horizons. *layers*: here those of the encoder and the heads, in the paper those
of its high-level controller. *L*: look-back. *G*: number of clusters."""
    return f"{said}\n\n{table(['variant', 'MSE here', 'paper', 'MAE here', 'paper'], rows)}"


def seeds(of: Results) -> str:
    """Tabulate means over five seeds with confidence intervals."""
    rows = []
    for dataset in of.datasets():
        for metric in ("MSE", "MAE"):
            here = of.average(dataset, FULL, metric.lower())
            row = [dataset, metric, plain(here) if here else NOT_RUN, str(here.seeds if here else 0)]
            row += [
                f"± {confidence_halfwidth(here, level):.4f}" if here is not None and here.seeds > 1 else "-"
                for level in _LEVELS
            ]
            paper = published("seeds", dataset, "ci95", metric)
            width = published("seeds", dataset, "ci95-halfwidth", metric)
            rows.append([*row, "-" if paper is None or width is None else f"{paper:.3f} ± {width:.3f}"])
    headings = ["data set", "metric", "mean here", "seeds", "90 %", "95 %", "99 %", "paper, 95 %"]
    said = "Averages over the horizons, with Student's confidence intervals of the mean over seeds."
    return f"{said}\n\n{table(headings, rows)}"
