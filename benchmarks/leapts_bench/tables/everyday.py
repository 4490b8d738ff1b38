"""`docs/benchmarks/defaults.md`: LeapTS by its defaults beside simple forecasts, and its quantiles."""

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

from leapts_bench.everyday import sets
from leapts_bench.everyday.forecasters import SAMPLES
from leapts_bench.everyday.running import LEAPTS, SIMPLE, STATISTICAL, SYMMETRIC
from leapts_bench.results import Line
from leapts_bench.tables.markdown import NOT_RUN, percent, plain, table
from leapts_bench.tables.summary import Results

_SETS = (*sets.SMALL, *sets.M4)
_ALL = (*_SETS, *sets.GIFT)
_SMALL_FIT = 20_000  # values
_LEVELS = {80: 3, 95: 2}  # coverage wanted, and how many points the mean may be off

Pairs = Mapping[str, tuple[float, float]]


def everyday_page(of: Results) -> str:
    """Render the page."""
    return f"""# Defaults on everyday sets

LeapTS with its defaults: only `h` is given, besides what a fit would be refused without (filling of gaps, padding
where series differ in length). It is fitted once, with one seed, to the values before the first of {sets.WINDOWS}
windows, a horizon apart; simple and statistical forecasts see the whole past of each window. The sets are seven small
public ones, and {sets.M4_SERIES} series of each M4 frequency, drawn once among those that are long enough. Seconds are
processor time of one core for fitting and forecasting.

Defaults were [chosen](../decisions/defaults.md) on backtests inside the training parts of 18 sets. The seven small ones
were among them. They have no official test part, and no record says whether those backtests overlap these windows.

## Point forecasts

MASE. *Best simple*: the best of naive, seasonal naive, drift and historic mean on these very windows, which nobody
knows beforehand. *Ratio*: of LeapTS to it.

{_points(of)}

{_verdict_on_points(of)}

## Quantiles

*Learned*: quantiles as LeapTS gives them by default. *Symmetric*: a point forecast trained with the Huber loss, with
the symmetric intervals of release 0.1. CRPS is the weighted quantile loss at the levels 0.1 to 0.9. The configurations
of GIFT-Eval have the windows of that benchmark. A fit without held-out windows has no symmetric intervals.

{_quantiles(of)}

{_verdict_on_quantiles(of)}

## Totals over the horizon

Coverage of 80 % intervals of the sum over the horizon, from {SAMPLES} sample paths; and from the same samples, shuffled
at each step, so that steps are independent.

{_totals(of)}

{_verdict_on_totals(of)}

## Repeat it

`LEAPTS_DATA` names the folder with the data. AutoETS and AutoTheta need `pip install statsforecast`; they take hours on
monthly and hourly series.

```shell
python -m leapts_bench run defaults --model LeapTS "LeapTS symmetric" {" ".join(SIMPLE)}
python -m leapts_bench run defaults --model {" ".join(STATISTICAL)}
python -m leapts_bench table
```
"""


def _line(of: Results, name: str, model: str) -> Line | None:
    return next(iter(of.lines(name, model, sets.horizon_of(name))), None)


def _score(of: Results, name: str, model: str, metric: str) -> float | None:
    line = _line(of, name, model)
    return None if line is None else line["test"].get(metric)


def _pairs(of: Results, names: Iterable[str], first: tuple[str, str], second: tuple[str, str]) -> Pairs:
    """Two scores, each given by its model and metric, of the sets that have both."""
    found = {name: (_score(of, name, *first), _score(of, name, *second)) for name in names}
    return {name: (one, other) for name, (one, other) in found.items() if one is not None and other is not None}


def _simple(of: Results, name: str) -> tuple[float, str] | None:
    """Error and name of the best simple forecast; None where one of them was not run."""
    errors = [(_score(of, name, model, "mase"), model) for model in SIMPLE]
    known = [(error, model) for error, model in errors if error is not None]
    return min(known) if len(known) == len(SIMPLE) else None


def _geometric(pairs: Pairs) -> float:
    return math.exp(fmean(math.log(one / other) for one, other in pairs.values()))


def _points(of: Results) -> str:
    rows = []
    for name in _SETS:
        line, simple = _line(of, name, LEAPTS), _simple(of, name)
        own = None if line is None else line["test"]["mase"]
        ratio = NOT_RUN if own is None or simple is None else plain(own / simple[0])
        rows.append(
            [
                name,
                NOT_RUN if line is None else f"{line['test']['fitted']:,}",
                _cell(own),
                NOT_RUN if simple is None else f"{simple[0]:.3f} ({simple[1]})",
                ratio,
                *(_cell(_score(of, name, model, "mase")) for model in STATISTICAL),
                NOT_RUN if line is None else f"{line['seconds']['core']:.0f}",
            ]
        )
    return table(["set", "values fitted", LEAPTS, "best simple", "ratio", *STATISTICAL, "seconds"], rows)


def _verdict_on_points(of: Results) -> str:
    own = {name: _score(of, name, LEAPTS, "mase") for name in _SETS}
    simple = {name: _simple(of, name) for name in _SETS}
    ratios = {
        name: error / best[0] for name, best in simple.items() if (error := own[name]) is not None and best is not None
    }
    if not ratios:
        return f"LeapTS: {NOT_RUN}."
    worst = max(ratios, key=ratios.__getitem__)
    behind = [name for name, ratio in ratios.items() if ratio > 1.05]
    found = [
        f"- Worst ratio to the best simple forecast: {ratios[worst]:.3f} ({worst}); more than 5 % behind it on "
        f"{len(behind)} of {len(ratios)} sets{': ' if behind else ''}{', '.join(behind)}."
    ]
    for model in STATISTICAL:
        pairs = _pairs(of, _SETS, (LEAPTS, "mase"), (model, "mase"))
        against = NOT_RUN
        if pairs:
            lower = sum(own_error < other for own_error, other in pairs.values())
            mean = percent(_geometric(pairs) - 1)
            against = f"{mean} on {len(pairs)} of {len(_SETS)} sets; the error is lower on {lower} of them"
        found.append(f"- Against {model}, in geometric mean: {against}.")
    lines = [line for name in _ALL if (line := _line(of, name, LEAPTS)) is not None]
    seconds = [line["seconds"]["core"] for line in lines if line["test"]["fitted"] < _SMALL_FIT]
    longest = max(line["seconds"]["core"] for line in lines)
    if seconds:
        found.append(
            f"- The longest of {len(seconds)} fits to fewer than {_SMALL_FIT:,} values, with its forecasts: "
            f"{max(seconds):.0f} seconds; of all {len(lines)}: {longest:.0f} seconds."
        )
    return "\n".join(found)


def _quantiles(of: Results) -> str:
    rows = []
    for name in _ALL:
        cells: list[float | None] = []
        for metric in ("crps", *(f"coverage_{level}" for level in _LEVELS)):
            cells += [_score(of, name, model, metric) for model in (LEAPTS, SYMMETRIC)]
        crps, symmetric, *shares = cells
        gap = NOT_RUN if crps is None or symmetric is None else percent(crps / symmetric - 1)
        errors = [NOT_RUN if one is None else f"{one:.4f}" for one in (crps, symmetric)]
        rows.append([name, *errors, gap, *(NOT_RUN if share is None else _share(share) for share in shares)])
    headings = [f"{level} %, {kind}" for level in _LEVELS for kind in ("learned", "symmetric")]
    return table(["set", "CRPS, learned", "CRPS, symmetric", "difference", *headings], rows)


def _verdict_on_quantiles(of: Results) -> str:
    crps = _pairs(of, _ALL, (LEAPTS, "crps"), (SYMMETRIC, "crps"))
    if not crps:
        return f"Both kinds: {NOT_RUN}."
    lower = sum(one < other for one, other in crps.values())
    found = [
        f"- CRPS of learned quantiles: lower on {lower} of {len(crps)} sets, {percent(_geometric(crps) - 1)} in "
        "geometric mean."
    ]
    for level, wanted in _LEVELS.items():
        metric = f"coverage_{level}"
        pairs = _pairs(of, _ALL, (LEAPTS, metric), (SYMMETRIC, metric))
        off = [100 * fmean(abs(pair[side] - level / 100) for pair in pairs.values()) for side in (0, 1)]
        found.append(
            f"- Mean absolute difference to {level} % coverage: {off[0]:.1f} points for learned quantiles (goal: at "
            f"most {wanted}), {off[1]:.1f} for symmetric intervals."
        )
    median = _pairs(of, _ALL, (LEAPTS, "mae"), (SYMMETRIC, "mae"))
    found.append(
        f"- MAE of the median against the point forecast's: {percent(_geometric(median) - 1)} in geometric mean over "
        f"{len(median)} sets."
    )
    for model, kind in ((LEAPTS, "learned quantiles"), (SYMMETRIC, "symmetric intervals")):
        sums = {metric: _sum(of, model, metric) for metric in ("crossings", "pairs", "outside", "values")}
        found.append(
            f"- Of {kind}: {sums['crossings']:,} of {sums['pairs']:,} pairs cross, {sums['outside']:,} of "
            f"{sums['values']:,} values are outside of the support."
        )
    return "\n".join(found)


def _sum(of: Results, model: str, metric: str) -> int:
    return sum(int(_score(of, name, model, metric) or 0) for name in _ALL)


def _totals(of: Results) -> str:
    rows = [
        [name, *(NOT_RUN if share is None else _share(share) for share in _total_shares(of, name))] for name in _ALL
    ]
    return table(["set", "sample paths", "independent draws"], rows)


def _total_shares(of: Results, name: str) -> Sequence[float | None]:
    return [_score(of, name, LEAPTS, f"coverage_{kind}") for kind in ("total", "independent")]


def _verdict_on_totals(of: Results) -> str:
    pairs = _pairs(of, _ALL, (LEAPTS, "coverage_total"), (LEAPTS, "coverage_independent"))
    if not pairs:
        return f"LeapTS: {NOT_RUN}."
    mean = [100 * fmean(pair[side] for pair in pairs.values()) for side in (0, 1)]
    off = [100 * fmean(abs(pair[side] - 0.8) for pair in pairs.values()) for side in (0, 1)]
    return (
        f"Mean coverage over {len(pairs)} sets: {mean[0]:.1f} % from sample paths, {mean[1]:.1f} % from independent "
        f"draws; mean absolute difference to 80 %: {off[0]:.1f} and {off[1]:.1f} points (goal: at most 5)."
    )


def _cell(value: float | None) -> str:
    return NOT_RUN if value is None else plain(value)


def _share(value: float) -> str:
    return f"{100 * value:.1f} %"
