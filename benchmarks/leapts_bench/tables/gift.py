"""`docs/benchmarks/gift-eval.md`: LeapTS beside the published models of GIFT-Eval, on the same windows."""

import math
from collections.abc import Collection, Mapping
from statistics import fmean

from leapts_bench.gift import gift_eval, running
from leapts_bench.gift.published import KINDS, LEAKED, NAIVE, SOURCE, TRAINED, Model, gift_models
from leapts_bench.gift.running import ENSEMBLE, FLAIR, LEAPTS, SEASONAL_NAIVE, ZERO
from leapts_bench.tables.markdown import percent, plain, table
from leapts_bench.tables.summary import Results

SECONDS_CHART, WEIGHTS_CHART = "gift-eval-seconds.svg", "gift-eval-weights.svg"
NOT_RUN = "not run yet"
OURS = (LEAPTS, ENSEMBLE, ZERO)
_RIVAL_KINDS = ("statistical", TRAINED, "zero-shot")
_BEST_OF_KIND = 3  # models listed of each kind
_ERRORS = ("MASE", "CRPS", "MASE without M4", "MASE on M4")

_KINDS_EXPLAINED = f"""Read the kinds before the numbers:

- **Trained per set** and **statistical** models see the training part of the set they forecast. LeapTS is one of these:
  fitted to each configuration with its defaults and one seed, without a recipe or a search. *LeapTS ensemble* is the
  mean of the quantiles of {running.MEMBERS} such fits.
- **Zero-shot** models have not seen the sets at all, by their authors' word. **Pretrained** ones have seen training
  parts of GIFT-Eval, **fine-tuned** ones are adapted to each set.
- *LeapTS-Zero* is zero-shot, but for M4: it was pretrained on M4's training parts, so its errors on M4 are no
  zero-shot result.
- Models whose authors say that test data leaked are listed last and ranked nowhere."""
_FLAIR = """FLAIR draws 200 samples for a forecast. On jena_weather/H, ett2/D, ett2/W and us_births/M another seed alone
moves its scores by several percent. On ett2/W its MASE stays above the published one with every seed that was tried,
with more samples, and with every released version since 0.2.1: its submission probably used another version."""
_REPEAT = f"""## Repeat it

`LEAPTS_DATA` names the folder with the data; the commands print an estimate of the time first, do what is missing, and
can be stopped at any time: an unfinished run starts again.

```shell
python -m leapts_bench run gift --model SeasonalNaive LeapTS --time-limit 7200
python -m leapts_bench run gift --model "LeapTS ensemble" --time-limit 28800
python -m leapts_bench run gift --model FLAIR --time-limit 3600  # after pip install flaircast==0.6.1
python -m leapts_bench table
```

The benchmark's own scripts run LeapTS as it is, through GluonTS ([how](../how-to/gluonts.md)); a test holds both ways
to the same scores. Published scores: {SOURCE} at commit 4fd98a9f803a, Apache License 2.0.
"""


class Comparison:
    """Published models and those run here, on the configurations that LeapTS has run.

    If it has run none, all configurations are compared.
    """

    def __init__(self, of: Results) -> None:
        kinds = {SEASONAL_NAIVE: "statistical", FLAIR: "statistical", ZERO: "zero-shot, below 10 M weights"}
        self.here = {name: _measured(of, name, kinds.get(name, TRAINED)) for name in (SEASONAL_NAIVE, FLAIR, *OURS)}
        done = self.here[LEAPTS].seconds or {}
        self.configurations = [name for name in gift_eval.configurations() if not done or name in done]
        self.rivals = [one for one in gift_models().values() if one.kind != LEAKED]

    def relative(self, model: Model, metric: str, configurations: Collection[str] = ()) -> float | None:
        """Geometric mean of the ratios to SeasonalNaive; None when a configuration was not run."""
        wanted = configurations or self.configurations
        own, naive = model.scores.get(metric, {}), gift_models()[NAIVE].scores[metric]
        if not all(name in own for name in wanted):
            return None
        return math.exp(fmean(math.log(own[name] / naive[name]) for name in wanted))

    def error(self, model: Model, configurations: Collection[str] = (), metric: str = "mase") -> float:
        """Relative error of a published model, which has run everywhere."""
        found = self.relative(model, metric, configurations)
        assert found is not None, model.name
        return found

    def best(self, kind: str, count: int = 1, configurations: Collection[str] = ()) -> list[Model]:
        """Published models of a kind (or of all whose kind starts so) with the lowest MASE."""
        members = [one for one in gift_models().values() if one.kind.startswith(kind)]
        return sorted(members, key=lambda one: self.error(one, configurations))[:count]

    def rank(self, name: str, rivals: Collection[Model], configurations: Collection[str] = ()) -> str:
        """Place of a model run here among published ones, by MASE."""
        own = self.relative(self.here[name], "mase", configurations)
        if own is None:
            return NOT_RUN
        better = sum(self.error(rival, configurations) < own for rival in rivals)
        return f"{better + 1} of {len(rivals) + 1}"

    def groups(self) -> dict[tuple[str, str], list[str]]:
        """Configurations by frequency and term; those of M4 are a term of their own."""
        groups: dict[tuple[str, str], list[str]] = {}
        for frequency in gift_eval.FREQUENCIES:
            for name in self.configurations:
                dataset, own, term = name.split("/")
                if own == frequency:
                    groups.setdefault((frequency, "M4" if dataset.startswith("m4_") else term), []).append(name)
        return groups

    def seconds(self, name: str) -> float | None:
        """Processor time over all configurations; None when one was not run."""
        spent = self.here[name].seconds or {}
        return sum(spent[one] for one in self.configurations) if set(spent) >= set(self.configurations) else None


def gift_page(of: Results) -> str:
    """Render the page."""
    found = Comparison(of)
    count, total = len(found.configurations), len(gift_eval.configurations())
    return f"""# GIFT-Eval

[GIFT-Eval]({SOURCE})
publishes the scores of {len(gift_models())} models. {total} of its 97 configurations can be built exactly from public
files; on these LeapTS runs here under the benchmark's protocol. The tests recompute the benchmark's SeasonalNaive on
every configuration and hold it to the published MASE and CRPS (relative tolerance 1e-5).

{_KINDS_EXPLAINED}

Errors are relative to SeasonalNaive: the geometric mean of the ratios over {count} configurations; below 1 is better
than SeasonalNaive, lower is better. Seconds are processor time of one core for fitting and forecasting these
configurations, measured here; the benchmark publishes none. Numbers of weights come from model cards and papers; for
LeapTS, whose size depends on the data, it is that of its largest fit. Some models publish point forecasts only
(Reverso, N-BEATS); their CRPS is a point error.

![Relative MASE against seconds of one core](../images/{SECONDS_CHART})

![Relative MASE against number of weights](../images/{WEIGHTS_CHART})

## Run here

{_run_here(found)}

{_FLAIR}

## Ranks by kind

Place of LeapTS by MASE when it joins the models of a kind.

{_ranks(found)}

## Best models of each kind

{_best_models(found)}

## Where LeapTS loses, by frequency and term

MASE relative to SeasonalNaive, with the best published model of three kinds, and the place of LeapTS among all
published models without leaks.

{_losses(found)}

{_lost_to(found)}

## All configurations

MASE / CRPS as in the benchmark, not relative. *best*: the lowest published MASE of the same three kinds.

{_all_configurations(found)}

{_REPEAT}"""


def _measured(of: Results, name: str, kind: str) -> Model:
    lines = {
        configuration: line
        for configuration in gift_eval.configurations()
        for line in of.lines(configuration, name, gift_eval.horizon_of(configuration))
    }
    scores = {metric: {one: line["test"][metric] for one, line in lines.items()} for metric in ("mase", "crps")}
    weights = max((line["parameters"] for line in lines.values()), default=None)
    seconds = {one: line["seconds"]["core"] for one, line in lines.items()}
    return Model(name, kind, weights, scores, seconds)


def _run_here(found: Comparison) -> str:
    rows = []
    for name, one in found.here.items():
        mase, crps, *parts = _errors(found, one)
        seconds, done = found.seconds(name), f"{len(one.seconds or {})} of {len(gift_eval.configurations())}"
        if mase is None or crps is None or seconds is None:
            rows.append([_marked(name), done, *[NOT_RUN] * 6])
            continue
        published = {FLAIR: "FLAIR", SEASONAL_NAIVE: NAIVE}.get(name)
        gap = "-" if published is None else percent(round(mase / found.error(gift_models()[published]) - 1, 6) + 0.0)
        errors = [plain(error) for error in (mase, crps, *parts)]
        rows.append([_marked(name), done, *errors, f"{seconds:,.0f}", gap])
    return table(["model", "configurations", *_ERRORS, "seconds", "MASE against its published one"], rows)


def _errors(found: Comparison, model: Model) -> list[float | None]:
    """Errors of a model on all configurations, and its MASE without M4 and on M4."""
    of_m4 = [name for name in found.configurations if name.startswith("m4_")]
    parts = [[name for name in found.configurations if name not in of_m4], of_m4]
    mase = [found.relative(model, "mase", part) if part else None for part in parts]
    return [found.relative(model, "mase"), found.relative(model, "crps"), *mase]


def _ranks(found: Comparison) -> str:
    rows = []
    for kind in [kind for kind in KINDS if kind != LEAKED]:
        rivals = [one for one in found.rivals if one.kind == kind]
        best = found.best(kind)[0]
        places = [found.rank(name, rivals) for name in OURS]
        rows.append([kind, str(len(rivals)), f"{best.name} ({found.error(best):.3f})", *places])
    everyone = [found.rank(name, found.rivals) for name in OURS]
    return table(["kind", "models", "best (MASE)", *OURS], [*rows, ["all", str(len(found.rivals)), "", *everyone]])


def _best_models(found: Comparison) -> str:
    rows = []
    for kind in KINDS:
        listed: list[tuple[float, list[str]]] = []
        ours = [found.here[name] for name in OURS if found.here[name].kind == kind]
        for model in [*found.best(kind, _BEST_OF_KIND), *ours]:
            errors = _errors(found, model)
            cells = [NOT_RUN if error is None else plain(error) for error in errors]
            listed.append((errors[0] or math.inf, [kind, _marked(model.name), _weights(model.parameters), *cells]))
        rows += [row for _, row in sorted(listed)]
    return table(["kind", "model", "weights", *_ERRORS], rows)


def _losses(found: Comparison) -> str:
    rows = []
    for (frequency, term), names in found.groups().items():
        own = [found.relative(found.here[name], "mase", names) for name in OURS]
        best = [found.best(kind, 1, names)[0] for kind in _RIVAL_KINDS]
        rows.append(
            [
                frequency,
                term,
                str(len(names)),
                *(NOT_RUN if error is None else plain(error) for error in own),
                *(f"{one.name} ({found.error(one, names):.3f})" for one in best),
                found.rank(LEAPTS, found.rivals, names),
            ]
        )
    bests = [f"best {kind}" for kind in _RIVAL_KINDS]
    return table(["frequency", "term", "configurations", *OURS, *bests, "place of LeapTS"], rows)


def _lost_to(found: Comparison) -> str:
    """Say where the best model of a kind is ahead of LeapTS, the largest gap first."""
    if found.relative(found.here[LEAPTS], "mase") is None:
        return f"LeapTS: {NOT_RUN}."
    lines = []
    for kind in _RIVAL_KINDS:
        gaps = []
        for (frequency, term), names in found.groups().items():
            own, best = found.relative(found.here[LEAPTS], "mase", names), found.best(kind, 1, names)[0]
            assert own is not None, "all configurations were run"
            gaps.append((found.error(best, names) / own - 1, f"{frequency} {term}", best.name))
        lost = [f"{group} ({name}, {percent(gap)})" for gap, group, name in sorted(gaps) if gap < 0]
        lines.append(f"- **{kind}**: in {len(lost)} of {len(gaps)} groups{': ' if lost else ''}{', '.join(lost)}.")
    return "\n".join(["The best model of each kind is ahead of LeapTS:", "", *lines])


def _all_configurations(found: Comparison) -> str:
    rows = []
    for name in gift_eval.configurations():
        best = min((found.best(kind, 1, [name])[0] for kind in _RIVAL_KINDS), key=lambda one: one.scores["mase"][name])
        models = [gift_models()[NAIVE], *(found.here[one] for one in (*OURS, FLAIR)), gift_models()["FLAIR"]]
        cells = [_pair(one.scores, name) for one in models]
        rows.append([name, *cells, f"{best.name} ({best.scores['mase'][name]:.3f})"])
    return table(["configuration", "SeasonalNaive", *OURS, "FLAIR here", "FLAIR published", "best"], rows)


def _pair(scores: Mapping[str, Mapping[str, float]], name: str) -> str:
    return f"{scores['mase'][name]:.3f} / {scores['crps'][name]:.3f}" if name in scores["mase"] else NOT_RUN


def _weights(parameters: int | None) -> str:
    if parameters is None:
        return "-"
    units = {1e9: " B", 1e6: " M", 1e3: " k", 1.0: ""}
    unit = next((unit for unit in units if parameters >= unit), 1.0)
    return f"{parameters / unit:.3g}{units[unit]}"


def _marked(name: str) -> str:
    return f"**{name}**" if name in OURS else name
