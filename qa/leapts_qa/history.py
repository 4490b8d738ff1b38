"""Names of suites and results in earlier versions, and their current names."""

from leapts_bench.results import Line

SUITES_BEFORE = {
    "hostile folders": "malicious model folders",
    "damaged folders": "corrupted model folders",
    "kills": "crash consistency",
    "failing disks": "disk errors",
    "power cuts": "power loss",
    "laws": "metamorphic tests",
    "runners": "benchmark runners",
    "threads": "thread safety",
    "memory": "memory leaks",
    "two fits": "concurrent fits",
    "repeated fits": "reproducibility",
    "threads and batches": "thread and batch invariance",
    "divergence": "training divergence",
    "strangers at the server": "adversarial clients",
    "made-up requests": "API fuzzing",
    "listening": "open ports",
}
ENDS_BEFORE = {
    "told in one line, old version kept": "error in one line, old version kept",
    "old version kept, error told": "old version kept, error reported",
    "written all the same": "written successfully",
    "old or new": "old or new version",
    "old or new version read, and the next one written": "old or new version, and the next one written",
    "harmless, forecasts numbers": "harmless, finite forecast",
    "refused when asked to forecast": "refused at predict",
    "numbers": "finite forecast",
    "refused, with place and cure": "refused, with place and hint",
    "the forecast of the clean data": "same forecast as from clean data",
    "caught": "detected",
    "shown to the letter, nothing happened": "shown as text, nothing executed",
    "downloaded without a formula": "downloaded CSV without a formula",
    "file and column shown as text, nothing happened": "file and column shown as text, nothing executed",
    "refused in harmless words": "refused, message escaped",
    "the same name, and no formula where cells are safe": "same name read back, no formula with escape_formulas",
    "one label, the same name": "one metric label, same name",
    "one harmless line": "one harmless log line",
    "drawn, and nothing in it acts": "drawn, no active content",
    "killed before a state was kept and done again: all as in the fit that was left alone": (
        "killed before the first checkpoint: equal to an uninterrupted fit"
    ),
    "resumed: all as in the fit that was left alone": "resumed: equal to an uninterrupted fit",
    "killed, and every result there once, whole, in the table of one runner alone": (
        "killed, all results intact, same table as a single runner"
    ),
    "came to its end": "training finished",
    "said that it diverged, and kept the last good weights": "divergence reported, last good weights kept",
    "free again afterwards": "folder free afterwards",
    "the first as if it were alone": "first fit unaffected",
    "the second refused in one line": "second fit refused in one line",
    "the bits of a model asked by one thread": "same bits as from one thread",
    "refused, with the reason": "refused with a reason",
    "the bits of the first": "same bits as the first fit",
    "within 1e-5 of each other": "equal within 1e-5",
    "a column for each series: the same": "wide format: equal forecast",
    "another zone: the same bits, in the zone": "another timezone: same bits, in that timezone",
    "fewer series: the same for the rest": "series removed: equal forecast for the rest",
    "further series: the same for the others": "series added: equal forecast for the others",
    "rows shuffled: the same bits": "rows shuffled: same bits",
    "scaled and offset: scaled and offset": "values scaled and offset: forecast scaled and offset",
    "series in another order: the same bits": "series reordered: same bits",
    "series renamed: the same under other names": "series renamed: equal forecast under the new names",
    "time shifted: the same bits, shifted": "timestamps shifted: same bits, shifted",
    "fit, another zone: the same bits, in the zone": "fit, another timezone: same bits, in that timezone",
    "fit, rows shuffled: the same bits": "fit, rows shuffled: same bits",
    "fit, scaled and offset: scaled and offset": "fit, values scaled and offset: forecast scaled and offset",
    "fit, scaled by a power of two: the same bits, scaled": "fit, values scaled by a power of two: same bits, scaled",
    "fit, series renamed in their order: the same bits": "fit, series renamed in the same order: same bits",
    "fit, time shifted: the same bits, shifted": "fit, timestamps shifted: same bits, shifted",
    "the same forecast in the same memory": "same forecast, no memory growth",
    "served": "accepted and answered",
    "served before and after": "answered before and after the load",
    "endless body refused": "endless request body refused",
    "health asked in between": "health check answered",
    "answered with numbers": "answered with a forecast",
    "slow sockets": "slow sockets held open",
    "waited for the rest of": "incomplete request, server waits",
    "listens for this computer alone": "listens on loopback only",
    "answered in full": "answered in full after a stop signal",
}
FIGURES_BEFORE = {
    "megabytes": "MB of memory",
    "seconds": "s of processor time",
    "millionths of a deviation apart": "millionths of a standard deviation difference",
    "millionths of a deviation off": "millionths of a mean absolute deviation error",
    "Python objects more": "additional Python objects",
    "megabytes more": "MB of additional memory",
    "ms p99 of quiet, a second later at 2 times the capacity": "ms p99 one second after 2 times the capacity",
    "ms p99 of quiet, a second later at 10 times the capacity": "ms p99 one second after 10 times the capacity",
    "bytes taken of an endless body": "bytes read of an endless body",
    "megabytes grown": "MB of memory growth",
    "seconds until health answered": "s until the health check answered",
    "looks": "checks of the open ports",
    "requests until the stop": "requests before the stop signal",
    "refused before and after": "refused before and after the load",
    "different states": "distinct disk states",
}


def as_now(line: Line) -> Line:
    """Translate a result line to current names; a current line is returned unchanged."""
    if "suite" in line:
        return line
    now = {name: value for name, value in line.items() if name != "campaign"}
    before = line["campaign"]
    ends = {ENDS_BEFORE.get(end, end): cases for end, cases in line["ends"].items()}
    figures = {FIGURES_BEFORE.get(name, name): value for name, value in line["figures"].items()}
    return {"suite": SUITES_BEFORE.get(before, before), **now, "ends": ends, "figures": figures}
