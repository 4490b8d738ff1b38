"""Support: the values that can occur in a series, which a forecast never leaves."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Float64
from torch import Tensor

from leapts.config import SupportName
from leapts.data.panel import Panel
from leapts.errors import DataError
from leapts.messages import quoted

_UPPER_LIMITS = (1.0, 100.0)  # of shares and percentages
_MIN_AT_LIMIT = 0.01  # share of the values that equal an upper limit, for it to be one
_MAX_WHOLE = 2.0**53  # larger whole numbers have no fraction to round


@dataclass(frozen=True, eq=False)
class Support:
    """Limits of the values of each series, and whether they are whole numbers."""

    lower: Float64[Tensor, " series"]
    upper: Float64[Tensor, " series"]
    whole: Bool[Tensor, " series"]

    @classmethod
    def of(cls, panel: Panel, given: SupportName | tuple[float, float] = "auto") -> "Support":
        """Find the support of each series, or take the one that a user gave for all of them.

        Values that are never negative stay at or above 0. Those that often equal 1 or 100, and never exceed it, stay at
        or below it. Whole numbers from 0 are counts.

        Raises:
            DataError: When a value is outside of the support that a user gave.
        """
        if given == "real":
            return cls.real(len(panel))
        if given != "auto":
            limits = given if isinstance(given, tuple) else (0.0, torch.inf)
            lower, upper = (torch.full((len(panel),), limit, dtype=torch.float64) for limit in limits)
            values, is_count = panel.values, given == "count"
            outside = (values < limits[0]) | (values > limits[1]) | (is_count & (values != values.round()))
            if bool(outside.any()):
                row = int(outside.nonzero()[0])
                name = panel.series[int(torch.searchsorted(panel.offsets, row, right=True)) - 1]
                raise DataError(
                    f"series {quoted(name)} holds {float(values[row]):g}, outside of support={given!r}; correct it, or "
                    "give a wider support"
                )
            return cls(lower, upper, torch.full((len(panel),), is_count))
        values, offsets = panel.values, panel.offsets

        def share(condition: Bool[Tensor, " rows"]) -> Float64[Tensor, " series"]:
            return torch.segment_reduce(condition.double(), "mean", offsets=offsets)

        lowest, highest = (torch.segment_reduce(values, kind, offsets=offsets) for kind in ("min", "max"))
        is_positive = lowest >= 0
        upper = torch.full_like(highest, torch.inf)
        for limit in _UPPER_LIMITS:
            at_limit = is_positive & (highest == limit) & (lowest < limit) & (share(values == limit) >= _MIN_AT_LIMIT)
            upper[at_limit] = limit
        whole = is_positive & (share(values == values.round()) == 1) & (highest < _MAX_WHOLE)
        return cls(torch.zeros_like(upper).masked_fill(~is_positive, -torch.inf), upper, whole)

    @classmethod
    def real(cls, series: int) -> "Support":
        """Allow every value in a number of series."""
        infinite = torch.full((series,), torch.inf, dtype=torch.float64)
        return cls(-infinite, infinite, torch.zeros(series, dtype=torch.bool))

    @property
    def is_real(self) -> bool:
        """Whether every value can occur in every series."""
        return bool((self.lower.isneginf() & self.upper.isposinf() & ~self.whole).all())

    def summary(self) -> tuple[str, str]:
        """Name the support of all series, and count those with limits."""
        total, limits = len(self.lower), self.lower == 0
        counts = [int(which.sum()) for which in (limits, limits & self.whole, limits & self.upper.isfinite())]
        kinds = ("positive", "count", "bounded")
        name = next(
            (kind for kind, count in reversed(list(zip(kinds, counts, strict=True))) if count == total), "mixed"
        )
        remarks = [f"{counts[0]} of {total} series never negative"]
        remarks += [f"{counts[1]} with whole numbers only"] if counts[1] else []
        remarks += [f"{counts[2]} with an upper limit"] if counts[2] else []
        return name if counts[0] else "real", ", ".join(remarks)

    def clip(self, values: Float[Tensor, "series ..."]) -> Float[Tensor, "series ..."]:
        """Move values into the support of their series: to its limits, and to whole numbers."""
        if self.is_real:
            return values
        shape = (-1,) + (1,) * (values.dim() - 1)
        inside = values.clamp(self.lower.view(shape), self.upper.view(shape))
        return torch.where(self.whole.view(shape), (inside + 0.5).floor(), inside)

    @classmethod
    def joined(cls, parts: Sequence["Support"]) -> "Support":
        """Put the series of several supports one after the other."""
        return cls(*(torch.cat(column) for column in zip(*((p.lower, p.upper, p.whole) for p in parts), strict=True)))

    def select(self, rows: Tensor) -> "Support":
        """Select some series."""
        return Support(self.lower[rows], self.upper[rows], self.whole[rows])

    def widened(self, panel: Panel) -> "Support":
        """Drop the limits that values of the same series in a panel have left."""
        values, offsets = panel.values, panel.offsets
        lowest, highest = (torch.segment_reduce(values, kind, offsets=offsets) for kind in ("min", "max"))
        broken = torch.segment_reduce((values != values.round()).double(), "max", offsets=offsets) > 0
        return Support(
            self.lower.masked_fill(lowest < self.lower, -torch.inf),
            self.upper.masked_fill(highest > self.upper, torch.inf),
            self.whole & ~broken,
        )
