"""Covariates as the channels that a network reads: scaled numbers, and zeros and ones for categories."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor

from leapts.data.covariates import Covariates, recoded
from leapts.data.panel import Panel
from leapts.errors import DataError
from leapts.messages import counted, listed, quoted, timestamp_text
from leapts.model.covariates import CovariateWindows
from leapts.parts import CovariateChannels

Role = Literal["future", "past", "static"]
ROLES: tuple[Role, ...] = get_args(Role)

MAX_CATEGORIES = 64  # of a covariate; the rarest others count as unseen
_FLAT = 1e-12  # a standard deviation below this share of the mean is rounding noise
_MAX_CHANNEL = 100.0  # standard deviations


@dataclass(frozen=True)
class Coding:
    """How one covariate becomes channels."""

    name: str
    role: Role
    categories: tuple[str, ...] | None = None
    mean: float = 0.0
    std: float = 1.0
    may_miss: bool = False  # whether values were missing in the fit: a channel then says which are

    @property
    def channels(self) -> int:
        """Number of channels; the first one of categories is for unseen and missing ones."""
        return 1 + self.may_miss if self.categories is None else 1 + len(self.categories)

    def encode(
        self, values: Float64[Tensor, " rows"], categories: Sequence[str] | None
    ) -> Float[Tensor, "rows channels"]:
        """Compute the channels of a column."""
        if self.categories is None:
            scaled = ((values - self.mean) / self.std).clamp(-_MAX_CHANNEL, _MAX_CHANNEL)
            missing = scaled.isnan()
            parts = [scaled.masked_fill(missing, 0.0), missing.double()][: self.channels]
            return torch.stack(parts, 1).float()
        place = {name: number for number, name in enumerate(self.categories, 1)}
        codes = torch.tensor([*(place.get(name, 0) for name in categories or ()), 0])
        chosen = codes[values.nan_to_num(len(codes) - 1).long()]
        return torch.nn.functional.one_hot(chosen, self.channels).float()


@dataclass(frozen=True, eq=False)
class EncodedCovariates:
    """Channels of the covariates of a panel, to cut windows from."""

    values: Float[Tensor, "rows channels"]
    known: int  # channels that are known over the horizon, the first ones
    static: Float[Tensor, "series static"]
    starts: Int64[Tensor, " series"]  # row of the first value of each series
    ends: Int64[Tensor, " series"]

    def cut(
        self, series: Int64[Tensor, " rows"], starts: Int64[Tensor, " rows"], input_size: int, horizon: int, width: int
    ) -> CovariateWindows:
        """Cut windows that begin at `starts` of their series; rows before or after a series repeat its end.

        Args:
            series: Series of each row.
            starts: First step of each row in its series.
            input_size: Steps of the look-back.
            horizon: Steps after it.
            width: Series in a window: rows of one window follow each other.
        """
        first = self.starts[series][:, None]
        rows = first + starts[:, None] + torch.arange(input_size + horizon)
        rows = rows.maximum(first).minimum(self.ends[series][:, None] - 1)
        cut = self.values.index_select(0, rows.flatten()).view(-1, width, input_size + horizon, self.values.shape[1])
        static = self.static[series].unflatten(0, (-1, width))
        return CovariateWindows(cut[:, :, :input_size], cut[:, :, input_size:, : self.known], static)


@dataclass(frozen=True)
class CovariateEncoder:
    """The covariates of a fit, in the order of their names, with their scaling and their categories."""

    codings: tuple[Coding, ...]

    @classmethod
    def fit(cls, train: Panel) -> "CovariateEncoder | None":
        """Learn scaling and categories from the training part; constant covariates are left out."""
        known = train.covariates
        if known is None:
            return None
        rows = known.compact(train.lengths)
        found = [_coding(rows, name, "future", rows.values[:, place]) for place, name in enumerate(rows.future)]
        found += [
            _coding(rows, name, "past", rows.values[:, place]) for place, name in enumerate(rows.past, len(rows.future))
        ]
        found += [_coding(rows, name, "static", rows.of_series[:, place]) for place, name in enumerate(rows.static)]
        kept = tuple(one for one in found if one is not None)
        return cls(kept) if kept else None

    def names(self, role: Role) -> tuple[str, ...]:
        """Names of the covariates with a role."""
        return tuple(one.name for one in self.codings if one.role == role)

    @property
    def channels(self) -> CovariateChannels:
        """Number of channels of each role; a channel of zeros stands in where there are none."""
        sizes = {role: sum(one.channels for one in self.codings if one.role == role) for role in ROLES}
        return CovariateChannels(future=max(1, sizes["future"]), past=sizes["past"], static=max(1, sizes["static"]))

    def encode(self, panel: Panel) -> EncodedCovariates:
        """Encode the covariates of a panel.

        Raises:
            DataError: When the panel lacks one of them.
        """
        known = panel.covariates
        missing = [one.name for one in self.codings if known is None or one.name not in (*known.columns, *known.static)]
        if known is None or missing:
            raise DataError(
                f"the model was fitted with the covariates {listed(one.name for one in self.codings)}, and this data "
                f"lacks {listed(missing)}; add the columns (static ones also as static_df=)"
            )
        return EncodedCovariates(
            values=torch.cat([self._channels(known, "future"), self._channels(known, "past")], 1),
            known=self.channels.future,
            static=self._channels(known, "static"),
            starts=known.starts,
            ends=known.ends,
        )

    def latest(self, panel: Panel, input_size: int, h: int, width: int) -> CovariateWindows:
        """Cut the last look-back of every series of a panel, and the horizon after it."""
        self.require_horizon(panel, h)
        starts = panel.lengths - input_size
        return self.encode(panel.with_covariates_up_to(h)).cut(torch.arange(len(panel)), starts, input_size, h, width)

    def own_columns(self, panel: Panel) -> Covariates:
        """Reduce the covariates of a panel to these ones, in this order and with these categories."""
        known = panel.covariates
        assert known is not None
        future, past, static = (self.names(role) for role in ROLES)
        own = self._categories()
        values = recoded(known.values.numpy(), known.columns, known.categories, own)
        of_series = recoded(known.of_series.numpy(), known.static, known.categories, own)
        return replace(
            known,
            future=future,
            past=past,
            static=static,
            values=torch.from_numpy(values[:, [known.columns.index(name) for name in future + past]]),
            of_series=torch.from_numpy(of_series[:, [known.static.index(name) for name in static]]),
            categories=own,
        )

    def stored(self, values: Tensor, of_series: Tensor, ends: Tensor) -> Covariates:
        """Make the covariates of a saved model, in the order of `own_columns`."""
        future, past, static = (self.names(role) for role in ROLES)
        return Covariates(
            future=future,
            past=past,
            static=static,
            values=values,
            of_series=of_series,
            categories=self._categories(),
            starts=ends - ends.diff(prepend=ends.new_zeros(1)),
            ends=ends,
        )

    def _categories(self) -> dict[str, tuple[str, ...]]:
        return {one.name: one.categories for one in self.codings if one.categories is not None}

    def require_horizon(self, panel: Panel, h: int) -> None:
        """Refuse a panel without the rows of its known-future covariates.

        Raises:
            DataError: With the series and its first missing timestamp.
        """
        known, names = panel.covariates, self.names("future")
        if known is None or not names:
            return
        future = known.horizon(panel.lengths, h)
        has_row = (known.starts + panel.lengths)[:, None] + torch.arange(h) < known.ends[:, None]
        if not bool(has_row.all()):
            one, step = (int(axis[0]) for axis in (~has_row).nonzero(as_tuple=True))
            when = timestamp_text(panel.select([panel.series[one]]).future_timestamps(h)[0, step], panel.timezone)
            raise DataError(
                f"series {quoted(panel.series[one])} has no row for {when}, and the forecast needs {listed(names)} "
                f"over all {counted(h, 'step')}; give these rows as futr_df=, or with an empty "
                f"{quoted(panel.style.target_col)} at the end of the data"
            )
        for coding in self.codings:
            if coding.role == "future" and coding.categories is None and not coding.may_miss:
                empty = future[..., known.future.index(coding.name)].isnan()
                if bool(empty.any()):
                    one, step = (int(axis[0]) for axis in empty.nonzero(as_tuple=True))
                    when = timestamp_text(
                        panel.select([panel.series[one]]).future_timestamps(h)[0, step], panel.timezone
                    )
                    raise DataError(
                        f"series {quoted(panel.series[one])} has no value of {quoted(coding.name)} for {when}, and "
                        "none was missing in the fit; fill it in"
                    )

    def _channels(self, known: Covariates, role: Role) -> Float[Tensor, "rows channels"]:
        names, values = (known.static, known.of_series) if role == "static" else (known.columns, known.values)
        parts = [
            one.encode(values[:, names.index(one.name)], known.categories.get(one.name))
            for one in self.codings
            if one.role == role
        ]
        if not parts and role != "past":
            parts = [values.new_zeros(len(values), 1, dtype=torch.float32)]
        return torch.cat([values.new_zeros(len(values), 0, dtype=torch.float32), *parts], 1)


def _coding(known: Covariates, name: str, role: Role, values: Float64[Tensor, " rows"]) -> Coding | None:
    """Learn how a covariate becomes channels; None if it is constant."""
    present = values[~values.isnan()]
    may_miss = len(present) < len(values)
    if name in known.categories:
        counts = np.bincount(present.long().numpy(), minlength=len(known.categories[name]))
        used = np.flatnonzero(counts)
        if len(used) + may_miss < 2:
            return None
        chosen = sorted(used[np.argsort(-counts[used], kind="stable")][: MAX_CATEGORIES - 1].tolist())
        return Coding(name, role, tuple(known.categories[name][code] for code in chosen))
    if not len(present):
        return None
    mean, std = float(present.mean()), float(present.std(correction=0))
    is_constant = std <= _FLAT * abs(mean)
    if is_constant and not may_miss:
        return None
    return Coding(name, role, mean=mean, std=1.0 if is_constant else std, may_miss=may_miss)
