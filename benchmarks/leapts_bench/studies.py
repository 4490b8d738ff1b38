"""The smaller tables of the page: synthetic scenarios, M4, ablations, sensitivity, seeds."""

import statistics
from collections.abc import Mapping, Sequence

from leapts.data.catalogue import find
from leapts.metrics import owa
from leapts_bench.markdown import NOT_RUN, cell, percent, place, plain, table
from leapts_bench.published import AVERAGE, published
from leapts_bench.results import Line
from leapts_bench.suites import COMPONENTS, FULL, M4_GROUPS, NO_HIGH_LEVEL, NO_SCHEDULING, TRACES
from leapts_bench.summary import NOISIEST, Results, confidence_halfwidth, difference

_LEVELS = (0.90, 0.95, 0.99)
M4_METRICS = ("SMAPE", "MASE", "OWA")

# The paper's tables differ in what they call the model without its scheduling branch.
_PUBLISHED_NAMES = {("ablation-components", NO_SCHEDULING): "w/o hierarchical scheduling"}


def synthetic(of: Results) -> str:
    """Every scenario and horizon, with and without the scheduling branch."""
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
    said = """The paper describes the scenarios and has no data to download, so these are made anew
([decisions/synthetic-scenarios.md](decisions/synthetic-scenarios.md)): its figures are of other data, and a
difference to them says little. LeapTS has a recipe searched for here, of up to sixty epochs; peers have no settings
for these sets, and ten epochs (or a thousand steps) with those for ETTh1, after which some were still learning. Compare
LeapTS with and without its branch.{marks} {lower}"""
    is_marked = any(of.mark(dataset, name, AVERAGE) for dataset in of.datasets() for name in of.variants())
    marks = " \\*: cut short by early stopping, to be run again." if is_marked else ""
    said = said.format(marks=marks, lower=_lower_than_ours(of))
    return f"{said}\n\n{table(['set', 'variant', 'horizon', 'MSE here', 'paper', 'MAE here', 'paper'], rows)}"


def _lower_than_ours(of: Results) -> str:
    """Who is below LeapTS on the average of a scenario, in both errors."""
    found = []
    for dataset in sorted(of.datasets()):
        names = [name for name in of.variants() if name != FULL and _is_lower(of, dataset, name)]
        found += [f"{', '.join(names)} on {dataset}"] if names else []
    return f"Below LeapTS in both errors, on the average of the horizons: {'; '.join(found) or 'none that have run'}."


def _is_lower(of: Results, dataset: str, name: str) -> bool:
    pairs = [[of.average(dataset, one, metric) for one in (name, FULL)] for metric in ("mse", "mae")]
    return all(theirs is not None and ours is not None and theirs.mean < ours.mean for theirs, ours in pairs)


def m4(of: Results, variant: str = FULL) -> str:
    """SMAPE, MASE and OWA of the paper's groups of frequencies, each series with the same weight."""
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
    return table(["group", *columns], rows)


def m4_group(of: Results, group: str, variant: str = FULL) -> dict[str, float]:
    """The figures of a group; none where some of its frequencies have not run."""
    found = [of.lines(f"M4-{name}", variant, find(f"M4-{name}").horizons[0]) for name in M4_GROUPS[group]]
    return m4_figures([lines[0] for lines in found]) if all(found) else {}


def m4_figures(lines: Sequence[Line]) -> dict[str, float]:
    """Figures of several frequencies together, and relative to Naive2 on the same series."""
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
    """The paper's three ablations, each against the full model."""
    parts = [
        "Components, MSE, averages over the horizons:",
        _ablation(of, "ablation-components", "MSE", [FULL, *COMPONENTS], whole=True),
        "The high level, MAE at the longest horizon:",
        _ablation(of, "ablation-hierarchical", "MAE", [FULL, NO_HIGH_LEVEL], whole=False),
        "The trace, MAE at the longest horizon:",
        _ablation(of, "ablation-trace", "MAE", [FULL, *TRACES], whole=False),
    ]
    return "\n\n".join(parts)


def _ablation(of: Results, name: str, metric: str, variants: Sequence[str], *, whole: bool) -> str:
    """One line a set, one column a variant; and whether the full model is the best on the average of all sets run."""
    rows = []
    complete: dict[str, list[float]] = {}
    for dataset in of.datasets():
        horizons = of.horizons(dataset, variants[1])
        if not horizons or (whole and len(horizons) == 1):
            continue
        row, values = [dataset], []
        alike = of.seeds(dataset, variants, horizons)  # a lucky seed must not stand for one side alone
        for variant in variants:
            here = of.average(dataset, variant, metric.lower(), horizons, seeds=alike)
            place = AVERAGE if whole else horizons[-1]
            paper = published(name, dataset, place, metric, _PUBLISHED_NAMES.get((name, variant), variant))
            row += [cell(here), plain(paper)]
            values += [here.mean] if here is not None else []
        if len(values) == len(variants):
            complete[dataset] = values
        rows.append(row)
    headings = ["set", *(heading for variant in variants for heading in (f"{variant} here", "paper"))]
    return f"{table(headings, rows)}\n\n{_order(variants, complete)}"


def _order(variants: Sequence[str], complete: Mapping[str, Sequence[float]]) -> str:
    if not complete:
        return f"The order of the variants: {NOT_RUN}."
    others = {dataset: values for dataset, values in complete.items() if dataset != NOISIEST}
    means, gaps = _gaps(variants, list(complete.values()))
    holds = "is the best" if min(means) >= 1 else "is NOT the best"
    said = (
        f"By the geometric mean over the {len(complete)} sets run in full the full model {holds}: against it, {gaps}. "
    )
    if others and len(others) < len(complete):
        means, gaps = _gaps(variants, list(others.values()))
        holds = "still is" if min(means) >= 1 else "is NOT the best"
        said += f"Without {NOISIEST}, where seeds differ most, it {holds}: {gaps}. "
    return said + (
        "Variants of a set have the same seeds, one where no ± stands, and not all at one commit: gaps below a percent "
        "are within what other random numbers change."
    )


def _gaps(variants: Sequence[str], complete: Sequence[Sequence[float]]) -> tuple[list[float], str]:
    """Each variant against the first: the means of the ratios, and all of it in words."""
    # Ratios, so that a set of large errors does not speak for all of them.
    ratios = [[values[place] / values[0] for values in complete] for place in range(1, len(variants))]
    means = [statistics.geometric_mean(column) for column in ratios]
    return means, ", ".join(
        f"{variant} {percent(difference(mean, 1.0))} (higher on {sum(ratio > 1 for ratio in column)})"
        for variant, mean, column in zip(variants[1:], means, ratios, strict=True)
    )


def sensitivity(of: Results) -> str:
    """Layers, look-back and clusters, averages over the horizons."""
    names = {"layers": "sensitivity-layers", "L": "sensitivity-input", "G": "sensitivity-clusters"}
    rows = []
    for variant in sorted(of.variants(), key=lambda variant: list(names).index(variant.split("=")[0])):
        name = names[variant.split("=")[0]]
        row = [variant]
        for metric in ("MSE", "MAE"):
            here = of.average("ETTm1", variant, metric.lower())
            row += [cell(here), plain(published(name, "ETTm1", AVERAGE, metric, variant))]
        rows.append(row)
    said = "Layers are those of the encoder and the heads here; the paper's are those of its high-level controller."
    return f"{said}\n\n{table(['variant', 'MSE here', 'paper', 'MAE here', 'paper'], rows)}"


def seeds(of: Results) -> str:
    """Means over five seeds with confidence intervals, beside the paper's."""
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
    headings = ["set", "metric", "mean here", "seeds", "90 %", "95 %", "99 %", "paper, 95 %"]
    said = "Averages over the horizons; Student's intervals of the mean over seeds."
    return f"{said}\n\n{table(headings, rows)}"
