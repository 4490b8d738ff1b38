"""The page of speed measurements: ratios first, times for context, and targets."""

from collections.abc import Callable, Iterable, Mapping

from leapts_bench.results import Line
from leapts_bench.speed.inference import OURS_AS_ONNX
from leapts_bench.speed.plan import BASELINES, OURS
from leapts_bench.tables.markdown import NOT_RUN, table

# Targets: our time over theirs, with one thread.
INFERENCE_LIMITS: dict[tuple[str, int], dict[str, float]] = {
    ("ETTh2", 32): {
        "DLinear": 3,
        "TSMixer": 0.65,
        "iTransformer": 0.38,
        "TimeMixer": 0.05,
        "PatchTST": 0.01,
        "TimesNet": 0.01,
    },
    ("Weather", 32): {
        "DLinear": 4,
        "TSMixer": 0.65,
        "iTransformer": 0.03,
        "TimeMixer": 0.03,
        "PatchTST": 0.01,
        "TimesNet": 0.01,
    },
    ("321 variates", 32): {"DLinear": 6, "TSMixer": 0.8},
    ("ETTh2", 1): {"iTransformer": 1},
    ("Weather", 1): {"iTransformer": 1},
}
ONNX_LIMIT = 1.5  # times DLinear's, for one window
STEP_LIMITS = {"ETTh1": {"DLinear": 6, "TSMixer": 0.6, "iTransformer": 0.55}, "Weather": {"iTransformer": 0.03}}
RACE_FACTOR = 2.6  # times faster than these to their own best validation error
RACED = ("iTransformer", "PatchTST")
EXPONENT_LIMIT = 1.1
READING_LIMIT = 0.05
MASS_FACTOR = 5

Figures = Mapping[tuple[str, int], Line]


def speed_page(lines: Iterable[Line]) -> str:
    """Render the page from the last measurement of each point and number of threads."""
    found = _latest(lines)
    if not found:
        return NOT_RUN
    parts = [_where(found)]
    for title, point, show in _SECTIONS:
        shown = [
            f"With {_threads(count)}:\n\n{_former(found[point, count])}{_shown(show, found[point, count])}"
            for count in _counts(found, point)
        ]
        parts += [f"## {title}", *(shown or [NOT_RUN])]
    return "\n\n".join(parts)


def headline(lines: Iterable[Line]) -> str:
    """Compare the inference time of one model with that of the baselines."""
    found = _latest(lines).get(("inference", 1))
    if found is None:
        return f"Speed: {NOT_RUN}."
    places = {
        place["set"]: place["seconds"]
        for place in found["figures"]["places"]
        if place["set"] in ("ETTh2", "Weather") and place["windows"] == 32 and OURS in place["seconds"]
    }
    names = [name for name in BASELINES if any(name in seconds for seconds in places.values())]
    rows = [[name, *(_times(seconds, name) for seconds in places.values())] for name in names]
    introduction = (
        "Time of LeapTS for the forecasts of 32 windows, with one thread ([all measurements](benchmarks/speed.md)):"
    )
    return f"{introduction}\n\n{table(['compared with', *places], rows)}"


def _times(seconds: Mapping[str, float], name: str) -> str:
    """State how many times faster or slower LeapTS is than a baseline."""
    if name not in seconds:
        return NOT_RUN
    speed = seconds[name] / seconds[OURS]
    factor = max(speed, 1 / speed)
    if factor < 1.05:
        return "equal"
    return f"{factor:,.{1 if factor < 10 else 0}f} times {'faster' if speed > 1 else 'slower'}"


def _latest(lines: Iterable[Line]) -> Figures:
    """Keep the last measurement of each point and number of threads; quick runs do not count."""
    return {(line["point"], line["threads"]): line for line in lines if not line["plan"]["is_quick"]}


def _former(line: Line) -> str:
    """State what differed in measurements that do not hold the descriptions of their models."""
    if line["point"] not in ("inference", "training") or "runs" in line:
        return ""
    said = "Measured with an earlier recipe: LeapTS mixed the series of ETTh1 by an MLP instead of their mean, and "
    said += "PatchTST had three layers and four heads on ETTh1 instead of one and two"
    return said + ("" if line["point"] == "training" else "; LeapTS with 321 series has default options") + ".\n\n"


def _where(found: Figures) -> str:
    machines = sorted({f"{line['machine']['processor']}, {line['machine']['cores']} cores" for line in found.values()})
    commits = sorted({str(line["commit"])[:10] for line in found.values()})
    load = max(line["load"] for line in found.values())
    said = f"Measured by `python -m leapts_bench speed` on {'; '.join(machines)} at {', '.join(commits)}; "
    said += (
        f"the load average was at most {load:g}. Candidates take turns, and the fastest round of each counts. *ratio*: "
    )
    return said + "our time over theirs, below 1 where LeapTS is faster. *target*: the ratio to reach with one thread."


def _inference(figures: Line, threads: int) -> str:
    rows = []
    for place in figures["places"]:
        seconds, limits = place["seconds"], INFERENCE_LIMITS.get((place["set"], place["windows"]), {})
        who = [(OURS, name, limits.get(name)) for name in BASELINES]
        who += [(OURS_AS_ONNX, "DLinear", ONNX_LIMIT)] if place["windows"] == 1 else []
        task = [place["set"], str(place["windows"])]
        rows += [[*task, ours, name, *_ratio(seconds, ours, name, limit, threads)] for ours, name, limit in who]
    headings = ["data set", "windows", "ours", "against", "ratio", "target", "reached", "ours, ms", "theirs, ms"]
    return table(headings, _run(rows, names=4))


def _shown(show: Callable[[Line, int], str], line: Line) -> str:
    return show(line["figures"] | {"budget": line["plan"]["budget"]}, line["threads"])


def _training(figures: Line, threads: int) -> str:
    steps, races = [], []
    for place in figures["places"]:
        limits, epoch = STEP_LIMITS.get(place["set"], {}), place["steps_an_epoch"]
        for name in BASELINES:
            cells = _ratio(place["step"], OURS, name, limits.get(name), threads)
            times = [f"{place['step'][who] * epoch:.1f}" if who in place["step"] else "-" for who in (OURS, name)]
            steps.append([place["set"], name, *cells, *times])
            races.append([place["set"], name, *_race(place["race"], name, threads)])
    headings = ["data set", "against", "ratio", "target", "reached", "ours, ms", "theirs, ms"]
    step_table = table([*headings, "our epoch, s", "their epoch, s"], _run(steps))
    said = f"""First the time of a training step of 32 windows and of an epoch. Then the time until LeapTS reaches the
best validation error of each baseline, validation included; LeapTS with its recipe, the baselines with their published
settings. A baseline that did not finish within {figures["budget"]:.0f} s is represented by its best error until then,
and the comparison is marked *open*. On Weather, one validation takes longer than the training."""
    columns = ["data set", "against", "their best", "reached by them, s", "by us, s", "ratio", "target", "reached"]
    return f"{said}\n\n{step_table}\n\n{table([*columns, 'their training'], _run(races))}"


def _race(races: Mapping[str, Line], name: str, threads: int) -> list[str]:
    """When a baseline reached its best validation error, and when LeapTS did."""
    if name not in races or not races[name]["looks"]:
        return [NOT_RUN] * 7
    theirs, best = min(races[name]["looks"], key=lambda look: look[1])
    times = [seconds for seconds, error in races[OURS]["looks"] if error <= best]
    target = 1 / RACE_FACTOR if name in RACED and threads == 1 else None
    ending = "ended" if races[name]["finished"] else f"{races[name]['steps']} of {races[name]['max_steps']} steps"
    # Overtaking a baseline that has only begun to learn shows nothing.
    is_open = target is not None and not races[name]["finished"]
    if not times:
        missed = "-" if target is None else "NO"
        return [f"{best:.4f}", f"{theirs:.1f}", "never", "-", _limit(target), missed, ending]
    ratio = times[0] / theirs
    verdict = "open" if is_open else _verdict(ratio, target)
    return [f"{best:.4f}", f"{theirs:.1f}", f"{times[0]:.1f}", f"{ratio:.3g}", _limit(target), verdict, ending]


def _limits(figures: Line, threads: int) -> str:  # noqa: ARG001
    rows, profiles = [], []
    for place in figures["places"]:
        forward, products = place["seconds"]["forward"], place["seconds"]["products"]
        rate, bare = place["operations"] / forward, place["operations"] / products
        rows.append(
            [
                f"{place['set']}, {place['windows']} windows",
                f"{forward / products:.2f}",
                f"{100 * rate / figures['peak']:.0f} %",
                f"{100 * bare / figures['peak']:.0f} %",
                f"{forward * 1e3:.2f}",
                f"{products * 1e3:.2f}",
            ]
        )
        shares = ", ".join(f"{kind} {100 * share:.0f} %" for kind, share in place["profile"].items() if share >= 0.01)
        profiles.append(
            f"Profile of the forward pass on {place['set']} (the profiler slows small operations most): {shares}."
        )
    headings = [
        "task",
        "forward pass over its matrix products",
        "forward pass, of peak",
        "matrix products, of peak",
        "forward pass, ms",
        "matrix products, ms",
    ]
    said = f"Peak rate of a large matrix product on this machine: {figures['peak'] / 1e9:.0f} GFLOP/s."
    return "\n\n".join([said, table(headings, rows), *profiles])


def _growth(figures: Line, threads: int) -> str:  # noqa: ARG001
    rows = []
    for task in figures["tasks"]:
        sizes = [f"{size:,}" for size in task["sizes"]]
        times = " / ".join(f"{1e3 * seconds:.3g}" for seconds in task["seconds"])
        memory = " / ".join("-" if held is None else f"{held / 1e6:.0f}" for held in task["memory"])
        held = task["memory_exponent"]
        worst = max(task["exponent"], held or 0.0)
        rows.append(
            [
                task["name"],
                " / ".join(sizes),
                f"{task['exponent']:.2f}",
                f"{task['last_exponent']:.2f}",
                "-" if held is None else f"{held:.2f}",
                "yes" if worst <= EXPONENT_LIMIT else "NO",
                times,
                memory,
            ]
        )
    said = """Time and memory grow as a power of the size; the exponent is fitted over all sizes. *last*: the exponent
between the two largest sizes, where fixed costs matter least. *Variates, mixed*: with channel mixing through at most 64
hidden units. Horizon and look-back: with four leaps each. A panel of series with different lengths is timed from data
frame to data frame."""
    headings = ["size", "values", "exponent", "last", "memory exponent", f"at most {EXPONENT_LIMIT}", "ms", "MB"]
    return f"{said}\n\n{table(headings, rows)}"


def _mass(figures: Line, threads: int) -> str:
    seconds, series = figures["predict"], figures["series"]
    share = figures["reading"] / figures["fit"]
    said = f"M4 Monthly, {series:,} series, {figures['rows']:,} rows. Reading and indexing the data takes "
    said += f"{100 * share:.1f} % of the fit ({figures['reading']:.2f} of {figures['fit']:.1f} s; at most "
    said += f"{100 * READING_LIMIT:.0f} %: {'reached' if share <= READING_LIMIT else 'NOT reached'}). Time to "
    said += "forecast all series in one call, from data frame to data frame:"
    rows = [
        [name, f"{time / seconds[OURS]:.2f}", f"{time:.2f}", f"{series / time:,.0f}"] for name, time in seconds.items()
    ]
    theirs = seconds.get("neuralforecast's DLinear")
    verdict = NOT_RUN if theirs is None else "reached" if theirs / seconds[OURS] >= MASS_FACTOR else "NOT reached"
    shown = table(["library", "time over that of LeapTS", "seconds", "series per second"], rows)
    reached = f"At least {MASS_FACTOR} times faster than neuralforecast's DLinear: {verdict}."
    return f"{said}\n\n{shown}\n\n{reached}" if threads == 1 else f"{said}\n\n{shown}"


def _startup(figures: Line, threads: int) -> str:  # noqa: ARG001
    base = figures["seconds"]["python -c pass"]
    rows = [[name, f"{time / base:.1f}", f"{time * 1e3:.0f}"] for name, time in figures["seconds"].items()]
    loads = "loads torch" if figures["leapts_loads_torch"] else "does not load torch"
    return f"`import leapts` {loads}.\n\n{table(['command', 'over an empty program', 'ms'], rows)}"


_SECTIONS: tuple[tuple[str, str, Callable[[Line, int], str]], ...] = (
    ("Inference", "inference", _inference),
    ("Training", "training", _training),
    ("Share of the hardware limit", "limit", _limits),
    ("Growth with size", "growth", _growth),
    ("Forecasting many series", "mass", _mass),
    ("Start-up", "startup", _startup),
)


def _counts(found: Figures, point: str) -> list[int]:
    return sorted(count for name, count in found if name == point)


def _threads(count: int) -> str:
    return "one thread" if count == 1 else f"{count} threads"


def _ratio(seconds: Mapping[str, float], ours: str, theirs: str, limit: float | None, threads: int) -> list[str]:
    """Ratio, target, verdict and both times."""
    target = limit if threads == 1 else None
    if ours not in seconds or theirs not in seconds:
        return [NOT_RUN, _limit(target), "-", "-", "-"]
    ratio = seconds[ours] / seconds[theirs]
    times = [f"{seconds[name] * 1e3:.3g}" for name in (ours, theirs)]
    return [f"{ratio:.3g}", _limit(target), _verdict(ratio, target), *times]


def _limit(limit: float | None) -> str:
    return "-" if limit is None else f"{limit:.3g}"


def _verdict(ratio: float, limit: float | None) -> str:
    return "-" if limit is None else "yes" if ratio <= limit else "NO"


def _run(rows: list[list[str]], names: int = 3) -> list[list[str]]:
    """Leave out rows that were not run and have no target."""
    return [row for row in rows if NOT_RUN not in row or any(cell not in (NOT_RUN, "-") for cell in row[names:])]
