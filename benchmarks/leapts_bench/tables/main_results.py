"""Results on every data set and horizon: errors against the paper, errors in original units, and training cost."""

from collections.abc import Iterator

from leapts_bench.suites import DISTILLED, FULL, NAIVE
from leapts_bench.tables.markdown import NOT_RUN, cell, percent, place, plain, table
from leapts_bench.tables.published import best_other, published
from leapts_bench.tables.summary import Figure, Results, difference

METRICS = ("MSE", "MAE")


def comparison(name: str, of: Results) -> str:
    """Compare every data set and horizon with the paper's LeapTS and its best baseline."""
    rows = []
    for dataset in of.datasets():
        for horizon in of.places(dataset, FULL):
            row = [dataset, place(horizon)]
            for metric in METRICS:
                here = of.figure(dataset, FULL, horizon, metric.lower())
                row += compared(here, published(name, dataset, horizon, metric))
                rival = best_other(name, dataset, horizon, metric)
                row.append(f"{rival.value:.3f} ({rival.model})" if rival else "-")
                row.append(plain(of.figure(dataset, NAIVE, horizon, metric.lower())))
            rows.append(row)
    columns = [heading for metric in METRICS for heading in (*columns_for(metric), "best baseline of the paper", NAIVE)]
    return table(["data set", "horizon", *columns], rows)


def whole_batches(main: Results, distilled: Results) -> str:
    """Score ILI on all test windows, and on whole batches only."""
    rows = [*_both_ways("one model", main, FULL), *_both_ways("distilled", distilled, DISTILLED)]
    columns = [f"{metric} {kind}" for metric in METRICS for kind in ("all windows", "whole batches of 32", "paper")]
    return f"""Published code often drops the last incomplete batch of 32 test windows. On a data set as small as ILI
this changes the errors, so both are shown. All other tables score every test window. Whether the paper scores all
windows is not known.

{table(["LeapTS", "horizon", *columns], rows)}"""


def _both_ways(what: str, runs: Results, variant: str) -> Iterator[list[str]]:
    for horizon in runs.places("ILI", variant):
        row = [what, place(horizon)]
        for metric in METRICS:
            every = runs.figure("ILI", variant, horizon, metric.lower())
            whole = runs.figure("ILI", variant, horizon, f"{metric.lower()}_whole_batches")
            row += [cell(every), cell(whole), plain(published("main", "ILI", horizon, metric))]
        yield row


def costs(main: Results) -> str:
    """Tabulate errors in original units, size, leaps, training time and memory."""
    rows = []
    for dataset in main.datasets():
        for horizon in main.horizons(dataset, FULL):
            lines = main.lines(dataset, FULL, horizon)
            if not lines:
                continue
            count = len(lines)
            memory = sum(line["memory"]["peak"] - line["memory"]["imports"] for line in lines) / count / 1e6
            fastest = fastest_fit(main, dataset, FULL, horizon)
            rows.append(
                [
                    dataset,
                    str(horizon),
                    f"{lines[0]['test']['windows']:,}",
                    plain(main.figure(dataset, FULL, horizon, "mse_original"), digits=4),
                    plain(main.figure(dataset, FULL, horizon, "mae_original"), digits=4),
                    f"{lines[0]['parameters']:,}",
                    plain(main.figure(dataset, FULL, horizon, "leaps"), digits=3),
                    "-" if fastest is None else f"{fastest:.0f}",  # unknown for a run that was interrupted and resumed
                    f"{memory:.0f}",
                ]
            )
    headings = ["data set", "horizon", "windows", "MSE", "MAE", "parameters", "leaps", "fit, s", "memory, MB"]
    if not rows:
        return NOT_RUN
    return f"""Means over seeds, one thread per run. Training time is that of the fastest seed, because runs shared the
machine. Memory is the peak above that of the imports. Series with different units are averaged without weights, so
errors in original units compare only within a row.

{table(headings, rows)}"""


def fastest_fit(of: Results, dataset: str, variant: str, horizon: int) -> float | None:
    """Training time of the fastest seed; None where it is unknown."""
    seconds = [line["seconds"]["fit"] for line in of.lines(dataset, variant, horizon)]
    return min((known for known in seconds if known is not None), default=None)


def columns_for(metric: str) -> list[str]:
    """Column headings of a comparison with the paper."""
    return [f"{metric} here", "paper", "difference"]


def compared(here: Figure | None, paper: float | None) -> list[str]:
    """Table cells of a comparison with the paper."""
    gap = percent(difference(here.mean, paper)) if here is not None and paper else "-"
    return [cell(here), plain(paper), gap]
