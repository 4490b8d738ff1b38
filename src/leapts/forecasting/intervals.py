"""Split-conformal prediction intervals: errors on held-out windows set the width of an interval.

Scores are absolute residuals in standard deviations of their series, for each step of the horizon. All series share
them, or each series is a group of its own where all have enough held-out windows (`enough_for_own_groups`).

The interval of level L reaches to the k-th smallest of n scores, k = ceil((n + 1) L). A new residual that is
exchangeable with the held-out ones then lies inside with probability at least L.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from numbers import Real
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float, Float32, Float64, Int64
from torch import Tensor

from leapts.errors import ConfigError, DataError

Level = int | float

WINDOWS_PER_GROUP = 4096  # the error of the estimated coverage is then 0.3 % at 95 %
WINDOWS_FOR_OWN_GROUP = 30  # fewer, and the 95 % interval would have to reach beyond the largest score
MAX_SCORES = 2**25  # numbers kept in all, 128 MiB
_DIGITS = 11  # of a quantile


@dataclass(frozen=True)
class Bound:
    """One side of an interval, and its column."""

    column: str  # LeapTS-lo-80
    level: Level  # in percent; 0 for the point forecast itself
    side: Literal[-1, 1]  # -1 for the lower bound, 1 for the upper one


@dataclass(frozen=True, eq=False)
class ConformalScores:
    """Absolute errors of held-out forecasts, sorted, for each group and step of the horizon."""

    # Absolute residuals in units of scale: group after group, ascending within each group.
    scores: Float32[Tensor, "windows h"]
    counts: Int64[Tensor, " groups"]  # number of windows in each group

    @classmethod
    def fit(
        cls,
        residuals: Float[Tensor, "windows h"],
        scale: Float[Tensor, " windows"],
        groups: Int64[Tensor, " windows"] | None = None,
        *,
        limit: int = WINDOWS_PER_GROUP,
        seed: int = 0,
    ) -> "ConformalScores":
        """Compute the scores of held-out windows.

        Args:
            residuals: Errors of each window's forecast.
            scale: Unit of the errors of each window.
            groups: Group of each window, from 0; by default all share one.
            limit: Windows kept of a group, chosen at random; fewer when there are very many groups.
            seed: Seed of that choice.

        Raises:
            DataError: When there is no window, a residual is not finite, or a scale not positive.
        """
        count, h = residuals.shape
        if count == 0 or h == 0:
            raise DataError(f"residuals of shape [{count}, {h}] give no scores; hold at least one window out")
        if not bool((scale.isfinite() & (scale > 0)).all()):
            raise DataError("a scale is not a positive number; use 1 for constant series")
        groups = torch.zeros(count, dtype=torch.int64) if groups is None else groups
        chosen = _choose(groups, _affordable(limit, torch.bincount(groups), h), seed)
        units = scale.index_select(0, chosen).double()[:, None]
        scores = (residuals.index_select(0, chosen).double().abs() / units).float()
        if not bool(residuals.isfinite().all()) or not bool(scores.isfinite().all()):
            raise DataError("a residual is missing or infinite; score only windows whose actuals are known")
        groups = groups.index_select(0, chosen)
        return cls(_sorted_within(groups, scores), torch.bincount(groups))

    def allow(self, level: Level) -> bool:
        """Whether every group has enough windows for an interval of that level."""
        return windows_needed(level) <= int(self.counts.min())

    def half_widths(self, level: Level) -> Float64[Tensor, "groups h"]:
        """Half the width of the interval of a level, in units of scale.

        Raises:
            ConfigError: When the level is not between 0 and 100.
            DataError: When a group has too few windows for the level, with the number it needs.
        """
        share = _share(level)
        sizes, which = self.counts.unique(return_inverse=True)
        rank = torch.tensor([ceil((size + 1) * share) for size in sizes.tolist()])[which]
        short = int((rank > self.counts).sum())
        if short:
            fewest = int(self.counts.min())
            found = f"there are {fewest}"
            if len(self.counts) > 1:
                found = f"{short} of {len(self.counts)} groups have fewer, one of them {fewest}"
            lower = f"ask for a level of at most {_level_text(_highest_level(fewest))}, or " if fewest else ""
            raise DataError(
                f"level {_level_text(level)} needs {windows_needed(level)} held-out windows, and {found}; "
                f"{lower}hold more windows out"
            )
        starts = self.counts.cumsum(0) - self.counts
        return self.scores.index_select(0, starts + rank - 1).double()

    def around(
        self,
        point: Float[Tensor, "rows h"],
        scale: Float[Tensor, " rows"],
        bounds: Sequence[Bound],
        groups: Int64[Tensor, " rows"] | None = None,
    ) -> dict[str, Float64[Tensor, "rows h"]]:
        """Compute intervals around point forecasts, by column.

        Args:
            point: Point forecasts.
            scale: Unit of the scores for each row.
            bounds: From `interval_bounds` or `quantile_bounds`.
            groups: Group of each row; not needed when there is only one.
        """
        if groups is None and len(self.counts) > 1:
            raise DataError(f"there are scores of {len(self.counts)} groups; give the group of each row")
        groups = torch.zeros(len(point), dtype=torch.int64) if groups is None else groups
        middle, unit = point.double(), scale.double()[:, None]
        reach = {
            level: self.half_widths(level).index_select(0, groups) * unit if level else torch.zeros_like(middle)
            for level in {bound.level for bound in bounds}
        }
        return {bound.column: middle + bound.side * reach[bound.level] for bound in bounds}

    def of_last_group(self) -> "ConformalScores":
        """Select the scores of the last group, which all series share."""
        before = int(self.counts[:-1].sum())
        return ConformalScores(self.scores[before:].clone(), self.counts[-1:].clone())

    def to_tensors(self) -> dict[str, Tensor]:
        """Return plain tensors for saving."""
        return {"scores": self.scores.contiguous(), "counts": self.counts.contiguous()}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor]) -> "ConformalScores":
        """Read the tensors of `to_tensors`.

        Raises:
            DataError: When they are not sorted scores.
        """
        missing = sorted({"scores", "counts"} - set(tensors))
        if missing:
            raise DataError(f"the conformal scores have no tensor {missing[0]!r}; save them again")
        scores, counts = _without_padding(tensors["scores"], tensors["counts"])
        if not _are_sorted_scores(scores, counts):
            raise DataError(
                f"tensors of shape {list(tensors['scores'].shape)} and {list(counts.shape)} are no sorted conformal "
                "scores; save them again"
            )
        return cls(scores.float(), counts.long())


def _without_padding(scores: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
    """Convert scores of model folders with schema 1, a table of groups padded with infinities."""
    if scores.dim() != 3 or counts.shape != scores.shape[:1]:
        return scores, counts
    padding = torch.arange(scores.shape[1]) >= counts[:, None]
    return (scores[~padding] if bool(scores[padding].isposinf().all()) else scores), counts


def _are_sorted_scores(scores: Tensor, counts: Tensor) -> bool:
    if scores.dim() != 2 or counts.dim() != 1 or scores.numel() == 0 or bool((counts < 0).any()):
        return False
    if int(counts.sum()) != len(scores) or not bool(scores.isfinite().all()):
        return False
    return torch.equal(_sorted_within(torch.arange(len(counts)).repeat_interleave(counts), scores), scores)


def _sorted_within(groups: Int64[Tensor, " windows"], scores: Float[Tensor, "windows h"]) -> Float[Tensor, "windows h"]:
    """Sort the scores of each step within each group; groups are sorted already."""
    rising, order = scores.sort(dim=0)
    return rising.gather(0, groups[order].argsort(dim=0, stable=True))


def _affordable(limit: int, counts: Int64[Tensor, " groups"], h: int) -> int:
    """Number of windows of each group that fit into memory.

    Raises:
        DataError: When they are too few for an interval.
    """
    if int(counts.clamp(max=limit).sum()) * h <= MAX_SCORES:
        return limit
    room = MAX_SCORES // (len(counts) * h)
    if room < WINDOWS_FOR_OWN_GROUP:
        raise DataError(f"{len(counts)} groups of {h} steps are too many scores to keep; pool the groups")
    return min(limit, room)


def windows_needed(level: Level) -> int:
    """Number of held-out windows that an interval of a level needs."""
    share = _share(level)
    return ceil(share / (1 - share))


def enough_for_own_groups(windows: Int64[Tensor, " series"], h: int) -> bool:
    """Whether each series can be a group: all have at least 30 held-out windows, and the scores fit into memory."""
    # One more group holds the windows of all series, for unseen ones.
    fit = (len(windows) + 1) * h * WINDOWS_FOR_OWN_GROUP <= MAX_SCORES
    return fit and bool((windows >= WINDOWS_FOR_OWN_GROUP).all())


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

    Intervals are symmetric, so the median is the point forecast.

    Raises:
        ConfigError: When a quantile is not between 0 and 1, or is given twice.
    """
    for quantile in quantiles:
        if not _is_number(quantile) or not 0 < quantile < 1:
            raise ConfigError(f"quantile {quantile!r} is not between 0 and 1")
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


def require_scores(scores: ConformalScores | None) -> ConformalScores:
    """Return the calibration scores, or raise a ConfigError when there are none."""
    if scores is None:
        raise ConfigError(
            "no windows were held out, so prediction intervals cannot be calibrated; fit with val_size=, or call "
            "calibrate(df) with newer data"
        )
    return scores


def requested_bounds(
    level: Sequence[Level] | None, quantiles: Sequence[float] | None, model: str = "LeapTS"
) -> tuple[Bound, ...]:
    """Bounds of the intervals or of the quantiles a user asked for; none of either: no bounds.

    Raises:
        ConfigError: When both are given, or a value is impossible.
    """
    if level is not None and quantiles is not None:
        raise ConfigError("give level or quantiles, not both")
    if quantiles is not None:
        return quantile_bounds(quantiles, model)
    return interval_bounds(level or (), model)


def as_list(name: str, values: Any) -> list[Level] | None:
    """Convert levels or quantiles, such as a numpy array, to a list of Python's numbers."""
    if values is None:
        return None
    if isinstance(values, Real):
        raise ConfigError(f"{name}={values} is a single number; give a list: {name}=[{values}]")
    # By way of its text, a number of single precision is the one that was written: 0.1, not 0.10000000149011612.
    plain = [float(str(one)) if isinstance(one, np.floating) else one for one in values]
    return [one.item() if isinstance(one, np.generic) else one for one in plain]


def coverage(lo: Float[Tensor, "*shape"], hi: Float[Tensor, "*shape"], actual: Float[Tensor, "*shape"]) -> float:
    """Share of actual values inside their interval, including its ends."""
    if actual.numel() == 0:
        raise DataError("there are no actual values to be covered")
    return float(((lo <= actual) & (actual <= hi)).double().mean())


def _choose(groups: Int64[Tensor, " windows"], limit: int, seed: int) -> Int64[Tensor, " chosen"]:
    """Choose at most `limit` windows of each group at random, group by group."""
    shuffled = torch.randperm(len(groups), generator=torch.Generator().manual_seed(seed))
    order = shuffled[groups.index_select(0, shuffled).argsort(stable=True)]
    sizes = torch.bincount(groups)
    starts = sizes.cumsum(0) - sizes
    place = torch.arange(len(groups)) - starts.repeat_interleave(sizes)
    return order[place < limit]


def _share(level: Level) -> Fraction:
    """Convert a level to an exact share: 99.9 % of 1000 windows is 999, which floats miss."""
    return Fraction(str(_checked([level])[0])) / 100


def _highest_level(windows: int) -> Level:
    """Highest level, cut to tenths, that a number of windows allows."""
    return _plain((1000 * windows // (windows + 1)) / 10)


def _checked(levels: Sequence[Level]) -> list[Level]:
    for level in levels:
        if not _is_number(level) or not 0 < level < 100:
            raise ConfigError(f"level {level!r} is not between 0 and 100; levels are percentages such as 80 or 99.5")
    plain = [_plain(level) for level in levels]
    _refuse_repeats("level", plain)
    return plain


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _refuse_repeats(what: str, values: Sequence[Level]) -> None:
    repeated = [value for value in dict.fromkeys(values) if list(values).count(value) > 1]
    if repeated:
        raise ConfigError(f"{what} {_level_text(repeated[0])} is given twice; give each once")


def _plain(level: Level) -> Level:
    """Convert whole levels to integers, and numpy's numbers to Python's."""
    return int(level) if float(level).is_integer() else float(level)


def _level_text(level: Level) -> str:
    return str(_plain(level))
