"""The data of the Numenta Anomaly Benchmark, and its score as its own code defines it (sweeper.py, runner.py).

A detector gives each point a score from the past alone. Points at or above one threshold for all series are detections.
The first ones of a series are a probation and do not count. In a labelled window, the earliest detection counts by a
sigmoid of its place; a window without any costs `missed`. A detection outside costs up to `false` times one, more the
farther it is behind the last window. The threshold is the best one for the profile, for every detector alike.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

Floats = npt.NDArray[np.float64]
PROBATION, LONGEST_PROBATION = 0.15, 0.15 * 5000


class Profile(NamedTuple):
    """Costs of a missed window and of a false detection; a perfect detection counts one."""

    missed: float
    false: float


PROFILES = {"standard": Profile(1.0, 0.11), "low FP": Profile(1.0, 0.22), "low FN": Profile(2.0, 0.11)}


@dataclass(frozen=True, eq=False)
class Labelled:
    """One series with its labelled windows: pairs of the first and the last row."""

    name: str
    values: Floats
    windows: tuple[tuple[int, int], ...]

    @property
    def probation(self) -> int:
        """Number of first rows that do not count."""
        return min(math.floor(PROBATION * len(self.values)), int(LONGEST_PROBATION))

    @property
    def inside(self) -> npt.NDArray[np.bool_]:
        """Which rows are in a window."""
        marked = np.zeros(len(self.values), dtype=np.bool_)
        for first, last in self.windows:
            marked[first : last + 1] = True
        return marked


def read(folder: Path) -> list[Labelled]:
    """Read all series with their windows."""
    table = pd.read_parquet(folder / "nab" / "nab.parquet", columns=["unique_id", "ds", "y"])
    windows = json.loads((folder / "nab" / "windows.json").read_text())
    found = []
    for name, rows in table.groupby("unique_id", sort=True):
        times = rows["ds"].to_numpy()
        limits = [[np.datetime64(time) for time in window] for window in windows[f"{name}.csv"]]
        places = [(int((times < first).sum()), int((times <= last).sum()) - 1) for first, last in limits]
        found.append(Labelled(str(name), rows["y"].to_numpy(dtype=np.float64), tuple(places)))
    return found


def scaled_sigmoid(position: Floats) -> Floats:
    """Reward of a detection by its place: -1 is the start of a window, 0 its end; far behind, it is -1."""
    return np.where(position > 3, -1.0, 2 / (1 + np.exp(5 * np.minimum(position, 3))) - 1)


def weights(series: Labelled, profile: Profile) -> Floats:
    """Reward of a detection at each row: in a window up to 1, outside negative."""
    rows = np.arange(len(series.values))
    found = np.full(len(rows), -profile.false)
    for first, last in series.windows:
        width = last - first + 1
        behind = rows > last
        found[behind] = profile.false * scaled_sigmoid((rows[behind] - last) / max(width - 1, 1))
        inside = rows[first : last + 1]
        found[inside] = scaled_sigmoid(-(last - inside + 1) / width) / scaled_sigmoid(np.array(-1.0))
    return found


class Best(NamedTuple):
    """A normalized score, and the threshold that gives it."""

    score: float
    threshold: float


def best(all_series: Sequence[Labelled], scores: Mapping[str, Floats], profile: Profile) -> Best:
    """Find the threshold with the highest score: thresholds fall from point to point, all of one value at once."""
    levels, gains, windows = [], [], 0
    for series in all_series:
        own, reward = scores[series.name], weights(series, profile)
        counted = np.arange(len(own)) >= series.probation
        outside = counted & ~series.inside
        levels.append(own[outside])
        gains.append(reward[outside])
        for first, last in series.windows:
            rows = np.arange(max(first, series.probation), last + 1)
            windows += 1 if len(rows) else 0
            # As the threshold falls, an earlier detection replaces a later one.
            order = rows[np.lexsort((rows, -own[rows]))]
            reached = np.maximum.accumulate(reward[order])
            levels.append(own[order])
            gains.append(np.diff(reached, prepend=-profile.missed))
    level, gain = np.concatenate(levels), np.concatenate(gains)
    order = np.argsort(-level, kind="stable")
    level, total = level[order], np.cumsum(gain[order]) - profile.missed * windows
    # A threshold above all scores has no detections at all.
    level, total = np.append(np.inf, level), np.append(-profile.missed * windows, total)
    ends = np.append(level[1:] != level[:-1], True)
    place = int(np.argmax(np.where(ends, total, -np.inf)))
    return Best(normalized(float(total[place]), windows, profile), float(level[place]))


def at_threshold(all_series: Sequence[Labelled], scores: Mapping[str, Floats], profile: Profile, limit: float) -> float:
    """Compute the normalized score at a threshold."""
    total, windows = 0.0, 0
    for series in all_series:
        found, reward = scores[series.name] >= limit, weights(series, profile)
        found[: series.probation] = False
        total += float(reward[found & ~series.inside].sum())
        for first, last in series.windows:
            if last < series.probation:
                continue
            windows += 1
            inside = reward[first : last + 1][found[first : last + 1]]
            total += float(inside.max()) if len(inside) else -profile.missed
    return normalized(total, windows, profile)


def normalized(total: float, windows: int, profile: Profile) -> float:
    """Scale a score so that no detection at all is 0, and the best possible 100."""
    return 100 * (total + profile.missed * windows) / (windows * (1 + profile.missed))


def plain_figures(all_series: Sequence[Labelled], scores: Mapping[str, Floats], limit: float) -> dict[str, Any]:
    """Compute figures that do not depend on the profiles: windows found, precision of points, false alarms."""
    found = false = windows = detected = rows = quiet_rows = quiet = 0
    for series in all_series:
        marked, inside = scores[series.name] >= limit, series.inside
        marked[: series.probation] = False
        counted = len(marked) - series.probation
        for first, last in series.windows:
            windows += 1
            detected += bool(marked[first : last + 1].any())
        found, false = found + int((marked & inside).sum()), false + int((marked & ~inside).sum())
        rows += counted
        if not series.windows:
            quiet, quiet_rows = quiet + int(marked.sum()), quiet_rows + counted
    return {
        "windows_found": detected / windows,
        "precision": found / max(found + false, 1),
        "alarms_per_1000": 1000 * (found + false) / rows,
        "alarms_per_1000_without_windows": 1000 * quiet / max(quiet_rows, 1),
    }
