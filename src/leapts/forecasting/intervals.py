"""Prediction intervals: the quantiles that a user asks for, and their calibration on held-out windows.

Conformalized quantile regression corrects the quantiles of a forecast. A quantile that was too low on held-out windows
is raised by as much as it takes for the right share of the targets to lie below it, and one that was too high is
lowered. The correction is larger where the forecast itself is less sure. A point forecast is corrected in the same way:
all of its quantiles are the point at first.

Each step of the horizon has corrections of its own, and so has each series with enough held-out windows. With too few
windows in all, the steps share them. Recent windows count more.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from numbers import Real
from statistics import NormalDist
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Bool, Float, Float16, Float32, Float64, Int64
from torch import Tensor

from leapts.errors import ConfigError, DataError

Level = int | float

MAX_BOUNDS = 1_000  # levels or quantiles of one forecast
_DIGITS = 11  # of a quantile
WINDOWS_FOR_OWN_GROUP = 39  # fewer windows hold no 97.5 % quantile
POINT_LEVELS = tuple(number / 200 for number in range(1, 200))  # of the quantiles around a point forecast
MAX_OFFSETS = 2**25  # numbers kept in all, 128 MiB
_OLDEST_WEIGHT = 0.25  # of the oldest held-out window; that of the latest is 1
_PRIOR_WINDOWS = 4  # learned quantiles weigh as much as these, where windows are too few
_MAX_RATIO = 4.0  # of the spread of a forecast to the usual one, in the size of its correction


@dataclass(frozen=True)
class Bound:
    """One side of an interval, and its column."""

    column: str  # LeapTS-lo-80
    level: Level  # in percent; 0 for the point forecast itself
    side: Literal[-1, 1]  # -1 for the lower bound, 1 for the upper one

    @property
    def quantile(self) -> float:
        """The level of the quantile that this bound is."""
        return round(0.5 + self.side * self.level / 200, _DIGITS + 2)


def interval_bounds(levels: Sequence[Level], model: str = "LeapTS") -> tuple[Bound, ...]:
    """Bounds of intervals, from the lowest to the highest: `lo-95`, `lo-80`, `hi-80`, `hi-95`.

    Raises:
        ConfigError: When a level is not from 1 to below 100 percent, or is given twice.
    """
    rising = sorted(_checked(levels))
    if rising and rising[0] < 1:  # nobody asks for 0.8 %, but some tools take 0.8 for 80 %
        percent = _level_text(round(100 * rising[0], _DIGITS))
        raise ConfigError(
            f"level {rising[0]} is less than one percent; levels are percentages: for {percent} % say {percent}"
        )
    lower = [Bound(f"{model}-lo-{_level_text(level)}", level, -1) for level in reversed(rising)]
    upper = [Bound(f"{model}-hi-{_level_text(level)}", level, 1) for level in rising]
    return (*lower, *upper)


def quantile_bounds(quantiles: Sequence[float], model: str = "LeapTS") -> tuple[Bound, ...]:
    """Bounds that are these quantiles, in the order given: 0.1 is `lo-80`, 0.9 is `hi-80`, 0.5 is `median`.

    Raises:
        ConfigError: When a quantile is not between 0 and 1, or is given twice.
    """
    _refuse_too_many("quantiles", quantiles)
    for quantile in quantiles:
        if not _is_number(quantile) or not 0 < round(quantile, _DIGITS) < 1:
            raise ConfigError(f"quantile {quantile!r} is not between 0 and 1; {_DIGITS} of its digits count")
    # Computed numbers have rounding errors: numpy.linspace(0.1, 0.9, 9)[2] is 0.30000000000000004.
    exact = [round(float(quantile), _DIGITS) for quantile in quantiles]
    _refuse_repeats("quantile", exact)
    found: list[Bound] = []
    for quantile in exact:
        level = _plain(float(abs(200 * Fraction(str(quantile)) - 100)))
        if level == 0:
            found.append(Bound(f"{model}-median", 0, 1))
        else:
            low = quantile < 0.5
            name = f"{model}-{'lo' if low else 'hi'}-{_level_text(level)}"
            found.append(Bound(name, level, -1 if low else 1))
    return tuple(found)


def requested_bounds(level: Any, quantiles: Any, model: str = "LeapTS") -> tuple[Bound, ...]:
    """Bounds of the intervals or of the quantiles a user asked for; none of either: no bounds.

    Raises:
        ConfigError: When both are given, or a value is impossible.
    """
    if level is not None and quantiles is not None:
        raise ConfigError("give level or quantiles, not both")
    if quantiles is not None:
        return quantile_bounds(as_list("quantiles", quantiles), model)
    return interval_bounds(as_list("level", level), model)


def as_list(name: str, values: Any) -> list[Level]:
    """Convert levels or quantiles, such as a numpy array, to a list of Python's numbers; None to an empty one."""
    if values is None:
        return []
    if isinstance(values, Real):
        raise ConfigError(f"{name}={values} is a single number; give a list: {name}=[{values}]")
    # By way of its text, a number of single precision is the one that was written: 0.1, not 0.10000000149011612.
    plain = [float(str(one)) if isinstance(one, np.floating) else one for one in values]
    return [one.item() if isinstance(one, np.generic) else one for one in plain]


def _checked(levels: Sequence[Level]) -> list[Level]:
    _refuse_too_many("levels", levels)
    for level in levels:
        if not _is_number(level) or not 0 < round(level, _DIGITS - 2) < 100:
            raise ConfigError(f"level {level!r} is not between 0 and 100; levels are percentages such as 80 or 99.5")
    plain = [_plain(level) for level in levels]
    _refuse_repeats("level", plain)
    return plain


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _refuse_too_many(what: str, values: Sequence[Level]) -> None:
    if len(values) > MAX_BOUNDS:
        raise ConfigError(f"{len(values):,} {what}: ask for at most {MAX_BOUNDS:,}")


def _refuse_repeats(what: str, values: Sequence[Level]) -> None:
    repeated = [value for value, times in Counter(values).items() if times > 1]
    if repeated:
        raise ConfigError(f"{what} {_level_text(repeated[0])} is given twice; give each once")


def _plain(level: Level) -> Level:
    """Convert whole levels to integers, and numpy's numbers to Python's."""
    return int(level) if float(level).is_integer() else float(level)


def _level_text(level: Level) -> str:
    return str(_plain(level))


@dataclass(frozen=True, eq=False)
class Calibration:
    """Corrections of the quantiles of a forecast, in standard deviations of its series."""

    levels: tuple[float, ...]  # of the quantiles, rising; one of them is 0.5
    offsets: Float32[Tensor, "groups h quantiles"]
    usual: Float32[Tensor, "groups h"]  # median distance of the outer quantiles; 0 for a point forecast
    windows: Int64[Tensor, " groups"]  # number of held-out windows of each group
    scores: Float16[Tensor, "windows series h"] | None = None  # of held-out targets, for sample paths

    @classmethod
    def fit(
        cls,
        quantiles: Float[Tensor, "rows h quantiles"],
        targets: Float[Tensor, "rows h"],
        levels: Sequence[float],
        groups: Int64[Tensor, " rows"],
        ages: Float[Tensor, " rows"],
    ) -> "Calibration":
        """Compute corrections from held-out windows.

        Args:
            quantiles: Forecasts; of a point forecast, one quantile, the point.
            targets: Actual values.
            levels: Levels of the quantiles.
            groups: Group of each row, from 0. The last group has all rows that count for unseen series.
            ages: Age of each window, from 0 for the latest one of its series to 1 for the oldest.

        Raises:
            DataError: When there is no window.
        """
        if not len(targets):
            raise DataError("there are no held-out windows to calibrate with; hold some out, or give newer data")
        spread = quantiles[..., -1] - quantiles[..., 0]
        is_point = quantiles.shape[-1] == 1
        levels = POINT_LEVELS if is_point else tuple(levels)
        weights = _OLDEST_WEIGHT**ages
        counts = torch.bincount(groups)
        offsets = torch.zeros(len(counts), targets.shape[1], len(levels), dtype=torch.float32)
        usual = torch.zeros(len(counts), targets.shape[1], dtype=torch.float32)
        for group in counts.nonzero().flatten().tolist():
            rows = (groups == group).nonzero().flatten()
            usual[group] = spread[rows].median(0).values
            factor = _factor(spread[rows], usual[group])
            errors = (targets[rows].unsqueeze(-1) - quantiles[rows]) / factor.unsqueeze(-1)
            if is_point:
                offsets[group] = _conformal_offsets(errors[..., 0], weights[rows], levels)
            else:
                each = [_conformal_offsets(errors[..., i], weights[rows], [level]) for i, level in enumerate(levels)]
                offsets[group] = torch.cat(each, 1)
            if not is_point and len(rows) < WINDOWS_FOR_OWN_GROUP:
                offsets[group] *= len(rows) / (len(rows) + _PRIOR_WINDOWS)
        offsets[counts == 0], usual[counts == 0] = offsets[-1].clone(), usual[-1].clone()
        return cls(levels, offsets, usual, counts)

    def correct(
        self, quantiles: Float[Tensor, "rows h quantiles"], groups: Int64[Tensor, " rows"]
    ) -> Float[Tensor, "rows h levels"]:
        """Correct quantiles in standard deviations of their series; the median stays, and none of them cross."""
        factor = _factor(quantiles[..., -1] - quantiles[..., 0], self.usual.index_select(0, groups).to(quantiles))
        moved = quantiles + self.offsets.index_select(0, groups).to(quantiles) * factor.unsqueeze(-1)
        return without_crossing(moved, self.levels.index(0.5))

    def of_last_group(self) -> "Calibration":
        """Select the corrections that all series share."""
        offsets, usual, windows = (part[-1:].clone() for part in (self.offsets, self.usual, self.windows))
        return Calibration(self.levels, offsets, usual, windows, self.scores)

    def to_tensors(self) -> dict[str, Tensor]:
        """Return plain tensors for saving."""
        tensors = {"offsets": self.offsets, "usual": self.usual, "windows": self.windows, "scores": self.scores}
        return {name: value.contiguous() for name, value in tensors.items() if value is not None}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor], levels: Sequence[float]) -> "Calibration":
        """Read the tensors of `to_tensors`, or the sorted absolute errors of a folder with schema 1 to 3.

        Raises:
            DataError: When they are neither.
        """
        if "offsets" not in tensors:
            return cls(POINT_LEVELS, *_from_absolute_errors(tensors["scores"], tensors["counts"]))
        return cls(tuple(levels) or POINT_LEVELS, **tensors)


def own_groups(windows: Int64[Tensor, " series"], numbers: int) -> Bool[Tensor, " series"]:
    """Which series have corrections of their own; none if `numbers` for each series are too many to keep."""
    # One more group is for unseen series.
    fits = (len(windows) + 1) * numbers <= MAX_OFFSETS
    return (windows >= WINDOWS_FOR_OWN_GROUP) & fits


def without_crossing(quantiles: Float[Tensor, "*rows quantiles"], median: int) -> Float[Tensor, "*rows quantiles"]:
    """Move quantiles that are on the wrong side of one nearer to the median onto that one."""
    lower = quantiles[..., : median + 1].flip(-1).cummin(-1).values.flip(-1)
    upper = quantiles[..., median:].cummax(-1).values
    return torch.cat([lower, upper[..., 1:]], -1)


def quantile_at(
    quantiles: Float[Tensor, "*rows quantiles"], levels: Sequence[float], wanted: float
) -> Float[Tensor, "*rows"]:
    """Compute a quantile of any level: linear in the normal score between two quantiles, and beyond the outer two."""
    if wanted in levels:
        return quantiles[..., list(levels).index(wanted)]
    right = min(max(sum(level < wanted for level in levels), 1), len(levels) - 1)
    low, high, score = (NormalDist().inv_cdf(level) for level in (levels[right - 1], levels[right], wanted))
    below, above = quantiles[..., right - 1], quantiles[..., right]
    return below + (above - below) * ((score - low) / (high - low))


def values_of(
    bounds: Sequence[Bound], quantiles: Float[Tensor, "*rows quantiles"], levels: Sequence[float]
) -> Float[Tensor, "*rows bounds"]:
    """Compute the values of bounds from the quantiles of a forecast."""
    return torch.stack([quantile_at(quantiles, levels, one.quantile) for one in bounds], -1)


def normal_scores_of(levels: Sequence[float]) -> Float64[Tensor, " quantiles"]:
    """Standard normal quantile of each level."""
    return torch.tensor([NormalDist().inv_cdf(level) for level in levels], dtype=torch.float64)


def _factor(spread: Float[Tensor, "rows h"], usual: Float[Tensor, "*rows h"]) -> Float[Tensor, "rows h"]:
    """Ratio of the spread of a forecast to the usual one, within limits; 1 for a point forecast."""
    ratio = (spread / usual.clamp(min=1e-12)).clamp(1 / _MAX_RATIO, _MAX_RATIO)
    return torch.where(usual > 0, ratio, torch.ones_like(ratio))


def _conformal_offsets(
    errors: Float[Tensor, "windows h"], weights: Float[Tensor, " windows"], levels: Sequence[float]
) -> Float[Tensor, "h levels"]:
    """Compute for each level the least number that this share of the errors, counting one error more, does not exceed.

    For levels below the median, the largest number that all but such a share exceed; 0 for the median. With too few
    windows, the steps share their numbers.
    """
    h = errors.shape[1]
    if len(errors) < WINDOWS_FOR_OWN_GROUP:
        errors, weights = errors.reshape(-1, 1), weights.repeat_interleave(h)
    offsets = errors.new_zeros(errors.shape[1], len(levels))
    for side in (-1, 1):
        chosen = [place for place, level in enumerate(levels) if side * (level - 0.5) > 0]
        shares = torch.tensor([0.5 + abs(levels[place] - 0.5) for place in chosen], dtype=torch.float64)
        rising, order = (side * errors.T).sort(1)
        passed = weights[order].double().cumsum(1)
        needed = shares * (passed[:, -1:] + weights.max()) - 1e-9
        place = torch.searchsorted(passed, needed).clamp(max=rising.shape[1] - 1)
        offsets[:, chosen] = side * rising.gather(1, place)
    return offsets.expand(h, -1)


def _from_absolute_errors(scores: Tensor, counts: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Convert sorted absolute errors of each group, around a point forecast, to corrections of its quantiles."""
    if scores.dim() == 3 and counts.shape == scores.shape[:1]:  # schema 1: a table of groups padded with infinities
        scores = scores[torch.arange(scores.shape[1]) < counts[:, None]]
    ends = counts.cumsum(0)
    is_whole = scores.dim() == 2 and scores.numel() and bool((counts > 0).all()) and int(ends[-1]) == len(scores)
    if not is_whole or not bool((scores.isfinite() & (scores >= 0)).all()):
        raise DataError(
            f"tensors of shape {list(scores.shape)} and {list(counts.shape)} are no conformal scores; save them again"
        )
    offsets = torch.zeros(len(counts), scores.shape[1], len(POINT_LEVELS))
    for group, errors in enumerate(scores.split(counts.tolist())):
        for place, level in enumerate(POINT_LEVELS):
            share = round(abs(2 * level - 1), 9)
            rank = min(ceil((len(errors) + 1) * share - 1e-9), len(errors))
            if rank:
                offsets[group, :, place] = errors[rank - 1] * (1 if level > 0.5 else -1)
    return offsets, torch.zeros(len(counts), scores.shape[1]), counts
