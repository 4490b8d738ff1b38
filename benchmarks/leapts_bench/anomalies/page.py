"""The page of the Numenta Anomaly Benchmark, rendered from the results alone."""

from collections.abc import Sequence

from leapts_bench.anomalies.nab import PROFILES
from leapts_bench.results import Line
from leapts_bench.tables.markdown import NOT_RUN, table

FILE = "anomalies.jsonl"

# From the repository of the benchmark; not recomputed here.
PUBLISHED = {
    "ARTime": (74.9, 65.1, 80.4),
    "Numenta HTM": (70.5, 62.6, 75.2),
    "CAD OSE": (69.9, 67.0, 73.2),
    "KNN CAD": (58.0, 43.4, 64.8),
    "Relative Entropy": (54.6, 47.6, 58.8),
    "Random Cut Forest": (51.7, 38.4, 59.7),
    "Windowed Gaussian": (39.6, 20.9, 47.4),
    "Etsy Skyline": (35.7, 27.1, 44.5),
    "Bayesian changepoint": (17.7, 3.2, 32.2),
    "Random": (11.0, 1.2, 19.5),
}
_HEADINGS = ("windows found", "in a window", "in 1,000 points", "in series without windows")
_INTRODUCTION = """# Anomalies: the Numenta Anomaly Benchmark

[NAB](https://github.com/numenta/NAB) has 58 series (server metrics, traffic, tweets, sensors, artificial ones),
365,558 points and 116 labelled windows. A detector gives each point a score from the values up to it. 0 is a
detector that never detects, 100 a perfect one; the profiles weigh false detections (low FP) or missed windows (low
FN) twice. The scorer is our own code by NAB's definition, and tests compare it with a plain reading of that
definition.

LeapTS is the pretrained model with a horizon of 24, as `LeapTS.pretrained(h=24).detect(df)` runs it. Nothing is
fitted and nothing was tuned on this benchmark: neither the horizon, nor the window of 100 points of the rolling
z-score, nor the 8 lags and 100 trees of the isolation forest, which is fitted on each series' probation. The
threshold is the best one for each profile, chosen with the labels, for every detector alike; so NAB does it."""
_PLAIN = """## The same scores in other figures

At the threshold of the standard profile: the share of windows with a detection, the share of detections that are in
a window, detections in 1,000 points, and those in the series that have no windows. *ROC area* needs no threshold:
the probability that a point in a window has a higher score than one outside (0.5 is chance). Most points of a
window are normal, so it is low for every detector."""
_RATE = """## At an alert rate stated in advance

The threshold is `alert_rate={rate:g}`, and no label was used. If all points were normal and exchangeable, that
share of them would be marked."""
_NOTES = """## What to make of it

- Compare the ranking, not single points: NAB's labels are doubtful in places, and its score rewards early detections
  in windows that are a tenth of a series long.
- A leap counts at its last point, when it is known, so a detection by whole leaps comes late.
- The steps of a few series are irregular; every detector here takes the rows as they come.
- The result lines have the digest of the weights they were made with; other weights need another run.
- Figures of other detectors are those of NAB's repository and were not recomputed."""


def anomalies_page(lines: Sequence[Line]) -> str:
    """Render the page from the results of the detectors."""
    by_score = sorted(lines, key=lambda line: -line["nab"]["standard"])
    profiles = list(PROFILES)
    rows = [(f"**{line['detector']}**", [line["nab"][name] for name in profiles], "here") for line in by_score]
    rows += [(name, list(scores), "published") for name, scores in PUBLISHED.items()]
    rows.sort(key=lambda row: -row[1][0] if row[1] else 0)
    scores = table(
        ["detector", *profiles, "source"],
        [[name, *(f"{one:.1f}" for one in figures), source] for name, figures, source in rows],
    )
    plain = table(
        [
            "detector",
            "windows found",
            "in a window",
            "in 1,000 points",
            "in series without windows",
            "ROC area",
            "CPU seconds",
        ],
        [
            [
                line["detector"],
                *_plain(line["at_threshold"]),
                f"{line['area_under_roc']:.3f}",
                f"{line['cpu_seconds']:.0f}",
            ]
            for line in by_score
        ],
    )
    fixed = [line for line in by_score if "at_alert_rate" in line]
    rate = table(
        ["detector", *profiles, *_HEADINGS],
        [
            [
                line["detector"],
                *(f"{one:.1f}" for one in line["at_alert_rate"]["nab"].values()),
                *_plain(line["at_alert_rate"]),
            ]
            for line in fixed
        ],
    )
    stated = _RATE.format(rate=fixed[0]["at_alert_rate"]["alert_rate"]) if fixed else f"The detectors were {NOT_RUN}."
    return "\n\n".join([_INTRODUCTION, scores, _PLAIN, plain, stated, rate, _NOTES]) + "\n"


def _plain(figures: Line) -> list[str]:
    return [
        f"{figures['windows_found']:.0%}",
        f"{figures['precision']:.0%}",
        f"{figures['alarms_per_1000']:.1f}",
        f"{figures['alarms_per_1000_without_windows']:.1f}",
    ]
