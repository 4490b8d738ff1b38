"""Analyses of the schedule: what drives the state, which leaps are taken, how well states separate series."""

import statistics
from collections.abc import Sequence

from leapts_bench.results import Line
from leapts_bench.suites import ANALYSED_SETS, CLUSTERED_SET, FULL, NO_SCHEDULING, SCENARIOS, THREE_CLUSTERS
from leapts_bench.tables.markdown import NOT_RUN, plain, table
from leapts_bench.tables.published import published
from leapts_bench.tables.summary import Results

_BINS = 4
_PLACES = (*(f"bin{number}" for number in range(_BINS)), "overall")
_PLACE_NAMES = ("calmest", "calm", "volatile", "most volatile", "overall")

_SIGNALS = """## What changes the state

The share of the state's changes that comes from the control signal and from time, on test windows, as *control /
temporal*. Windows are divided into four bins by the volatility of their look-back (the size of its steps). Weather
replaces data sets that are not available here. *all*: the mean over the data sets that were run; in the paper, over its
own. The control share rises from the calmest to the most volatile bin on {rising} of {run} data sets."""

_SCALES = """## Which leaps are taken

Shares of short, mid and long leaps on the synthetic scenarios, by volatility. From the calmest to the most volatile
bin, the share of short leaps rises on {shorter} of {run} scenarios, and the number of leaps on {more}."""

_SEPARATION = """## How well states separate clusters of series

The silhouette score of the three clusters of {name} (1: separate, 0: mixed), computed on the final vector of each
model: the state after the last leap, the encoder's latent vector without a scheduling branch, and the forecast of
DLinear, which has no hidden state. The score on the t-SNE projection depends on the projection. {clusters} has separate
dynamics for three groups of series that were found on the training data."""


def analysis(of: Results) -> str:
    """Render the three analyses."""
    return "\n\n".join([_signals(of), _scales(of), _separation(of)])


def _signals(of: Results) -> str:
    rows, found, rising = [], [], 0
    for dataset in ANALYSED_SETS:
        line = _line(of, dataset, FULL)
        paper = _published_shares(dataset)
        if line is not None:
            shares = [one["control"] for one in _bins(line)]
            found.append(shares)
            rising += shares[_BINS - 1] > shares[0]
        rows.append([dataset, "here", *_pairs(found[-1] if line is not None else None)])
        rows += [[dataset, "paper", *paper]] if paper else []
    together = [statistics.fmean(column) for column in zip(*found, strict=True)] if found else None
    rows.append(["all", "here", *_pairs(together)])
    rows.append(["all", "paper", *_published_shares("ALL")])
    said = _SIGNALS.format(rising=rising, run=len(found))
    return f"{said}\n\n{table(['data set', 'source', *_PLACE_NAMES], rows)}"


def _scales(of: Results) -> str:
    rows, shorter, more, run = [], 0, 0, 0
    for dataset in SCENARIOS:
        line = _line(of, dataset, FULL)
        if line is None:
            rows.append([dataset, *[NOT_RUN] * 6])
            continue
        bins = _bins(line)
        run += 1
        shorter += bins[_BINS - 1]["scales"]["short"] > bins[0]["scales"]["short"]
        more += bins[_BINS - 1]["leaps"] > bins[0]["leaps"]
        for name, one in zip(_PLACE_NAMES, bins, strict=True):
            spread = f"{one['low']:.3g} to {one['high']:.3g}" if name != "overall" else "-"
            rows.append([dataset, name, spread, *map(plain, one["scales"].values()), f"{one['leaps']:.2f}"])
    headings = ["data set", "windows", "volatility", "short", "mid", "long", "leaps per window"]
    return f"{_SCALES.format(run=run, shorter=shorter, more=more)}\n\n{table(headings, rows)}"


def _separation(of: Results) -> str:
    rows = []
    for variant in (FULL, THREE_CLUSTERS, NO_SCHEDULING, "DLinear"):
        line = _line(of, CLUSTERED_SET, variant)
        if line is None:
            rows.append([variant, *[NOT_RUN] * 3])
            continue
        found = line["analysis"]
        rows.append([variant, *map(plain, (found["separation"], found["separation_on_plane"], line["test"]["mse"]))])
    headings = ["model", "silhouette of the vectors", "silhouette on the t-SNE projection", "test MSE"]
    return f"{_SEPARATION.format(name=CLUSTERED_SET, clusters=f'*{THREE_CLUSTERS}*')}\n\n{table(headings, rows)}"


def _line(of: Results, dataset: str, variant: str) -> Line | None:
    lines = [line for horizon in of.horizons(dataset, variant) for line in of.lines(dataset, variant, horizon)]
    return lines[0] if lines else None


def _bins(line: Line) -> list[Line]:
    """The bins by volatility, then all windows together."""
    return [*line["analysis"]["changes"], line["analysis"]["overall"]]


def _published_shares(dataset: str) -> list[str]:
    """The paper's shares as printed (they do not always add up to one); empty without such a data set."""
    shares = {
        signal: [published("signal-bins", dataset, place, signal) for place in _PLACES]
        for signal in ("control", "temporal")
    }
    if None in shares["control"]:
        return []
    return [f"{plain(control)} / {plain(temporal)}" for control, temporal in zip(*shares.values(), strict=True)]


def _pairs(control: Sequence[float] | None) -> list[str]:
    if control is None:
        return [NOT_RUN] * len(_PLACES)
    return [f"{share:.3f} / {1 - share:.3f}" for share in control]
