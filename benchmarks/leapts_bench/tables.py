"""The page of benchmarks, made from results files alone: it never trains, and no figure in it is typed by hand."""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from leapts.files import write_file
from leapts_bench import results
from leapts_bench.analysis_tables import analysis
from leapts_bench.markdown import NOT_RUN, cell, percent, place, plain, table
from leapts_bench.peer_tables import peers
from leapts_bench.published import AVERAGE, best_other, published
from leapts_bench.results import Line
from leapts_bench.speed import FILE as SPEED_FILE
from leapts_bench.speed import speed_page
from leapts_bench.studies import ablation, m4, m4_group, seeds, sensitivity, synthetic
from leapts_bench.suites import FULL, MEAN, NAIVE, PAPER_SETS, SUITES, TAUGHT, Entry, entries
from leapts_bench.summary import Figure, Horizon, Results, difference

Entries = Mapping[str, Sequence[Entry]]

_METRICS = ("MSE", "MAE")

_PREAMBLE = """# Benchmarks

Made by `python -m leapts_bench table` from the files in `benchmarks/results/`, each line of which holds its full
description, seed, commit and versions (the first ones without that of neuralforecast, and those of speed without the
descriptions). A run repeats exactly at its
commit; later code may draw other random numbers for the same seed. Options were chosen on validation windows alone
(`benchmarks/results/search.jsonl`; for M4 and teaching also by trials that were not kept); every test window is scored.
More on the protocol, and where it was not kept to, is in
[decisions/benchmark-protocol.md](decisions/benchmark-protocol.md).

*here*: this code, mean over seeds, with the standard deviation where there are several. *paper*: LeapTS as published.
*difference*: here against the paper's LeapTS, below zero where here is better. *best other*: the best of the other
models in the paper. *last value*: a forecast that repeats it. Figures are on scaled values unless said otherwise.
Lower is better throughout.
"""


_ON_TEACHING = """\
One model of the same recipe, size and cost of a forecast, which learned, for twice as long, half from what came
and half from the mean of what four others, fitted first, forecast of the training windows. Its schedule can be traced
as ever. A fit costs several times as much (below), and looks at the validation windows twice as often.

"""

_ON_MEANS = """\
The mean of what four models of one recipe forecast, each with a seed of its own, at four times the cost. The paper's
figures are of single models, so this does not compare like with like.

"""


def write(folder: Path, out: Path) -> None:
    """Render the results of a folder into a file."""
    suites = {suite: entries(suite) for suite in SUITES}
    done = results.cut_short(folder) | results.finished(folder)
    page = render(suites, done, results.read(folder / SPEED_FILE))
    write_file(out, page.encode())


def render(suites: Entries, done: Mapping[str, Line], speed: Sequence[Line] = ()) -> str:
    """The whole page, from the finished runs and the measurements of speed."""
    of = {suite: Results(suites.get(suite, ()), done) for suite in SUITES}
    parts = [
        _PREAMBLE,
        "## At a glance\n\n" + glance(of["main"]) + " " + elsewhere(of["long"], of["m4"]),
        "### One model, taught by four\n\n" + _ON_TEACHING + taught_glance(of["taught"], of["main"]),
        "### The mean of four models\n\n" + _ON_MEANS + glance(of["means"], MEAN, of["main"]),
        "## Main results\n\n" + comparison("main", of["main"]),
        "### ILI without the last incomplete batch\n\n" + whole_batches(of["main"], of["taught"]),
        "### In the units of the data, and what it costs\n\n" + costs(of["main"]),
        "### Taught, beside untaught\n\n" + beside(TAUGHT, of["taught"], of["main"], words=("taught", "untaught")),
        "### The mean of four models, beside one\n\n" + beside(MEAN, of["means"], of["main"], words=("four", "one")),
        "## M4\n\n" + m4(of["m4"]) + "\n\nThe mean of four models:\n\n" + m4(of["means"], MEAN),
        "## Synthetic scenarios\n\n" + synthetic(of["synthetic"]),
        "## Long look-back and horizons\n\nLook-back 720.\n\n" + comparison("long", of["long"]),
        "## Ablation\n\n" + ablation(of["ablation"]),
        "## Sensitivity\n\nOn ETTm1, averages over the horizons.\n\n" + sensitivity(of["sensitivity"]),
        "## Seeds\n\n" + seeds(of["seeds"]),
        "## Peers\n\n" + peers(of["peers"]),
        "## What drives the leaps\n\n" + analysis(of["analysis"]),
        "## Speed\n\n" + speed_page(speed),
        "## Runs of earlier recipes\n\n" + superseded(suites, done),
    ]
    return "\n".join(part.rstrip("\n") + "\n" for part in parts)


def glance(main: Results, variant: str = FULL, naive: Results | None = None) -> str:
    """One line for each of the paper's sets, and how many of them are reached.

    Args:
        main: The runs of the variant.
        variant: Which.
        naive: The runs that repeat the last value, where they are others.
    """
    rows, gaps, reached, complete = [], [], 0, 0
    for dataset in [name for name in PAPER_SETS if name in main.datasets()]:
        row, holds = [dataset], True
        for metric in _METRICS:
            here = main.average(dataset, variant, metric.lower())
            paper = published("main", dataset, AVERAGE, metric)
            assert paper is not None, f"the paper has no average for {dataset}"
            row += _against(here, paper)
            if here is not None:
                gaps.append(difference(here.mean, paper))
                holds &= round(here.mean, 3) <= paper
        averaged = main.average(dataset, variant, "mse")
        complete += averaged is not None
        reached += averaged is not None and holds
        verdict = NOT_RUN if averaged is None else "yes" if holds else "no"
        rows.append([*row, str(averaged.seeds if averaged else 0), verdict])
    headings = ["set", *_pair("MSE"), *_pair("MAE"), "seeds", "at or below in both"]
    said = f"At or below the paper's LeapTS in both, to its three decimals: {reached} of {complete} sets run in full"
    said += f" (of {len(rows)})."
    if gaps:
        said += f" Average of the relative differences: {percent(sum(gaps) / len(gaps))}."
    if hard := [name for name in main.datasets() if _is_no_better_than_naive(naive or main, main, variant, name)]:
        said += f" To repeat the last value is at or below LeapTS in both on: {', '.join(hard)}."
    return f"Averages over the horizons.\n\n{table(headings, rows)}\n\n{said}"


def _is_no_better_than_naive(naive: Results, of: Results, variant: str, dataset: str) -> bool:
    pairs = [
        (naive.average(dataset, NAIVE, metric.lower()), of.average(dataset, variant, metric.lower()))
        for metric in _METRICS
    ]
    return all(last is not None and ours is not None and last.mean <= ours.mean for last, ours in pairs)


def elsewhere(long: Results, m4_: Results) -> str:
    """How the other tables with figures to reach stand, in a sentence each."""
    held = [
        round(here.mean, 3) <= paper
        for dataset in long.datasets()
        for horizon in long.horizons(dataset, FULL)
        for metric in _METRICS
        if (here := long.figure(dataset, FULL, horizon, metric.lower())) is not None
        and (paper := published("long", dataset, horizon, metric)) is not None
    ]
    said = f"With the long look-back, at or below it in {sum(held)} of {len(held)} figures."
    if all_series := m4_group(m4_, "Average"):
        theirs = {name: plain(published("m4", "Average", "-", name)) for name in all_series}
        figures = [f"{name} {value:.3f} against {theirs[name]}" for name, value in all_series.items()]
        said += f" On M4, all series together: {', '.join(figures)}."
    return said


def comparison(name: str, of: Results) -> str:
    """Every set and horizon beside the paper's LeapTS and the best of its other models."""
    rows = []
    for dataset in of.datasets():
        for horizon in of.places(dataset, FULL):
            row = [dataset, place(horizon)]
            for metric in _METRICS:
                here = of.figure(dataset, FULL, horizon, metric.lower())
                row += _against(here, published(name, dataset, horizon, metric))
                rival = best_other(name, dataset, horizon, metric)
                row.append(f"{rival.value:.3f} ({rival.model})" if rival else "-")
                row.append(plain(of.figure(dataset, NAIVE, horizon, metric.lower())))
            rows.append(row)
    columns = [heading for metric in _METRICS for heading in (*_pair(metric), "best other", NAIVE)]
    return table(["set", "horizon", *columns], rows)


def beside(variant: str, of: Results, main: Results, *, words: tuple[str, str]) -> str:
    """What a variant gains on the recipe as it is, and how both stand to the paper; words for the two."""
    rows = []
    for dataset in of.datasets():
        # The competition's sets have a table of their own.
        for horizon in of.places(dataset, variant) if dataset in PAPER_SETS else ():
            row = [dataset, place(horizon)]
            # One of four models is as good as another, whatever its seed; teaching is compared seed by seed.
            alike = () if variant == MEAN else _seeds_of_both(dataset, horizon, of, variant, main)
            for metric in _METRICS:
                changed = of.figure(dataset, variant, horizon, metric.lower(), alike)
                plainly = main.figure(dataset, FULL, horizon, metric.lower(), alike)
                gain = percent(difference(changed.mean, plainly.mean)) if changed and plainly else "-"
                row += [cell(changed), plain(plainly), gain, plain(published("main", dataset, horizon, metric))]
            rows.append(row)
    new, old = words
    columns = [heading for metric in _METRICS for heading in (f"{metric} {new}", old, f"{new} to {old}", "paper")]
    return table(["set", "horizon", *columns], rows)


def _seeds_of_both(dataset: str, horizon: Horizon, of: Results, variant: str, main: Results) -> set[int]:
    """Those that both have run with: a lucky seed must not stand for one side alone."""
    horizons = [horizon] if isinstance(horizon, int) else of.horizons(dataset, variant)
    return of.seeds(dataset, [variant], horizons) & main.seeds(dataset, [FULL], horizons)


def taught_glance(taught: Results, main: Results) -> str:
    """The same of taught models, and what teaching does on validation windows: the geometric mean of both errors."""
    gains, costs = [], []
    for dataset in taught.datasets():
        alike = _seeds_of_both(dataset, AVERAGE, taught, TAUGHT, main)
        ratios = [
            new.mean / old.mean
            for metric in _METRICS
            if (new := taught.average(dataset, TAUGHT, metric.lower(), part="validation", seeds=alike))
            and (old := main.average(dataset, FULL, metric.lower(), part="validation", seeds=alike))
        ]
        for horizon in taught.horizons(dataset, TAUGHT):
            times = [_fastest_fit(taught, dataset, TAUGHT, horizon), _fastest_fit(main, dataset, FULL, horizon)]
            costs += [times[0] / times[1]] if times[0] and times[1] else []
        if ratios:
            gains.append(f"{dataset} {percent(statistics.geometric_mean(ratios) - 1)}")
    said = f"On validation windows, taught to untaught, both errors together: {', '.join(gains) or NOT_RUN}."
    if costs:
        said += f" Fits took {min(costs):.0f} to {max(costs):.0f} times as long, half of them less than "
        said += f"{statistics.median(costs):.1f} times, by the fastest seeds of both."
    return f"{glance(taught, TAUGHT, main)} {said}"


def _fastest_fit(of: Results, dataset: str, variant: str, horizon: int) -> float | None:
    """Runs shared the machine, and some were paused, which only ever adds to their time; of some it is not known."""
    seconds = [line["seconds"]["fit"] for line in of.lines(dataset, variant, horizon)]
    return min((known for known in seconds if known is not None), default=None)


def whole_batches(main: Results, taught: Results) -> str:
    """ILI as published code often scores it, beside every window."""
    rows = [*_both_ways("untaught", main, FULL), *_both_ways("taught", taught, TAUGHT)]
    said = (
        "Published code often drops the last incomplete batch of 32 test windows. On so small a set that alone moves "
    )
    said += "the figures, so they are given both ways; everywhere else on this page every window counts. Whether the "
    said += "paper's figures are of all windows is not known."
    columns = [f"{metric} {kind}" for metric in _METRICS for kind in ("every window", "whole batches of 32", "paper")]
    return f"{said}\n\n{table(['LeapTS', 'horizon', *columns], rows)}"


def _both_ways(what: str, runs: Results, variant: str) -> Iterator[list[str]]:
    for horizon in runs.places("ILI", variant):
        row = [what, place(horizon)]
        for metric in _METRICS:
            every = runs.figure("ILI", variant, horizon, metric.lower())
            whole = runs.figure("ILI", variant, horizon, f"{metric.lower()}_whole_batches")
            row += [cell(every), cell(whole), plain(published("main", "ILI", horizon, metric))]
        yield row


def costs(main: Results) -> str:
    """Errors in the units of the data, size, leaps, memory, all means over seeds; and time, that of the fastest."""
    rows = []
    for dataset in main.datasets():
        for horizon in main.horizons(dataset, FULL):
            lines = main.lines(dataset, FULL, horizon)
            if not lines:
                continue
            count = len(lines)
            memory = sum(line["memory"]["peak"] - line["memory"]["imports"] for line in lines) / count / 1e6
            fastest = _fastest_fit(main, dataset, FULL, horizon)
            rows.append(
                [
                    dataset,
                    str(horizon),
                    f"{lines[0]['test']['windows']:,}",
                    plain(main.figure(dataset, FULL, horizon, "mse_original"), digits=4),
                    plain(main.figure(dataset, FULL, horizon, "mae_original"), digits=4),
                    f"{lines[0]['parameters']:,}",
                    plain(main.figure(dataset, FULL, horizon, "leaps"), digits=3),
                    "-" if fastest is None else f"{fastest:.0f}",  # not known of a run that was stopped and went on
                    f"{memory:.0f}",
                ]
            )
    said = "One thread for each run. The time of a fit is that of the fastest seed: runs shared the machine, and some "
    said += "were paused, which only ever adds to it. Memory is the peak above what the imports take. Variates "
    said += "of different units are averaged as they are, so errors in units compare only within a row."
    headings = ["set", "horizon", "windows", "MSE", "MAE", "parameters", "leaps", "fit, s", "memory, MB"]
    return f"{said}\n\n{table(headings, rows)}" if rows else NOT_RUN


def superseded(suites: Entries, done: Mapping[str, Line]) -> str:
    """The finished runs that no suite names any more, so that a recipe replaced after its test was opened shows."""
    named = {entry.run.key for entries_ in suites.values() for entry in entries_}
    counted = {line["key"] for key, line in done.items() if key in named}
    lines = list({line["key"]: line for line in done.values() if line["key"] not in counted}.values())
    if not lines:
        return "None: no recipe was replaced after a test had been opened with it."
    rows = [
        [
            line["run"]["dataset"],
            str(line["run"]["horizon"]),
            _called(line["run"]),
            str(line["seed"]),
            *_two_errors(line["test"]),
            f"`{line['commit'][:10]}`",
        ]
        for line in lines
    ]
    said = (
        "After their test had been opened, a changed search or a rule that was withdrawn replaced the recipe of these "
    )
    said += (
        "runs, the settings of a peer were corrected, or what early stopping had cut short was run again. They count "
    )
    said += "nowhere above; why is in the decisions."
    headings = ["set", "horizon", "model", "seed", "MSE, or SMAPE on M4", "MAE, or MASE on M4", "commit"]
    return f"{said}\n\n{table(headings, rows)}"


def _called(run: Line) -> str:
    """A peer's name, or ours with what it had in place of the usual: a schedule, a cell, values less a season."""
    model = run["model"]
    options = model.get("options", {})
    ours = FULL
    for part, usual in (("scheduling", "hierarchical"), ("state", "cde")):
        kind = options.get(part, {}).get("kind", usual)
        ours += "" if kind == usual else f", {part} {kind}"
    ours += ", taught" if run.get("training", {}).get("teachers") else ""
    ours = f"mean of {model['members']}" if "members" in model else ours
    ours += ", values less a season" if "season" in run else ""
    return str(model.get("name", ours))


def _two_errors(test: Line) -> list[str]:
    names = ("smape", "mase") if "smape" in test else ("mse", "mae")
    return [plain(test[name]) for name in names]


def _pair(metric: str) -> list[str]:
    return [f"{metric} here", "paper", "difference"]


def _against(here: Figure | None, paper: float | None) -> list[str]:
    gap = percent(difference(here.mean, paper)) if here is not None and paper else "-"
    return [cell(here), plain(paper), gap]
